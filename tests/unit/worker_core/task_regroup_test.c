/* SPDX-License-Identifier: Apache-2.0
 * Generations after the first, as transcripts: losses, steps that are taken over, halts in which a
 * joiner is let in, failures that are final. */
#include <stdio.h>
#include <string.h>

#include "task_fixture.h"

static const struct generation THIRD = {.number = 3, .nonce = 79};

/* Inside of step 1 of ten, with the consumption of step 0. */
static struct fixture fixture_inside_step_1(void)
{
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    simple(&fixture, TASK_EVENT_APPLY, 0);
    step(&fixture,
        &(struct task_event){
            .type = TASK_EVENT_APPLIED, .position = 0, .consumption = {.steps = 1, .samples = 40}});
    ready(&fixture, 1, 0, 10, 10);
    forget(&fixture);
    return fixture;
}

static void synced(struct fixture *fixture, struct cursor cursor, uint64_t samples)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_SYNCED,
                      .cursor = cursor,
                      .consumption = {.steps = samples / 40, .samples = samples}});
}

/* The step that it was inside of is taken again: nothing is claimed before the program is there,
 * and then as of a run that begins with the generation, like a joiner's. */
static void test_survivor_that_has_the_state(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    peer_error(&fixture, "rank 0 left");
    expect(&fixture, "abort mesh: rank 0 left\n"
                     "changed\n"
                     "send report g1 at 1 clean: peer error, in stream 1 (rank 0 left)\n");
    plan_from(&fixture, SECOND, 1, 1);
    assert_true(fixture.core.clean);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    expect(&fixture, "form\nchanged\nchanged\n");
    assert_false(task_core_may_enter(&fixture.core, 1));
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g2 up to 3 applied 1 stream 1 consumed 40 wants 2\n");
    assert_int_equal(fixture.core.cursor.begin, 1);
    assert_int_equal(fixture.core.cursor.first, 0);
    release(&fixture, 3);
    apply_step(&fixture, 1);
    assert_int_equal(fixture.core.position, 2);
}

/* A task whose program stands between two steps wants none. */
static void test_survivor_between_steps_wants_nothing(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    apply_step(&fixture, 1);
    forget(&fixture);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    expect(&fixture, "abort mesh: task 0 died of signal 9\n"
                     "changed\n"
                     "send report g1 at 2 clean: abort (task 0 died of signal 9)\n");
    /* While it waits its program comes to the step: a joiner may be let in there. Once is enough.
     */
    ready(&fixture, 1, 0, 10, 10);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send report g1 at 2 clean: abort, in stream 1 (task 0 died of signal 9)\n");
    simple(&fixture, TASK_EVENT_STALLED, 2);
    expect(&fixture, "");
    plan_from(&fixture, SECOND, 2, 1);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g2 at 2 clean released 2 arrived 2\n");
}

/* Others had applied the step that it was inside of: it has it from them. */
static void test_step_is_taken_over(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 2, 0);
    assert_false(fixture.core.clean);
    assert_int_equal(fixture.core.position, 1);
    forget(&fixture);
    synced(&fixture, (struct cursor){.stream = 1, .begin = 1, .steps = 10}, 80);
    expect(&fixture, "changed\n");
    assert_int_equal(fixture.core.position, 2);
    assert_false(fixture.core.begun); /* step 1 is done by it, and step 2 is not begun */
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    expect(&fixture, "abort mesh: task 0 died of signal 9\n"
                     "changed\n"
                     "send report g2 at 2 clean: abort (task 0 died of signal 9)\n");
    plan_from(&fixture, THIRD, 2, 1);
    simple(&fixture, TASK_EVENT_SYNCED, 0); /* it kept its own: nothing is given */
    forget(&fixture);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g3 up to 4 applied 2 stream 1 consumed 80 wants 3\n");
}

/* It receives beside its own state: the source is lost before all of it has come, and the task is
 * where it was. */
static void test_step_is_not_taken_over(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 2, 0);
    assert_false(fixture.core.clean);
    forget(&fixture);
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    expect(&fixture, "abort mesh: task 0 died of signal 9\n"
                     "changed\n"
                     "send report g2 at 1 clean: abort, in stream 1 (task 0 died of signal 9)\n");
    simple(&fixture, TASK_EVENT_SYNCED, 0); /* too late */
    assert_int_equal(fixture.core.position, 1);
    /* Once more, and then it is the source of its own step. */
    plan_from(&fixture, THIRD, 2, 0);
    assert_false(fixture.core.clean);
    forget(&fixture);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_SYNC_FAILED, .text = "rank 0 is mute"});
    expect(&fixture, "abort mesh: rank 0 is mute\n"
                     "changed\n"
                     "send report g3 at 1 clean: peer error, in stream 1 (rank 0 is mute)\n");
    plan_from(&fixture, (struct generation){.number = 4, .nonce = 80}, 1, 1);
    assert_true(fixture.core.clean);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    forget(&fixture);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g4 up to 3 applied 1 stream 1 consumed 40 wants 2\n");
    release(&fixture, 3);
    apply_step(&fixture, 1);
    assert_int_equal(fixture.core.position, 2);
}

