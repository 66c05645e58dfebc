/* SPDX-License-Identifier: Apache-2.0
 * How the arrivals of a daemon's tasks become one, as transcripts. */
#include <string.h>

#include "agent_fixture.h"

static void test_arrivals_are_folded(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    arrives(fixture, task_of(1, 0, 1), 4, 0);
    arrives(fixture, task_of(1, 0, 1), 6, 2);
    expect(fixture, "");
    arrives(fixture, task_of(1, 1, 2), 2, 0);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 2 applied 0 consumed 0 stream 1\n");
    arrives(fixture, task_of(1, 0, 1), 8, 2);
    expect(fixture, "");
    arrives(fixture, task_of(1, 0, 1), 7, 2); /* watermarks are not taken back */
    arrives(fixture, task_of(1, 1, 2), 9, 1);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 8 applied 1 consumed 10 stream 1\n");
    arrives(fixture, task_of(1, 1, 2), 9, 2);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 8 applied 2 consumed 20 stream 1\n");
    exits(fixture, task_of(1, 1, 2), 1);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 12, 4); /* no member gets past a removed one */
    arrives(fixture, task_of(1, 0, 1), 14, 6);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 9 applied 2 consumed 20 stream 1\n");
    fixture_close(fixture);
}

static void compares(struct fixture *fixture, struct task_ref task, uint64_t position)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = FIRST,
                .up_to = 4,
                .applied = 2,
                .cursor = {.stream = 1},
                .verified = {.position = position, .digest = 7}}});
}

/* Also where no member moves on, as when all save; by one of them. */
static void test_what_was_compared_is_reported(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    compares(fixture, task_of(1, 0, 1), 0); /* with the first of the other */
    expect(fixture, "");
    arrives(fixture, task_of(1, 1, 2), 4, 2);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 4 applied 2 consumed 0 stream 1 verified "
                    "0\n");
    compares(fixture, task_of(1, 1, 2), 2);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 4 applied 2 consumed 0 stream 1 verified "
                    "2\n");
    compares(fixture, task_of(1, 0, 1), 2); /* known */
    compares(fixture, task_of(1, 0, 1), 1);
    expect(fixture, "");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, " verified 2\n"));
    fixture_close(fixture);
}

static void wants(struct fixture *fixture, struct task_ref task, uint64_t up_to, uint64_t wanted)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {
                .generation = FIRST, .up_to = up_to, .wanted = wanted, .cursor = {.stream = 1}}});
}

/* The largest `wanted` is sent at once, also beside one that never arrives. */
static void test_what_is_wanted_does_not_wait_for_the_fold(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    wants(fixture, task_of(1, 1, 2), 1, 0);
    expect(fixture, "");
    wants(fixture, task_of(1, 1, 2), 1, 1);
    expect(fixture,
        "send arrived job 1 g1 tasks 2 up to 0 applied 0 consumed 0 stream 0 slot 1 wants "
        "1\n");
    wants(fixture, task_of(1, 0, 1), 1, 1);
    expect(fixture,
        "send arrived job 1 g1 tasks 2 up to 1 applied 0 consumed 0 stream 1 slot 1 wants "
        "1\n");
    wants(fixture, task_of(1, 0, 1), 1, 2);
    expect(fixture,
        "send arrived job 1 g1 tasks 2 up to 1 applied 0 consumed 0 stream 1 slot 0 wants "
        "2\n");
    wants(fixture, task_of(1, 1, 2), 1, 2); /* known */
    expect(fixture, "");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text, "slot 0 wants 2\n"));
    fixture_close(fixture);
}

/* A member that wants less, or says what it did before, takes nothing back. */
static void test_nothing_is_taken_back(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    wants(fixture, task_of(1, 0, 1), 1, 2);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    wants(fixture, task_of(1, 1, 2), 1, 1);
    expect(fixture,
        "send arrived job 1 g1 tasks 2 up to 1 applied 0 consumed 0 stream 1 slot 0 wants "
        "2\n");
    arrives(fixture, task_of(1, 0, 1), 4, 2);
    arrives(fixture, task_of(1, 1, 2), 4, 2);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 6, 1);
    arrives(fixture, task_of(1, 1, 2), 6, 2);
    expect(fixture, "");
    fixture_close(fixture);
}

