/* SPDX-License-Identifier: Apache-2.0
 * The watermark after a start of the coordinator: the tail of the record may be lost,
 * and arrivals prove that so many steps were released, and not one more. */
#include "common/model/limits.h"
#include "tests/unit/coordinator_core/script.h"

static const struct generation second = {.number = 2, .nonce = 77};

/* Tasks on a and b, in generation 2 from step 10, of which 20 are recorded as released. Task 0 has
 * said hello, task 1 has not. */
static struct script *stage_half_received(void)
{
    static const struct core_restore_task both[] = {
        {.slot = 0, .incarnation = 3, .rank = 0, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
    };
    const struct core_restore_job job = {.job = {1},
        .spec = {.tasks = 2, .tasks_min = 2, .max_restarts = 5},
        .started = true,
        .incarnation_max = 3,
        .restarts = 1,
        .generation = second,
        .roster = 2,
        .resume = 10,
        .released = 20,
        .tasks = both,
        .task_count = 2};
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = job});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct task_ref held = ref(s, 1, slot);
        hello(s, 1 + slot, slot == 0 ? "a" : "b", 51 + slot, 1, &held, 1);
    }
    relay_up(s, 1, 1, 0,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .pid = 100,
                .replicas = 1,
                .mesh_address = "127.0.0.1:9",
                .generation = second,
                .position = 19,
                .clean = true,
                .released = 20}});
    script_skip(s);
    return s;
}

/* It has applied so much, may go as far as `up_to`, and its program takes `wanted` steps at least;
 * then the other arrives as far. */
static void assert_released(uint64_t applied, uint64_t up_to, uint64_t wanted,
    const char *reported_of_it, uint64_t released)
{
    struct script *s = stage_half_received();
    wants_after(s, 2, 1, 1, applied, up_to, wanted);
    expect_output(s, reported_of_it);
    assert_int_equal(job_view(s, 1).released, released);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    script_close(s);
}

#define RELEASED(number)                                                                           \
    "record job 1: released to " number ", stream 0 epoch 0 from 0\n"                              \
    "tell job 1: release g2 to " number "\n"

static void what_was_applied_was_released(void **state)
{
    (void)state;
    assert_released(20, 21, 0, "", 20);
    assert_released(21, 21, 0, RELEASED("21"), 21);
    assert_released(22, 25, 0, RELEASED("22"), 22);
}

/* A program that is let into step S - 1 takes S steps at least. */
static void who_wants_a_step_was_released_the_one_before(void **state)
{
    (void)state;
    assert_released(20, 30, 21, "", 20);
    assert_released(20, 30, 22, RELEASED("21"), 21);
    assert_released(20, 30, 26, RELEASED("25"), 25);
    assert_released(23, 30, 22, RELEASED("23"), 23);
}

/* No task has batches for more than a window of steps beyond what was released. */
static void who_is_ahead_was_released_all_but_a_window(void **state)
{
    (void)state;
    assert_released(20, 20 + LIMIT_WINDOW_STEPS, 0, "", 20);
    assert_released(20, 21 + LIMIT_WINDOW_STEPS, 0, RELEASED("21"), 21);
    assert_released(20, 24 + LIMIT_WINDOW_STEPS, 22, RELEASED("24"), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_applied_was_released),
        cmocka_unit_test(who_wants_a_step_was_released_the_one_before),
        cmocka_unit_test(who_is_ahead_was_released_all_but_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
