/* SPDX-License-Identifier: Apache-2.0
 * Which coordinator a worker accepts, by the newest that it has met; and to which of several it
 * goes when its own sends nothing. */
#include "common/model/term.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/leader_choice.h"

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

#define LEADS(number)                                                                              \
    {                                                                                              \
        .leads = true, .term = {.cluster = 9, .start = (number), .nonce = 77 }                     \
    }
#define STALE(number)                                                                              \
    {                                                                                              \
        .leads = false, .term = {.cluster = 9, .start = (number), .nonce = 77 }                    \
    }
#define SILENT                                                                                     \
    {                                                                                              \
        .leads = false                                                                             \
    }
#define ELSEWHERE                                                                                  \
    {                                                                                              \
        .leads = true, .term = {.cluster = 8, .start = 99, .nonce = 1 }                            \
    }
#define WITHOUT_A_TERM                                                                             \
    {                                                                                              \
        .leads = true                                                                              \
    }
#define TWIN(number)                                                                               \
    {                                                                                              \
        .leads = true, .term = {.cluster = 9, .start = (number), .nonce = 78 }                     \
    }

static void the_highest_term_that_leads_is_chosen(void **state)
{
    (void)state;
    static const struct term seen = {.cluster = 9, .start = 4, .nonce = 77};
    static const struct {
        struct leader_answer answers[3];
        size_t current;
        size_t chosen;
    } cases[] = {{{SILENT, LEADS(5), STALE(5)}, 0, 1}, {{SILENT, LEADS(5), LEADS(6)}, 0, 2},
        {{SILENT, LEADS(6), LEADS(5)}, 0, 1},
        {{SILENT, LEADS(4), SILENT}, 0, 1},           /* its address has changed */
        {{LEADS(4), LEADS(4), SILENT}, 1, 1},         /* one that has two addresses */
        {{LEADS(4), SILENT, LEADS(5)}, 0, 2},         /* and is replaced */
        {{SILENT, SILENT, SILENT}, 2, 2},             /* none: it stays */
        {{SILENT, STALE(5), STALE(6)}, 0, 0},         /* none within its time to send */
        {{SILENT, LEADS(3), SILENT}, 0, 0},           /* an older one that believes to lead */
        {{SILENT, TWIN(4), SILENT}, 0, 0},            /* another one with that number */
        {{SILENT, ELSEWHERE, WITHOUT_A_TERM}, 0, 0}}; /* of another cluster, or of none */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            leader_choose(&seen, cases[i].answers, 3, cases[i].current), cases[i].chosen);
    }
    assert_true(leader_is_newer(&seen, &(struct leader_answer)LEADS(5)));
    assert_false(leader_is_newer(&seen, &(struct leader_answer)LEADS(4)));
    assert_false(leader_is_newer(&seen, &(struct leader_answer)STALE(5)));
    assert_false(leader_is_newer(&seen, &(struct leader_answer)ELSEWHERE));
    static const struct leader_answer any[] = {SILENT, ELSEWHERE};
    assert_int_equal(leader_choose(&(struct term){0}, any, 2, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_term_is_judged_by_the_newest_seen),
        cmocka_unit_test(the_highest_term_that_leads_is_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
