/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs run which code. */
#include "tests/lib/test.h"
#include "worker/library/cuda/kernel_code.h"

static void test_what_runs_where(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        uint32_t major;
        uint32_t minor;
        bool runs;
    } cases[] = {
        {"75-virtual 80-real 90", 7, 0, false},
        {"75-virtual 80-real 90", 7, 5, true},
        {"75-virtual 80-real 90", 8, 0, true},
        {"75-virtual 80-real 90", 12, 1, true},
        {"80-real", 7, 5, false},
        {"80-real", 8, 0, true},
        {"80-real", 8, 9, true},
        {"80-real", 9, 0, false},
        {"86-real", 8, 0, false},
        {"90", 8, 9, false},
        {"90", 10, 0, true},
        {"90a", 9, 0, true},
        {"90a-real", 10, 0, false},
        {"90a", 12, 0, false},
        {"100f-real", 10, 3, true},
        {"100f", 12, 0, false},
        {"120-virtual", 10, 0, false},
        {"80-real;120-virtual", 12, 1, true},
        {"all", 3, 5, true},
        {"native", 9, 0, true},
        {"", 9, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (kernel_code_runs(cases[i].code, cases[i].major, cases[i].minor) != cases[i].runs) {
            fail_msg("\"%s\" on %u.%u", cases[i].code, cases[i].major, cases[i].minor);
        }
    }
}

static void test_the_least(void **state)
{
    (void)state;
    assert_int_equal(kernel_code_least("90 75-virtual 80-real"), 75);
    assert_int_equal(kernel_code_least("100f"), 100);
    assert_int_equal(kernel_code_least("native"), 0);
    assert_int_equal(kernel_code_least(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_runs_where),
        cmocka_unit_test(test_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
