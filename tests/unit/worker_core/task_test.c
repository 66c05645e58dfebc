/* SPDX-License-Identifier: Apache-2.0
 * The task's side of the protocol, as transcripts: what is said and done after which event. */
#include <string.h>

#include "task_fixture.h"

#define RESUME_NONE UINT64_MAX

static void test_whole_lifecycle(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g0 at 0 dirty released 0 arrived 0\n");
    plan_from(&fixture, FIRST, 0, 0);
    expect(&fixture, "form\nchanged\n");
    assert_false(fixture.core.clean); /* its variables come from rank 0 */
    ready(&fixture, 1, 0, 3, 3);
    expect(&fixture, ""); /* rule 2: nothing is claimed before it is in step */
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    expect(&fixture, "changed\n");
    ready(&fixture, 1, 0, 3, 3);
    expect(&fixture, "send arrive g1 up to 2 applied 0 stream 1 wants 1\n");
    assert_false(task_core_may_enter(&fixture.core, 0));
    release(&fixture, 2);
    expect(&fixture, "changed\n");
    assert_true(task_core_may_enter(&fixture.core, 0));
    assert_false(task_core_may_enter(&fixture.core, 1)); /* not before 0 is applied */
    apply_step(&fixture, 0);
    expect(&fixture, "send arrive g1 up to 3 applied 1 stream 1\n");
    apply_step(&fixture, 1);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 1\n"); /* one behind its last */
    assert_false(task_core_may_enter(&fixture.core, 2));
    release(&fixture, 3);
    apply_step(&fixture, 2);
    expect(&fixture, "changed\nsend arrive g1 up to 5 applied 3 stream 1\n");
    simple(&fixture, TASK_EVENT_FINISH, 0);
    expect(&fixture, "changed\nsend report g1 at 3 clean: finished\n");
    sent(&fixture, TASK_DOWN_GOODBYE, SECOND);
    expect(&fixture, ""); /* of another generation */
    sent(&fixture, TASK_DOWN_GOODBYE, FIRST);
    expect(&fixture, "exit ok\nchanged\n");
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "");
}

static void test_source_keeps_its_state(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    plan_from(&fixture, FIRST, 0, 1);
    assert_true(fixture.core.clean);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    assert_int_equal(fixture.core.phase, TASK_RUN);
}

static void test_several_streams(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    assert_int_equal(fixture.core.arrived, 2); /* the first step of what follows, too */
    release(&fixture, 2);
    apply_step(&fixture, 0);
    expect(&fixture, "changed\nsend arrive g1 up to 3 applied 1 stream 1\n");
    ready(&fixture, 2, 1, 2, 3); /* evaluation follows: it is reported with its first step */
    expect(&fixture, "");
    ready(&fixture, 2, 1, 2, 3);
    expect(&fixture, "");
    release(&fixture, 3);
    apply_step(&fixture, 1);
    apply_step(&fixture, 2);
    ready(&fixture, 1, 3, 1, 4);
    expect(&fixture, "changed\n"
                     "send arrive g1 up to 4 applied 2 stream 2\n"
                     "send arrive g1 up to 5 applied 3 stream 2\n");
}

static void test_epoch_that_is_left_early(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    forget(&fixture);
    ready(&fixture, 2, 1, 1, 2); /* one step only: what was claimed reaches past its end */
    assert_int_equal(fixture.core.arrived, 3);
    expect(&fixture, "");
    ready(&fixture, 2, 1, 1, 2);
    expect(&fixture, "");
    apply_step(&fixture, 1);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 2\n");
    ready(&fixture, 1, 2, 9, 11); /* another run, though nothing more can be claimed now */
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_STALLED, 2);
    expect(&fixture, "send arrive g1 up to 6 applied 2 stream 1 wants 3\n");
}

static void begin(struct fixture *fixture, uint64_t position)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_READY,
                      .position = position + 1,
                      .cursor = {.first = position, .begin = position, .steps = 1}});
}

