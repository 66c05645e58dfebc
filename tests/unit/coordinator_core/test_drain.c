/* SPDX-License-Identifier: Apache-2.0
 * Drains of clients: over a start of the coordinator, at their limit, and when a task
 * does not come to the edge of a step. */
#include "tests/unit/coordinator_core/script.h"

/* The job of two tasks that was on a drained worker when the coordinator ended leaves it. */
static void a_job_leaves_a_drained_worker_after_a_start(void **state)
{
    (void)state;
    static const struct generation second = {.number = 2, .nonce = 77};
    static const struct core_restore_task both[] = {
        {.slot = 0, .incarnation = 1, .rank = 0, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
    };
    const struct core_restore_job job = {.job = {1},
        .spec = {.tasks = 2, .tasks_min = 1, .max_restarts = 1},
        .started = true,
        .incarnation_max = 2,
        .generation = second,
        .roster = 2,
        .resume = 4,
        .released = 4,
        .tasks = both,
        .task_count = 2};
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DRAIN,
                .restore_drain = {.worker = "b", .who = "alice", .why = "a new disk"}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = job});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct task_ref held = ref(s, 1, slot);
        hello(s, 1 + slot, slot == 0 ? "a" : "b", 51 + slot, 1, &held, 1);
    }
    script_skip(s);
    task_hello(s, 1, 1, 0, 2);
    task_hello(s, 2, 1, 1, 2);
    expect_output(s, "record! job 1: halt at 4\n"
                     "tell job 1: release g2 to 4, halt\n");
    script_close(s);
}

/* As many as workers may join; a drained one may be drained again, for another reason. */
static void drains_are_limited(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 1, .jobs_max = 1, .tasks_max = 4});
    join(s, 1, "a", 1);
    drain(s, 1, "a");
    drain(s, 2, "a");
    link_down(s, 1);
    wait_us(s, 11 * SECOND);
    script_skip(s);
    join(s, 2, "b", 1);
    drain(s, 3, "b");
    drain(s, 4, "a");
    expect_output(s,
        "welcome link 2: worker 2\n"
        "answer 3: RESOURCE_EXHAUSTED: as many workers are drained as may join: end a drain "
        "with `cadre undrain`, or raise --workers-max\n"
        "record! worker a is drained\n"
        "answer 4: job 0, 0 before\n");
    script_close(s);
}

/* Before a step of its generation is done, of a job that may not fail once. */
static void who_does_not_leave_in_time_is_no_failure(void **state)
{
    (void)state;
    struct script *s =
        stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 1, .max_restarts = 0}, 2, 0);
    drain(s, 0, "b");
    halted(s, 1, 1, 0, 0, 1);
    script_skip(s);
    wait_us(s, 5 * SECOND);
    expect_output(s,
        "record! job 1: plan g2 from 0 of 0, source rank 0\n"
        "tell job 1: plan g2\n"
        "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/1#2 on link 2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_leaves_a_drained_worker_after_a_start),
        cmocka_unit_test(drains_are_limited),
        cmocka_unit_test(who_does_not_leave_in_time_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
