/* SPDX-License-Identifier: Apache-2.0
 * How far a task claims steps ahead, and when it says so. */
#include "task_fixture.h"

static void test_window_widens_and_messages_thin_out(void **state)
{
    (void)state;
    enum { STEPS = 5 * LIMIT_WINDOW_STEPS, EPOCH = 10 * LIMIT_WINDOW_STEPS };
    struct fixture fixture = fixture_running(EPOCH);
    simple(&fixture, TASK_EVENT_STALLED, 0); /* could not be helped: nothing was asked before */
    assert_int_equal(fixture.core.window_steps, 2);
    release(&fixture, 2);
    apply_step(&fixture, 0);
    apply_step(&fixture, 1);
    while (fixture.core.window_steps < LIMIT_WINDOW_STEPS) {
        simple(&fixture, TASK_EVENT_STALLED, 2);
    }
    assert_int_equal(fixture.core.window_steps, LIMIT_WINDOW_STEPS);
    assert_int_equal(fixture.core.arrived, 2 + LIMIT_WINDOW_STEPS);
    uint64_t messages = 0;
    for (uint64_t position = 2; position < 2 + STEPS; position++) {
        release(&fixture, fixture.core.arrived);
        forget(&fixture);
        ready(&fixture, 1, 0, EPOCH, EPOCH); /* at every step: nothing new */
        apply_step(&fixture, position);
        messages += fixture.transcript.text[0] != '\0' ? 1 : 0;
    }
    assert_int_equal(messages, 2 * STEPS / LIMIT_WINDOW_STEPS);
}

/* Takes `steps` steps of `step_us` each; how many messages that costs. */
static uint64_t run_timed(struct fixture *fixture, uint64_t steps, uint64_t step_us)
{
    uint64_t messages = 0;
    for (uint64_t end = fixture->core.position + steps; fixture->core.position < end;) {
        release(fixture, fixture->core.arrived);
        forget(fixture);
        step(fixture, &(struct task_event){.type = TASK_EVENT_APPLY,
                          .position = fixture->core.position,
                          .now_us = fixture->core.now_us + step_us});
        step(fixture,
            &(struct task_event){.type = TASK_EVENT_APPLIED, .position = fixture->core.position});
        ready(fixture, 1, 0, 100000, 100000);
        messages += fixture->transcript.text[0] != '\0' ? 1 : 0;
    }
    return messages;
}

/* Short steps share a message; long ones have a narrow window, so that a halt takes effect soon. */
static void test_window_follows_the_time_of_a_step(void **state)
{
    (void)state;
    struct fixture fixture = fixture_running(100000);
    fixture.core.now_us = 1000000;
    run_timed(&fixture, 2 * LIMIT_WINDOW_STEPS, 50);
    assert_int_equal(fixture.core.window_steps, LIMIT_WINDOW_STEPS);
    assert_in_range(run_timed(&fixture, 5 * LIMIT_WINDOW_STEPS, 50), 2 * 5 - 1, 2 * 5 + 1);
    run_timed(&fixture, 2 * LIMIT_WINDOW_STEPS, 50000);
    assert_in_range(fixture.core.window_steps, 2, 10);
    run_timed(&fixture, 64, 500000);
    assert_int_equal(fixture.core.window_steps, TASK_WINDOW_START_STEPS);
    for (int i = 0; i < 2; i++) { /* what a wait asked for is kept, however long steps are */
        simple(&fixture, TASK_EVENT_STALLED, fixture.core.position);
    }
    run_timed(&fixture, 64, 500000);
    assert_int_equal(fixture.core.window_steps, 4 * TASK_WINDOW_START_STEPS);
}

/* What it sends says that it has begun a step, unless it takes none: a lone task that stands still
 * within one differs from one that does something else between two. */
static void test_who_is_alone_sends_as_a_step_begins(void **state)
{
    (void)state;
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    const struct roster_entry only = {
        .slot = 1, .incarnation = 5, .replicas = 2, .mesh_address = "127.0.0.1:40000"};
    down(&fixture, &(struct task_down){.type = TASK_DOWN_PLAN,
                       .plan = {.generation = FIRST,
                           .roster = &only,
                           .roster_count = 1,
                           .source = SOURCE_NONE,
                           .checkpoint_at = POSITION_NONE,
                           .halt_at = POSITION_NONE}});
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    ready(&fixture, 1, 0, 100, 100);
    release(&fixture, 2);
    forget(&fixture);
    apply_step(&fixture, 0);
    expect(&fixture, "");
    ready(&fixture, 1, 0, 100, 100);
    expect(&fixture, "send arrive g1 up to 3 applied 1 stream 1 wants 2\n");
    apply_step(&fixture, 1);
    expect(&fixture, "send arrive g1 up to 4 applied 2 stream 1\n"); /* step 2 is not released */
    ready(&fixture, 1, 0, 100, 100);
    release(&fixture, 4);
    simple(&fixture, TASK_EVENT_FLUSH, 0);
    forget(&fixture);
    apply_step(&fixture, 2);
    expect(&fixture, "");
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, ""); /* it took a step since the tick before */
    simple(&fixture, TASK_EVENT_TICK, 0);
    expect(&fixture, "send arrive g1 up to 5 applied 3 stream 1\n"); /* between two for long */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_widens_and_messages_thin_out),
        cmocka_unit_test(test_window_follows_the_time_of_a_step),
        cmocka_unit_test(test_who_is_alone_sends_as_a_step_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