/* What was torn before has nothing to go back to. */
static void test_torn_step_stays_torn(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    simple(&fixture, TASK_EVENT_APPLY, 1);
    peer_error(&fixture, "rank 0 left");
    plan_from(&fixture, SECOND, 1, 0);
    forget(&fixture);
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    expect(&fixture, "abort mesh: task 0 died of signal 9\n"
                     "changed\n"
                     "send report g2 at 1 dirty: abort, in stream 1 (task 0 died of signal 9)\n");
}

/* Torn: it takes the same step again on the state of others. */
static void test_torn_step_is_begun_again(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    simple(&fixture, TASK_EVENT_APPLY, 1);
    peer_error(&fixture, "rank 0 left");
    plan_from(&fixture, SECOND, 1, 0);
    synced(&fixture, (struct cursor){.stream = 1, .begin = 0, .steps = 10}, 40);
    assert_true(fixture.core.begun);
    forget(&fixture);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g2 up to 3 applied 1 stream 1 consumed 40 wants 2\n");
}

static void test_window_outlives_a_generation(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    apply_step(&fixture, 1);
    simple(&fixture, TASK_EVENT_STALLED, 2);
    assert_int_equal(fixture.core.window_steps, 4);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 2, 1);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    forget(&fixture);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g2 up to 6 applied 2 stream 1 wants 3\n");
}

/* If the program turned to another epoch, the consumption is that epoch's. */
static void test_consumption_follows_the_epoch(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    apply_step(&fixture, 1);
    forget(&fixture);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_READY,
                       .position = 4,
                       .cursor = {.stream = 2, .first = 1, .begin = 2, .steps = 3},
                       .consumption = {.steps = 1, .samples = 7}});
    step(&fixture, &(struct task_event){.type = TASK_EVENT_READY,
                       .position = 4,
                       .cursor = {.stream = 2, .first = 1, .begin = 2, .steps = 3}});
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 2 consumed 7 wants 3\n");
}

static void plan_after_abort(struct fixture *fixture)
{
    sent(fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(fixture, SECOND, 1, 1);
    simple(fixture, TASK_EVENT_SYNCED, 0);
    forget(fixture);
}

static void test_flush_reports_what_is_applied(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100);
    fixture.core.window_steps = 16;
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 16 applied 0 stream 1 wants 1\n");
    release(&fixture, 16);
    apply_step(&fixture, 0);
    expect(&fixture, "changed\n"); /* not worth a message */
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 17 applied 1 stream 1\n");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "");
    struct fixture end = fixture_running(2);
    end.core.window_steps = 16;
    release(&end, 2);
    apply_step(&end, 0); /* little is in hand; steps behind the run are claimed */
    expect(&end, "changed\nsend arrive g1 up to 17 applied 1 stream 1\n");
    simple(&end, TASK_EVENT_FLUSH, 0);
    expect(&end, "");
    plan_after_abort(&end);
    simple(&end, TASK_EVENT_FLUSH, 0); /* nothing else would tell that it is there */
    expect(&end, "send arrive g2 up to 1 applied 1 stream 1\n");
    /* Nor to a daemon and a coordinator that were both restarted. */
    simple(&end, TASK_EVENT_DISCONNECTED, 0);
    simple(&end, TASK_EVENT_CONNECTED, 0);
    expect(&end, "send hello g2 at 1 clean released 1 arrived 1\n"
                 "send arrive g2 up to 1 applied 1 stream 1\n");
}

/* Else it is not known for how long the program is in the step. */
static void test_tick_reports_a_step_that_is_begun(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100);
    fixture.core.window_steps = 16;
    release(&fixture, 2);
    apply_step(&fixture, 0);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    forget(&fixture);
    ready(&fixture, 1, 0, 100, 100);
    simple(&fixture, TASK_EVENT_TICK, 0); /* it took a step since the one before */
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "send arrive g1 up to 17 applied 1 stream 1 wants 2\n");
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "");
}

/* A checkpoint waits for that, too. */
static void test_flush_reports_what_was_compared(void **state)
{
    (void)state;
    const struct task_event compared = {
        .type = TASK_EVENT_VERIFIED, .verified = {.position = 1, .digest = 7}};
    struct fixture fixture = fixture_running(2);
    fixture.core.window_steps = 16;
    release(&fixture, 2);
    apply_step(&fixture, 0);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    forget(&fixture);
    step(&fixture, &compared);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 17 applied 1 stream 1 verified 1\n");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "");
    plan_after_abort(&fixture); /* of another generation nothing is known */
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g2 up to 1 applied 1 stream 1\n");
}

