/* SPDX-License-Identifier: Apache-2.0
 * Option values with two numbers: how many tasks, and what a job goes on from. */
#include "tests/lib/test.h"

#include "coordinator/cli/job_options.h"

static void ranges_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t least;
        uint32_t most;
    } good[] = {{"1", 1, 1}, {"8", 8, 8}, {"2:4", 2, 4}, {"3:3", 3, 3}, {"1:8", 1, 8}};
    static const char *const bad[] = {"", "0", "9", "-1", "x", "2:", ":4", "4:2", "0:4", "2:9",
        "2:4:6", "2 :4", "2: 4", "+2", "2x", "2-4", "99999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint32_t least = 0;
        uint32_t most = 0;
        assert_true(range_parse(good[i].text, 8, &least, &most));
        assert_int_equal(least, good[i].least);
        assert_int_equal(most, good[i].most);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t least = 0;
        uint32_t most = 0;
        if (range_parse(bad[i], 8, &least, &most)) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}

static void points_to_restore_are_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "0", "@4", "3@", "3@0", "3@-1", "x", "3@4@5", "3 @4",
        "3@9223372036854775808", "18446744073709551616"};
    uint64_t job = 0;
    uint64_t step = 9;
    assert_true(restore_point_parse("3", &job, &step));
    assert_true(job == 3 && step == 0);
    assert_true(restore_point_parse("12@9223372036854775807", &job, &step));
    assert_true(job == 12 && step == INT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (restore_point_parse(bad[i], &job, &step)) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_read), cmocka_unit_test(points_to_restore_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