/* Steps without a batch: the claim says that the program is in it. */
static void test_the_wait_for_a_release_is_known(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(0);
    begin(&fixture, 0);
    expect(&fixture, "send arrive g1 up to 2 applied 0 stream 0 wants 1\n");
    simple(&fixture, TASK_EVENT_STALLED, 0);
    expect(&fixture, ""); /* known: not a message more */
    release(&fixture, 1);
    apply_step(&fixture, 0);
    expect(&fixture, "changed\nsend arrive g1 up to 3 applied 1 stream 0\n");
    /* Nothing is left to be claimed, and still it is sent. */
    struct fixture all = fixture_running(2);
    release(&all, 1);
    apply_step(&all, 0);
    forget(&all);
    simple(&all, TASK_EVENT_STALLED, 1);
    expect(&all, "send arrive g1 up to 5 applied 1 stream 1 wants 2\n");
    all.core.window_steps = 2;
    simple(&all, TASK_EVENT_STALLED, 1);
    expect(&all, "");
    /* Said again on the next connection, and forgotten with the generation. */
    simple(&all, TASK_EVENT_DISCONNECTED, 0);
    simple(&all, TASK_EVENT_CONNECTED, 0);
    expect(&all, "send hello g1 at 1 clean released 1 arrived 5\n"
                 "send arrive g1 up to 5 applied 1 stream 1 wants 2\n");
    sent(&all, TASK_DOWN_ABORT, FIRST);
    plan_from(&all, SECOND, 1, 1);
    forget(&all);
    simple(&all, TASK_EVENT_SYNCED, 0);
    expect(&all, "changed\n");
    /* Also by one that has nothing to claim. */
    struct fixture bare = fixture_make();
    simple(&bare, TASK_EVENT_CONNECTED, 0);
    plan_from(&bare, FIRST, 0, 1);
    simple(&bare, TASK_EVENT_SYNCED, 0);
    forget(&bare);
    ready(&bare, 1, 0, 0, 0);
    expect(&bare, "send arrive g1 up to 0 applied 0 stream 1 wants 1\n");
}

/* Each is a run of its own, and those behind it are claimed with it, so that none waits. */
static void test_batchless_steps_share_messages(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(0);
    enum { STEPS = 5 * TASK_STEPS_BEHIND_RUN };
    fixture.core.window_steps = LIMIT_WINDOW_STEPS; /* they are short */
    uint64_t messages = 0;
    for (uint64_t position = 0; position < STEPS; position++) {
        forget(&fixture);
        begin(&fixture, position);
        assert_true(position == 0 || task_core_may_enter(&fixture.core, position));
        release(&fixture, fixture.core.arrived);
        apply_step(&fixture, position);
        for (const char *at = fixture.transcript.text; (at = strstr(at, "send ")) != NULL; at++) {
            messages++;
        }
    }
    assert_in_range(messages, STEPS / TASK_STEPS_BEHIND_RUN, 2 * STEPS / TASK_STEPS_BEHIND_RUN + 1);
}

static void test_arrives_only_with_what_is_ready(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(0);
    expect(&fixture, "");
    ready(&fixture, 1, 0, 0, 1); /* steps not known, one batch in hand */
    expect(&fixture, "send arrive g1 up to 1 applied 0 stream 1 wants 1\n");
    ready(&fixture, 1, 0, 0, 1);
    expect(&fixture, "");
    release(&fixture, 1);
    apply_step(&fixture, 0);
    expect(&fixture, "changed\nsend arrive g1 up to 1 applied 1 stream 1\n");
    ready(&fixture, 1, 0, 1, UINT64_MAX); /* the end was met: what is beyond it is another run's */
    expect(&fixture, "send arrive g1 up to 3 applied 1 stream 1 wants 2\n");
}

static void test_bad_releases(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release_halt(&fixture, SECOND, 2, POSITION_NONE, HALT_NONE, 0);
    release_halt(
        &fixture, (struct generation){.number = 1, .nonce = 1}, 2, POSITION_NONE, HALT_NONE, 0);
    release(&fixture, 3); /* more than has arrived here */
    expect(&fixture, "");
    assert_int_equal(fixture.core.released, 0);
    release(&fixture, 2);
    release(&fixture, 1); /* overtaken */
    expect(&fixture, "changed\n");
    assert_int_equal(fixture.core.released, 2);
    struct fixture joining = fixture_make();
    release_halt(&joining, (struct generation){.number = 0}, 0, POSITION_NONE, HALT_NONE, 0);
    expect(&joining, "");
}

