/* SPDX-License-Identifier: Apache-2.0
 * What a task sends again on a new connection, and which messages of another generation it drops,
 * as transcripts. */
#include <stdio.h>
#include <string.h>

#include "task_fixture.h"

static void consumed_step(struct fixture *fixture, uint64_t position, uint64_t samples)
{
    assert_true(task_core_may_enter(&fixture->core, position));
    simple(fixture, TASK_EVENT_APPLY, position);
    step(fixture, &(struct task_event){.type = TASK_EVENT_APPLIED,
                      .position = position,
                      .consumption = {.steps = 1, .samples = samples}});
}

static void reconnects(struct fixture *fixture)
{
    simple(fixture, TASK_EVENT_DISCONNECTED, 0);
    forget(fixture);
    simple(fixture, TASK_EVENT_CONNECTED, 0);
}

static bool is_sent(const struct fixture *fixture, const char *part)
{
    return strstr(fixture->transcript.text, part) != NULL;
}

/* Else the epochs that were left while the daemon was away would have no proof. */
static void test_what_left_epochs_were_consumed_is_resent(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    consumed_step(&fixture, 0, 41);
    ready(&fixture, 2, 1, 5, 6);
    reconnects(&fixture);
    assert_true(is_sent(&fixture, "stream 1 consumed 41"));
    /* In the next generation it is on record. */
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 1, 1);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    ready(&fixture, 2, 1, 5, 6);
    reconnects(&fixture);
    assert_true(is_sent(&fixture, "hello g2"));
    assert_false(is_sent(&fixture, "stream 1 consumed 41"));
}

/* As many as there is room for: the last ones, because those before were sent long ago. */
static void test_the_last_epochs_are_resent(void **state)
{
    (void)state;
    enum { EPOCHS = TASK_CONSUMED_MAX + 2 };
    struct fixture fixture = fixture_running(1);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        ready(&fixture, 1 + (uint32_t)(epoch % 2), epoch, 1, epoch + 1);
        release(&fixture, epoch + 1);
        consumed_step(&fixture, epoch, 1000 + epoch);
        forget(&fixture);
    }
    ready(&fixture, 1 + EPOCHS % 2, EPOCHS, 1, EPOCHS + 1);
    reconnects(&fixture);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        char consumed[32];
        snprintf(consumed, sizeof(consumed), " consumed %u", (unsigned)(1000 + epoch));
        assert_int_equal(is_sent(&fixture, consumed), epoch >= EPOCHS - TASK_CONSUMED_MAX);
    }
}

/* The daemon keeps what an epoch consumed only once it has received that the task turned from it.
 */
static void test_a_turn_is_sent_before_the_report(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    release(&fixture, 1);
    consumed_step(&fixture, 0, 41);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    assert_int_equal(fixture.core.sent_applied, 1);
    forget(&fixture);
    ready(&fixture, 2, 1, 5, 6);
    expect(&fixture, "");
    peer_error(&fixture, "rank 0 left");
    const char *turn = strstr(fixture.transcript.text, "applied 1 stream 2");
    assert_non_null(turn);
    assert_non_null(strstr(turn, "send report g1 at 1 clean"));
}

/* In the order in which they ended, before what claims steps behind them, and once. */
static void test_short_epochs_share_a_message(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    fixture.core.window_steps = LIMIT_WINDOW_STEPS;
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    assert_int_equal(fixture.core.arrived, 1 + TASK_STEPS_BEHIND_RUN);
    release(&fixture, fixture.core.arrived);
    forget(&fixture);
    uint64_t epoch = 0;
    for (; fixture.core.sent_applied == 0; epoch++) {
        assert_int_equal(fixture.core.consumed_unsent, epoch);
        consumed_step(&fixture, epoch, 1000 + epoch);
        assert_true(!is_sent(&fixture, "send ") || fixture.core.sent_applied > 0);
        ready(&fixture, 1 + (uint32_t)((epoch + 1) % 2), epoch + 1, 1, epoch + 2);
    }
    assert_int_equal(epoch, TASK_CONSUMED_MAX);
    const char *at = fixture.transcript.text;
    for (uint64_t left = 0; left + 1 < epoch; left++) {
        char sent[96];
        snprintf(sent, sizeof(sent), "send arrive g1 up to %u applied %u stream %u consumed %u",
            (unsigned)left + 1, (unsigned)left + 1, 1 + (unsigned)left % 2, 1000 + (unsigned)left);
        at = strstr(at, sent);
        assert_non_null(at);
        at += strlen(sent);
        assert_null(strstr(at, sent));
    }
    assert_non_null(strstr(at, "send arrive g1 up to "));
}

/* It says where it stands before it goes with the next one (rule 6), also while it receives. */
static void test_who_forms_takes_no_newer_plan(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    plan_from(&fixture, FIRST, 0, 0);
    forget(&fixture);
    plan_from(&fixture, SECOND, 0, 0);
    expect(&fixture, "abort mesh: a new generation was planned while this task was running\n"
                     "changed\n"
                     "send report g1 at 0 dirty: abort (a new generation was planned while this "
                     "task was running)\n");
}

static void test_an_abort_of_another_generation_is_ignored(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    sent(&fixture, TASK_DOWN_ABORT, (struct generation){.number = 1, .nonce = 5});
    expect(&fixture, "");
    assert_int_equal(fixture.core.phase, TASK_RUN);
}

/* The step was to be let end; its end is the failure. */
static void test_a_failure_in_the_last_step_is_the_report(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    simple(&fixture, TASK_EVENT_APPLY, 0);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    step(&fixture,
        &(struct task_event){
            .type = TASK_EVENT_FAILED, .code = CADRE_DATA_LOSS, .text = "sample 3 is no sample"});
    assert_true(is_sent(&fixture, "report g1 at 0 dirty: failed code"));
    forget(&fixture);
    peer_error(&fixture, "rank 0 left");
    expect(&fixture, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_left_epochs_were_consumed_is_resent),
        cmocka_unit_test(test_the_last_epochs_are_resent),
        cmocka_unit_test(test_a_turn_is_sent_before_the_report),
        cmocka_unit_test(test_short_epochs_share_a_message),
        cmocka_unit_test(test_who_forms_takes_no_newer_plan),
        cmocka_unit_test(test_an_abort_of_another_generation_is_ignored),
        cmocka_unit_test(test_a_failure_in_the_last_step_is_the_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