/* A program that does other work for long between two steps has reported its position; one that
 * takes steps costs no message. */
static void test_who_is_paused_has_reported_where(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100);
    fixture.core.window_steps = 16;
    simple(&fixture, TASK_EVENT_TICK, 0); /* before its first step there is nothing to tell */
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    release(&fixture, 16);
    apply_step(&fixture, 0);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_TICK, 0); /* it has moved since the last one */
    expect(&fixture, "");
    ready(&fixture, 1, 0, 100, 100);
    apply_step(&fixture, 1);
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "send arrive g1 up to 18 applied 2 stream 1\n");
    simple(&fixture, TASK_EVENT_TICK, 0); /* once */
    expect(&fixture, "");
    /* Inside of a step, too: it may take long. */
    ready(&fixture, 1, 0, 100, 100);
    apply_step(&fixture, 2);
    ready(&fixture, 1, 0, 100, 100);
    simple(&fixture, TASK_EVENT_APPLY, 3);
    simple(&fixture, TASK_EVENT_TICK, 0);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "send arrive g1 up to 19 applied 3 stream 1 wants 4\n");
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    simple(&fixture, TASK_EVENT_APPLIED, 3);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_TICK, 0); /* frozen: its report has said it */
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "");
}

/* An epoch that is left early, or was before the plan, is reported to its end before another
 * begins. */
static void test_the_consumption_of_an_epoch_that_is_left(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100);
    fixture.core.window_steps = 16;
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    release(&fixture, 16);
    apply_step(&fixture, 0);
    forget(&fixture);
    fixture.core.consumption.steps = 1;
    step(&fixture, &(struct task_event){.type = TASK_EVENT_READY,
                       .position = 3,
                       .cursor = {.stream = 2, .first = 1, .begin = 1, .steps = 2}});
    expect(&fixture, "");
    assert_int_equal(fixture.core.consumed_unsent, 1);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    expect(&fixture, "send arrive g1 up to 1 applied 1 stream 1\n"
                     "send arrive g1 up to 17 applied 1 stream 2 wants 2\n");
    assert_int_equal(fixture.core.consumed_unsent, 0);
}

/* An epoch's length that only reading shows is reported when it is found, once, and of that epoch.
 */
static void test_the_end_of_data_is_reported_when_found(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100);
    struct task_event end = {
        .type = TASK_EVENT_END, .cursor = {.stream = 1, .epoch = 0, .steps = 1}};
    fixture.core.cursor.steps = 0;
    fixture.core.window_steps = 16;
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    release(&fixture, 16);
    apply_step(&fixture, 0);
    forget(&fixture);
    end.cursor.epoch = 1;
    step(&fixture, &end); /* of another epoch */
    end.cursor.epoch = 0;
    end.cursor.stream = 2;
    step(&fixture, &end);
    expect(&fixture, "");
    end.cursor.stream = 1;
    step(&fixture, &end);
    expect(&fixture, "send arrive g1 up to 16 applied 1 stream 1\n");
    assert_int_equal(fixture.core.cursor.steps, 1);
    end.cursor.steps = 2;
    step(&fixture, &end); /* it is known by now */
    expect(&fixture, "");
    assert_int_equal(fixture.core.cursor.steps, 1);
}

/* One that is frozen says what it held; where it will stand is not known. */
static void test_an_end_that_is_found_by_one_that_is_frozen(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    fixture.core.cursor.steps = 0;
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    step(&fixture, &(struct task_event){
                       .type = TASK_EVENT_END, .cursor = {.stream = 1, .epoch = 0, .steps = 2}});
    expect(&fixture, "");
    assert_int_equal(fixture.core.cursor.steps, 0);
}

/* ---- ends ---- */

/* A peer died while others had finished: all form a generation once more and finish there, each
 * when its program says so again: there may be another chief, whose last checkpoint is not written.
 */
static void test_finished_again(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    release(&fixture, 1);
    apply_step(&fixture, 0);
    simple(&fixture, TASK_EVENT_FINISH, 0);
    peer_error(&fixture, "rank 0 left");
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    plan_from(&fixture, SECOND, 1, 1);
    expect(&fixture, "form\nchanged\n");
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    expect(&fixture, "changed\n");
    sent(&fixture, TASK_DOWN_GOODBYE, SECOND);
    assert_int_equal(fixture.core.phase, TASK_RUN); /* it has not reported */
    simple(&fixture, TASK_EVENT_FINISH, 0);
    expect(&fixture, "changed\n"
                     "send arrive g2 up to 1 applied 1 stream 1\n" /* that it holds step 0 */
                     "send report g2 at 1 clean: finished\n");
    sent(&fixture, TASK_DOWN_GOODBYE, SECOND);
    expect(&fixture, "exit ok\nchanged\n");
}