static void test_halt(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release_halt(&fixture, FIRST, 2, 1, HALT_STOP, 0);
    simple(&fixture, TASK_EVENT_PAUSE_POINT, 0); /* not there yet */
    apply_step(&fixture, 0);
    assert_false(task_core_may_enter(&fixture.core, 1));
    expect(&fixture, "changed\n"
                     "send arrive g1 up to 3 applied 1 stream 1\n");
    assert_true(task_core_stops_next(&fixture.core));
    simple(&fixture, TASK_EVENT_PAUSE_POINT, 0); /* what it does behind the step is done */
    assert_true(task_core_stops(&fixture.core));
    expect(&fixture, "changed\nsend report g1 at 1 clean: halt\n");
    simple(&fixture, TASK_EVENT_FINISH, 0); /* the loop ended for the stop: it has reported */
    expect(&fixture, "");
    sent(&fixture, TASK_DOWN_GOODBYE, FIRST);
    expect(&fixture, "exit ok\nchanged\n");
}

static void test_halt_at_its_position(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release_halt(&fixture, FIRST, 0, 0, HALT_STOP, 0);
    simple(&fixture, TASK_EVENT_PAUSE_POINT, 0);
    expect(&fixture, "changed\nchanged\nsend report g1 at 0 clean: halt, in stream 1\n");
}

/* Sent again when it may have been lost, without any other effect. */
static void test_notice(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    const struct task_preempt notice = {.stops = true};
    forget(&fixture);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_PREEMPT, .preempt = &notice});
    expect(&fixture, "send preempt stops\n");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "send hello g1 at 0 clean released 0 arrived 2\n"
                     "send preempt stops\n"
                     "send arrive g1 up to 2 applied 0 stream 1 wants 1\n");
}

static void test_halt_that_was_passed_is_not_orderly(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    apply_step(&fixture, 1);
    forget(&fixture);
    release_halt(&fixture, FIRST, 2, 1, HALT_STOP, 0);
    expect(&fixture, "changed\n"
                     "abort mesh: the coordinator halts the job at step 1, and this task is at "
                     "step 2\n"
                     "changed\n"
                     "send report g1 at 2 clean: abort (the coordinator halts the job at step 1, "
                     "and this task is at step "
                     "2)\n");
    sent(&fixture, TASK_DOWN_GOODBYE, FIRST);
    expect(&fixture, ""); /* rule 31: never bye */
}

static void test_abort_lets_a_running_apply_end(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    simple(&fixture, TASK_EVENT_APPLY, 0);
    assert_false(fixture.core.clean);
    forget(&fixture);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    expect(&fixture, "abort mesh: task 0 died of signal 9\nchanged\n");
    plan_from(&fixture, SECOND, 0, 0); /* no plan is accepted before the report */
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_APPLIED, 0);
    expect(&fixture, "send arrive g1 up to 2 applied 1 stream 1\n"
                     "send report g1 at 1 clean: abort (task 0 died of signal 9)\n");
    plan_from(&fixture, SECOND, 1, 0);
    expect(&fixture, "form\nchanged\n");
    assert_true(fixture.core.clean); /* stands at the plan's step: receives nothing */
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    expect(&fixture, "changed\n");
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "send arrive g2 up to 3 applied 1 stream 1 wants 2\n");
}

static void test_frozen_between_collective_and_apply(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    simple(&fixture, TASK_EVENT_APPLY, 0);
    assert_false(fixture.core.applying); /* rule 10 */
    assert_int_equal(fixture.core.position, 0);
    assert_true(fixture.core.clean);
}

static void test_torn_apply_is_dirty(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    simple(&fixture, TASK_EVENT_APPLY, 0);
    forget(&fixture);
    peer_error(&fixture, "rank 0 left");
    expect(&fixture, "abort mesh: rank 0 left\n"
                     "changed\n"
                     "send report g1 at 0 dirty: peer error, in stream 1 (rank 0 left)\n");
    plan_from(&fixture, SECOND, 0, 1); /* rule 9: dirty is never a source */
    expect(&fixture, "abort mesh: the plan takes the state of its first step from this task, which "
                     "does not have it\n"
                     "exit void: the plan takes the state of its first step from this task, which "
                     "does not have it\n"
                     "changed\n");
}

static void test_behind_receives_and_is_dirty_meanwhile(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    plan_from(&fixture, SECOND, 1, 0);
    assert_false(fixture.core.clean); /* rule 11 */
    sent(&fixture, TASK_DOWN_ABORT, SECOND);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_SYNCED, 0); /* crossed the abort */
    expect(&fixture, "");
    assert_int_equal(fixture.core.position, 0);
    assert_true(fixture.core.clean); /* what came is not kept, what was there is */
}

