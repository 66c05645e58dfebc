/* SPDX-License-Identifier: Apache-2.0
 * Halts for who joins or leaves: where a task stands still, and with what it says so. */
#include "tests/unit/worker_core/task_fixture.h"

static void regroup(struct fixture *fixture, uint64_t at, uint32_t stream)
{
    release_halt(fixture, fixture->core.generation, at, at, HALT_REGROUP, stream);
}

/* It is where it may stand still; its state has this digest. */
static void stand(struct fixture *fixture, uint64_t digest)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_PAUSE_POINT, .digest = digest});
}

static void test_regroup_waits_for_the_step_to_begin(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    regroup(&fixture, 2, 1);
    apply_step(&fixture, 0);
    apply_step(&fixture, 1);
    forget(&fixture);
    assert_int_equal(fixture.core.phase, TASK_RUN); /* it may still work between its steps */
    assert_false(task_core_may_enter(&fixture.core, 2));
    assert_false(task_core_halts_next(&fixture.core));
    stand(&fixture, 71);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_STALLED, 2);
    assert_int_equal(fixture.core.window_steps, 2); /* no window helps against a halt */
    forget(&fixture);
    assert_true(task_core_halts_next(&fixture.core));
    stand(&fixture, 72);
    expect(&fixture, "changed\nsend report g1 at 2 clean: halt, in stream 1 as 72\n");
    plan_from(&fixture, SECOND, 2, 0);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    ready(&fixture, 1, 0, 10, 10);
    expect(&fixture, "form\nchanged\nchanged\n"
                     "send arrive g2 up to 4 applied 2 stream 1 wants 3\n");
}

static void test_regroup_where_the_program_waits_already(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    regroup(&fixture, 0, STREAM_ANY);
    expect(&fixture, "changed\n"); /* who waits is woken, and has its state hashed */
    assert_true(task_core_halts_next(&fixture.core));
    stand(&fixture, 70);
    expect(&fixture, "changed\nsend report g1 at 0 clean: halt, in stream 1 as 70\n");
    assert_false(task_core_halts_next(&fixture.core));
    /* In order: the mesh stays open, and a loss meanwhile is received. */
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    expect(&fixture, "abort mesh: task 0 died of signal 9\nchanged\n");
}

static void test_regroup_is_not_for_another_stream(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(2);
    release(&fixture, 2);
    regroup(&fixture, 2, 1);
    apply_step(&fixture, 0);
    apply_step(&fixture, 1);
    forget(&fixture);
    ready(&fixture, 2, 2, 5, 7); /* it evaluates first */
    simple(&fixture, TASK_EVENT_STALLED, 2);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 2 wants 3\n");
    assert_false(task_core_may_enter(&fixture.core, 2));
    assert_false(task_core_halts_next(&fixture.core));
    release_halt(&fixture, FIRST, 4, POSITION_NONE, HALT_NONE, 0); /* lifted */
    apply_step(&fixture, 2);
    /* Again, where it comes to the stream that was meant. */
    regroup(&fixture, 4, 1);
    apply_step(&fixture, 3);
    forget(&fixture);
    ready(&fixture, 1, 4, 2, 6);
    forget(&fixture);
    stand(&fixture, 74);
    expect(&fixture, "changed\nsend report g1 at 4 clean: halt, in stream 1 as 74\n");
}

static void test_regroup_is_not_for_the_middle_of_a_turn(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(2);
    release(&fixture, 2);
    regroup(&fixture, 2, 2);
    apply_step(&fixture, 0);
    apply_step(&fixture, 1);
    forget(&fixture);
    struct task_event event = {.type = TASK_EVENT_READY,
        .position = 7,
        .cursor = {.stream = 2, .first = 2, .begin = 2, .steps = 5, .nested = true}};
    step(&fixture, &event);
    simple(&fixture, TASK_EVENT_STALLED, 2);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 2 wants 3\n");
    assert_true(fixture.core.cursor.nested);
    assert_false(task_core_halts_next(&fixture.core));
    /* Frozen for another reason it reports that: no joiner enters there. */
    sent(&fixture, TASK_DOWN_ABORT, FIRST);
    assert_true(fixture.core.begun && fixture.core.begun_nested);
}

static void test_regroup_when_the_program_ends(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(1);
    release(&fixture, 1);
    regroup(&fixture, 1, 1);
    apply_step(&fixture, 0);
    forget(&fixture);
    simple(&fixture, TASK_EVENT_FINISH, 0);
    expect(&fixture, "changed\nsend report g1 at 1 clean: finished\n");
}

static void test_regroup_that_was_passed(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(10);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    forget(&fixture);
    release_halt(&fixture, FIRST, 2, 0, HALT_REGROUP, 1);
    expect(&fixture, "changed\n"
                     "abort mesh: the coordinator halts the job at step 0, and this task is at "
                     "step 1\n"
                     "changed\n"
                     "send report g1 at 1 clean: abort (the coordinator halts the job at step 0, "
                     "and this task is at step 1)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regroup_waits_for_the_step_to_begin),
        cmocka_unit_test(test_regroup_where_the_program_waits_already),
        cmocka_unit_test(test_regroup_is_not_for_another_stream),
        cmocka_unit_test(test_regroup_is_not_for_the_middle_of_a_turn),
        cmocka_unit_test(test_regroup_when_the_program_ends),
        cmocka_unit_test(test_regroup_that_was_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