static void fails(struct fixture *fixture)
{
    step(fixture, &(struct task_event){
                      .type = TASK_EVENT_FAILED, .code = CADRE_INTERNAL, .text = "loss is nan"});
}

static void test_failure_is_reported(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    fails(&fixture);
    assert_true(fixture.core.clean);
    fails(&fixture);
    peer_error(&fixture, "rank 0 left");
    char report[LIMIT_TEXT_BYTES];
    snprintf(report, sizeof report,
        "abort mesh: loss is nan\n"
        "changed\n"
        "send report g1 at 1 clean: failed code %d, in stream 1 (loss is nan)\n",
        CADRE_INTERNAL);
    expect(&fixture, report);
    sent(&fixture, TASK_DOWN_GOODBYE, FIRST);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    assert_non_null(strstr(fixture.transcript.text, "frozen: failed\n"));
    assert_non_null(strstr(fixture.transcript.text, "clean: failed code"));
    forget(&fixture);
    /* A plan that has crossed the failure is answered with it, and no mesh is formed. */
    plan_from(&fixture, SECOND, 1, 1);
    snprintf(report, sizeof report,
        "abort mesh: loss is nan\n"
        "changed\n"
        "send report g2 at 1 clean: failed code %d, in stream 1 (loss is nan)\n",
        CADRE_INTERNAL);
    expect(&fixture, report);
}

/* It had reported something else before; and one that tears its own apply. */
static void test_failure_after_another_reason(void **state)
{
    (void)state;
    struct fixture fixture = fixture_inside_step_1();
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    fails(&fixture);
    assert_int_equal(fixture.core.reason, REPORT_FAILED);
    assert_non_null(strstr(fixture.transcript.text, "(loss is nan)\n"));
    struct fixture torn = fixture_inside_step_1();
    simple(&torn, TASK_EVENT_APPLY, 1);
    sent(&torn, TASK_DOWN_ABORT, FIRST);
    forget(&torn);
    fails(&torn);
    assert_false(torn.core.clean);
    assert_non_null(strstr(torn.transcript.text, "send report g1 at 1 dirty: failed"));
    struct fixture early = fixture_make();
    simple(&early, TASK_EVENT_CONNECTED, 0);
    fails(&early);
    plan_from(&early, FIRST, 0, SOURCE_NONE);
    assert_non_null(strstr(early.transcript.text, "send report g1 at 0 dirty: failed"));
    assert_null(strstr(early.transcript.text, "form"));
}

static void test_stall_is_sent_while_it_runs(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    const struct task_stall stall = {.generation = SECOND, .position = 0, .slot = 0};
    const struct task_event event = {.type = TASK_EVENT_STALL, .stall = &stall};
    step(&fixture, &event);
    expect(&fixture, "send stall g1 at 0 for slot 0\n");
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    forget(&fixture);
    step(&fixture, &event);
    expect(&fixture, "");
    /* One that is done waits for those that are not. */
    struct fixture done = fixture_running(10);
    simple(&done, TASK_EVENT_FINISH, 0);
    forget(&done);
    step(&done, &event);
    expect(&done, "send stall g1 at 0 for slot 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivor_that_has_the_state),
        cmocka_unit_test(test_survivor_between_steps_wants_nothing),
        cmocka_unit_test(test_step_is_taken_over),
        cmocka_unit_test(test_step_is_not_taken_over),
        cmocka_unit_test(test_torn_step_stays_torn),
        cmocka_unit_test(test_torn_step_is_begun_again),
        cmocka_unit_test(test_window_outlives_a_generation),
        cmocka_unit_test(test_consumption_follows_the_epoch),
        cmocka_unit_test(test_flush_reports_what_is_applied),
        cmocka_unit_test(test_tick_reports_a_step_that_is_begun),
        cmocka_unit_test(test_flush_reports_what_was_compared),
        cmocka_unit_test(test_who_is_paused_has_reported_where),
        cmocka_unit_test(test_the_consumption_of_an_epoch_that_is_left),
        cmocka_unit_test(test_the_end_of_data_is_reported_when_found),
        cmocka_unit_test(test_an_end_that_is_found_by_one_that_is_frozen),
        cmocka_unit_test(test_finished_again),
        cmocka_unit_test(test_failure_is_reported),
        cmocka_unit_test(test_failure_after_another_reason),
        cmocka_unit_test(test_stall_is_sent_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