static void test_plans_that_do_not_count(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    plan_from(&fixture, FIRST, 0, 1);
    plan_from(&fixture, (struct generation){.number = 1, .nonce = 5}, 0, 1);
    expect(&fixture, "");
    const uint64_t above = UINT64_C(1) << 32;
    const struct roster_entry other[] = {{.slot = 1, .incarnation = 4, .mesh_address = ""},
        {.slot = 1, .incarnation = fixture.core.incarnation + above, .mesh_address = ""}};
    down(&fixture, &(struct task_down){.type = TASK_DOWN_PLAN,
                       .plan = {.generation = SECOND, .roster = other, .roster_count = 2}});
    expect(&fixture, ""); /* rule 12: another incarnation of this slot */
    plan_from(&fixture, SECOND, 0, 1);
    expect(&fixture, "abort mesh: a new generation was planned while this task was running\n"
                     "changed\n"
                     "send report g1 at 0 clean: abort, in stream 1 (a new generation was planned "
                     "while this task was running)\n");
    struct fixture joining = fixture_make();
    plan_from(&joining, FIRST, RESUME_NONE, 0);
    expect(&joining, "exit void: the plan resumes at an impossible step\nchanged\n");
    joining = fixture_make();
    plan_from(&joining, FIRST, 0, 2);
    expect(&joining, "exit void: the plan's source is not in its roster\nchanged\n");
    joining = fixture_make();
    plan_from(&joining, FIRST, 7, 1); /* an empty task as source */
    assert_int_equal(joining.core.phase, TASK_EXIT);
}

/* Its own entry, and those of its neighbours, in any order. */
static void test_a_plan_with_a_part_of_the_roster(void **state)
{
    (void)state;
    const struct roster_entry part[] = {
        {.slot = 9, .incarnation = 4, .replicas = 2, .mesh_address = "127.0.0.1:1", .rank = 601},
        {.slot = 1, .incarnation = 5, .replicas = 2, .mesh_address = "127.0.0.1:2", .rank = 150},
        {.slot = 3, .incarnation = 7, .replicas = 2, .mesh_address = "127.0.0.1:3", .rank = 37},
    };
    struct task_down plan = {.type = TASK_DOWN_PLAN,
        .plan = {.generation = FIRST,
            .roster = part,
            .roster_count = 3,
            .members = 700,
            .source = 150,
            .checkpoint_at = POSITION_NONE,
            .halt_at = POSITION_NONE}};
    struct fixture source = fixture_make();
    down(&source, &plan);
    assert_int_equal(source.core.phase, TASK_SYNC);
    assert_true(source.core.clean); /* rank 150, so others take its state */
    plan.plan.source = 699;
    struct fixture other = fixture_make();
    down(&other, &plan);
    assert_int_equal(other.core.phase, TASK_SYNC);
    assert_false(other.core.clean);
    plan.plan.source = 700;
    struct fixture lost = fixture_make();
    down(&lost, &plan);
    expect(&lost, "exit void: the plan's source is not in its roster\nchanged\n");
}

static void test_reconnect_resends_everything(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    apply_step(&fixture, 0); /* goes on inside the window */
    expect(&fixture, "changed\n");
    const struct task_part part = {.position = 1, .path = "ckpt/1"};
    step(&fixture, &(struct task_event){.type = TASK_EVENT_PART, .part = &part});
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "changed\n"
                     "send hello g1 at 1 clean released 2 arrived 3\n"
                     "send arrive g1 up to 3 applied 1 stream 1\n"
                     "send part g1 at 1 ckpt/1\n");
    simple(&fixture, TASK_EVENT_DISCONNECTED, 0);
    peer_error(&fixture, "rank 0 left");
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    expect(&fixture, "abort mesh: rank 0 left\n"
                     "changed\n"
                     "send hello g1 at 1 clean released 2 arrived 3 frozen: peer error\n"
                     "send arrive g1 up to 3 applied 1 stream 1\n"
                     "send part g1 at 1 ckpt/1\n"
                     "send report g1 at 1 clean: peer error (rank 0 left)\n");
}