static void begins(struct fixture *fixture, struct task_ref task, uint64_t begin)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = FIRST,
                .up_to = 9,
                .applied = 3,
                .cursor = {.stream = (uint32_t)begin, .first = begin, .begin = begin},
                .consumption = {.samples = begin}}});
}

/* The coordinator receives each run, also one that members have left already. */
static void test_each_run_is_folded(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    begins(fixture, task_of(1, 0, 1), 1);
    begins(fixture, task_of(1, 1, 2), 1);
    begins(fixture, task_of(1, 0, 1), 2);
    begins(fixture, task_of(1, 0, 1), 3);
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 9 applied 3 consumed 1 stream 1\n");
    begins(fixture, task_of(1, 1, 2), 2);
    begins(fixture, task_of(1, 1, 2), 3);
    begins(fixture, task_of(1, 1, 2), 2); /* not taken back */
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 9 applied 3 consumed 2 stream 2\n"
                    "send arrived job 1 g1 tasks 2 up to 9 applied 3 consumed 3 stream 3\n");
    fixture_close(fixture);
}

static void test_member_that_is_forgotten_holds_the_fold(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    arrives(fixture, task_of(1, 0, 1), 2, 0);
    arrives(fixture, task_of(1, 1, 2), 4, 0);
    exits(fixture, task_of(1, 1, 2), 1);
    happens(fixture, AGENT_EVENT_COLLECTED, task_of(1, 1, 2));
    stop_one(fixture, task_of(1, 1, 2));
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    arrives(fixture, task_of(1, 0, 1), 6, 2);
    expect(fixture, "");
    fixture_close(fixture);
}

static void is_in_epoch(struct fixture *fixture, struct task_ref task, uint64_t generation,
    uint64_t epoch, uint64_t applied)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = {.number = generation, .nonce = FIRST.nonce},
                .up_to = applied + 1,
                .applied = applied,
                .cursor = {.stream = 1, .epoch = epoch, .first = 4 * epoch, .begin = 4 * epoch},
                .consumption = {.steps = applied - 4 * epoch, .samples = 100 * epoch + applied}}});
}

static void is_planned(struct fixture *fixture, uint64_t generation, uint64_t resume)
{
    const struct roster_entry roster[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"}};
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {1},
                          .down = {.type = TASK_DOWN_PLAN,
                              .plan = {.generation = {.number = generation, .nonce = FIRST.nonce},
                                  .resume = resume,
                                  .roster = roster,
                                  .roster_count = 1}}}});
}

/* Its tasks tell it when they turn to the next epoch, and never again. */
static void test_epochs_that_are_over_are_resent(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    is_in_epoch(fixture, task_of(1, 0, 1), 1, 0, 4);
    is_in_epoch(fixture, task_of(1, 1, 2), 1, 0, 3);
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    is_in_epoch(fixture, task_of(1, 0, 1), 1, 1, 5);
    is_in_epoch(fixture, task_of(1, 1, 2), 1, 0, 4);
    is_in_epoch(fixture, task_of(1, 1, 2), 1, 1, 5);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    welcome(fixture);
    assert_non_null(strstr(fixture->transcript.text,
        "send epoch 0 of stream 1 job 1 g1 from 0 applied 4 consumed 4\n"
        "send arrived job 1 g1 tasks 2 up to 6 applied 5 consumed 105 stream 1\n"));
    is_in_epoch(fixture, task_of(1, 0, 1), 1, 2, 9);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    is_planned(fixture, 2, 4); /* the second epoch's end is not on its line */
    expect(fixture, "j1.0.1 tell\n");
    is_in_epoch(fixture, task_of(1, 0, 1), 2, 1, 4); /* the plan has recorded those before it */
    expect(fixture, "send arrived job 1 g2 tasks 1 up to 5 applied 4 consumed 104 stream 1\n");
    is_in_epoch(fixture, task_of(1, 0, 1), 2, 1, 5);
    expect(fixture, "send arrived job 1 g2 tasks 1 up to 6 applied 5 consumed 105 stream 1\n");
    fixture_close(fixture);
}

