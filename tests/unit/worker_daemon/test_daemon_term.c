/* SPDX-License-Identifier: Apache-2.0
 * Which coordinator a worker accepts, by the newest that it has met. */
#include "common/model/term.h"
#include "tests/lib/test.h"

static void a_term_is_judged_by_the_newest_seen(void **state)
{
    (void)state;
    static const struct term seen = {.cluster = 9, .start = 4, .nonce = 77};
    static const struct {
        struct term offered;
        enum term_verdict verdict;
    } cases[] = {{{.cluster = 9, .start = 4, .nonce = 77}, TERM_GOOD},
        {{.cluster = 9, .start = 5, .nonce = 1}, TERM_GOOD},
        {{.cluster = 9, .start = 3, .nonce = 77}, TERM_OLD},
        {{.cluster = 9, .start = 3, .nonce = 1}, TERM_OLD},
        {{.cluster = 9, .start = 4, .nonce = 78}, TERM_DUPLICATE},
        {{.cluster = 8, .start = 99, .nonce = 77}, TERM_FOREIGN}, {{.cluster = 0}, TERM_GOOD}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(term_judge(&seen, &cases[i].offered), cases[i].verdict);
        assert_int_equal(term_judge(&(struct term){0}, &cases[i].offered), TERM_GOOD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_term_is_judged_by_the_newest_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