/* Who comes to that step knows that it is to be saved first: the shell sees to it. */
static void test_checkpoint_is_known_in_time(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    down(&fixture, &(struct task_down){.type = TASK_DOWN_RELEASE,
                       .release = {.generation = FIRST,
                           .up_to = 2,
                           .checkpoint_at = 1,
                           .halt_at = POSITION_NONE,
                           .published = POSITION_NONE}});
    assert_true(task_core_may_enter(&fixture.core, 0));
    assert_int_equal(fixture.core.checkpoint_at, 1);
    apply_step(&fixture, 0);
    assert_true(task_core_may_enter(&fixture.core, 1));
    plan_from(&fixture, SECOND, 1, 1);
    assert_int_equal(fixture.core.phase, TASK_FROZEN);
    forget(&fixture);
    plan_from(&fixture, SECOND, 1, 1);
    assert_true(fixture.core.checkpoint_at == POSITION_NONE); /* requested again, if it still is */
}

static void test_void_exits(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    sent(&fixture, TASK_DOWN_SUPERSEDED, FIRST);
    expect(&fixture, "abort mesh: the job goes on or has ended without this task\n"
                     "exit void: the job goes on or has ended without this task\n"
                     "changed\n");
    release(&fixture, 2);
    plan_from(&fixture, SECOND, 0, 1);
    expect(&fixture, "");
    struct fixture joining = fixture_make();
    down(&joining, &(struct task_down){.type = TASK_DOWN_REFUSED,
                       .refused = {.code = CADRE_INVALID_ARGUMENT, .text = "no such job"}});
    expect(&joining, "exit void: no such job\nchanged\n");
}

static void test_abort_after_finish_gives_the_reason(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    simple(&fixture, TASK_EVENT_FINISH, 0); /* before its last release: the user broke off */
    expect(&fixture, "changed\nsend report g1 at 0 clean: finished\n");
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    expect(&fixture, "abort mesh: task 0 died of signal 9\nchanged\n");
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    expect(&fixture, "");
    plan_from(&fixture, SECOND, 0, 1); /* finishes again in the next generation */
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    simple(&fixture, TASK_EVENT_FINISH, 0);
    /* It begins no step of it: that it is there it says by an arrival alone. */
    expect(&fixture, "form\nchanged\nchanged\nchanged\n"
                     "send arrive g2 up to 0 applied 0 stream 1\n"
                     "send report g2 at 0 clean: finished\n");
}

static void test_sync_failure_is_reported(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    plan_from(&fixture, FIRST, 0, 0);
    forget(&fixture);
    step(&fixture, &(struct task_event){.type = TASK_EVENT_SYNC_FAILED, .text = "rank 0 is mute"});
    expect(&fixture, "abort mesh: rank 0 is mute\n"
                     "changed\n"
                     "send report g1 at 0 dirty: peer error (rank 0 is mute)\n");
    step(&fixture, &(struct task_event){.type = TASK_EVENT_SYNC_FAILED, .text = "again"});
    expect(&fixture, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_lifecycle),
        cmocka_unit_test(test_source_keeps_its_state),
        cmocka_unit_test(test_several_streams),
        cmocka_unit_test(test_epoch_that_is_left_early),
        cmocka_unit_test(test_the_wait_for_a_release_is_known),
        cmocka_unit_test(test_batchless_steps_share_messages),
        cmocka_unit_test(test_arrives_only_with_what_is_ready),
        cmocka_unit_test(test_bad_releases),
        cmocka_unit_test(test_halt),
        cmocka_unit_test(test_halt_at_its_position),
        cmocka_unit_test(test_notice),
        cmocka_unit_test(test_halt_that_was_passed_is_not_orderly),
        cmocka_unit_test(test_abort_lets_a_running_apply_end),
        cmocka_unit_test(test_frozen_between_collective_and_apply),
        cmocka_unit_test(test_torn_apply_is_dirty),
        cmocka_unit_test(test_behind_receives_and_is_dirty_meanwhile),
        cmocka_unit_test(test_plans_that_do_not_count),
        cmocka_unit_test(test_a_plan_with_a_part_of_the_roster),
        cmocka_unit_test(test_reconnect_resends_everything),
        cmocka_unit_test(test_checkpoint_is_known_in_time),
        cmocka_unit_test(test_void_exits),
        cmocka_unit_test(test_abort_after_finish_gives_the_reason),
        cmocka_unit_test(test_sync_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