static void reports(struct fixture *fixture, struct task_ref task, uint64_t position)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = FIRST,
                .position = position,
                .clean = true,
                .reason = REPORT_PEER_ERROR,
                .text = "a peer left"}});
}

/* The plan that is made of a report is the last that asks what was consumed before it: a member
 * that was killed holds the fold, and the daemon may be restarted before it has the plan. */
static void test_what_was_consumed_goes_before_a_report(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    struct task_ref chief = task_of(1, 0, 1);
    is_in_epoch(fixture, chief, 1, 0, 3);
    is_in_epoch(fixture, task_of(1, 1, 2), 1, 0, 3);
    exits(fixture, task_of(1, 1, 2), 1);
    happens(fixture, AGENT_EVENT_COLLECTED, task_of(1, 1, 2));
    stop_one(fixture, task_of(1, 1, 2));
    is_in_epoch(fixture, chief, 1, 0, 4);
    is_in_epoch(fixture, chief, 1, 1, 5);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    reports(fixture, chief, 5);
    expect(fixture, "send epoch 0 of stream 1 job 1 g1 from 0 applied 4 consumed 4\n"
                    "send epoch 1 of stream 1 job 1 g1 from 4 applied 5 consumed 105\n"
                    "j1.0.1 send said report g1 at 5 clean: peer error (a peer left)\n");
    reports(fixture, chief, 5); /* once on a link */
    expect(fixture, "send epoch 1 of stream 1 job 1 g1 from 4 applied 5 consumed 105\n"
                    "j1.0.1 send said report g1 at 5 clean: peer error (a peer left)\n");
    plain(fixture, AGENT_EVENT_LINK_DOWN);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    welcome(fixture);
    const char *sent = fixture->transcript.text;
    const char *epoch = strstr(sent, "send epoch 0 of stream 1 job 1 g1 from 0 applied 4");
    const char *report = strstr(sent, "report g1 at 5");
    assert_true(epoch != NULL && report != NULL && epoch < report);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    fixture_close(fixture);
}

/* A task that is connected again sends what the epochs before its own consumed, with no claim
 * behind them: it is taken, and what was claimed stays. */
static void test_epochs_are_resent_below_the_claim(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_two_members();
    is_in_epoch(fixture, task_of(1, 0, 1), 1, 0, 3); /* up to 4 */
    is_in_epoch(fixture, task_of(1, 1, 2), 1, 0, 3);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    for (uint32_t slot = 0; slot < 2; slot++) {
        expect_output(fixture, task_of(1, slot, 1 + slot),
            &(struct task_up){.type = TASK_UP_ARRIVE,
                .arrive = {.generation = FIRST,
                    .up_to = 3,
                    .applied = 3,
                    .cursor = {.stream = 1, .epoch = 1, .first = 3, .begin = 3, .steps = 1},
                    .consumption = {.steps = 1, .samples = 7}}});
    }
    expect(fixture, "send arrived job 1 g1 tasks 2 up to 4 applied 3 consumed 7 stream 1\n");
    fixture_close(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals_are_folded),
        cmocka_unit_test(test_what_was_compared_is_reported),
        cmocka_unit_test(test_what_is_wanted_does_not_wait_for_the_fold),
        cmocka_unit_test(test_nothing_is_taken_back),
        cmocka_unit_test(test_each_run_is_folded),
        cmocka_unit_test(test_member_that_is_forgotten_holds_the_fold),
        cmocka_unit_test(test_epochs_that_are_over_are_resent),
        cmocka_unit_test(test_what_was_consumed_goes_before_a_report),
        cmocka_unit_test(test_epochs_are_resent_below_the_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
