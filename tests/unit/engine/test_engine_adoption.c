/* SPDX-License-Identifier: Apache-2.0
 * A coordinator is restarted in the middle of a job: its tasks are adopted where they stand, and
 * nothing is started, planned or sent again without need. */
#include <string.h>

#include "tests/unit/engine/stage.h"

/* Three tasks on two workers, released to step 4; the coordinator is killed and started again. */
static struct stage *stage_restarted(bool tail_is_lost)
{
    struct stage *stage = stage_formed();
    distributed(stage, 1, 1, 0, 1000);
    for (uint64_t up_to = 1; up_to <= 4; up_to++) {
        arrived(stage, 1, 1, 2, up_to);
        arrived(stage, 2, 1, 1, up_to);
    }
    flush(stage);
    if (tail_is_lost) {
        store_memory_lose_tail(stage->store.inner);
    }
    stage_reopen(stage);
    stage_skip(stage);
    return stage;
}

static void come_back(struct stage *stage)
{
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    rejoin(stage, 2, "two", 2, 1, 2, 1);
    for (uint32_t slot = 0; slot < 3; slot++) {
        task_hello_again(stage, slot < 2 ? 1 : 2, 1, slot, 3, 4);
    }
}

static void tasks_are_adopted_at_their_position(void **state)
{
    (void)state;
    struct stage *stage = stage_restarted(false);
    struct job_info info;
    flush(stage);
    expect_output(stage, "changed 1: running\n");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.generation, 1);
    assert_int_equal(info.roster, 3);
    assert_string_equal(info.tasks[2].worker, "two");
    assert_int_equal(info.tasks[2].incarnation, 3);
    assert_false(info.has_progress);
    come_back(stage);
    flush(stage);
    expect_output(stage, "link 1: welcome worker 1\n"
                         "link 2: welcome worker 2\n"
                         "link 1 task 1/0: release g1 to 4\n"
                         "link 1 task 1/1: release g1 to 4\n"
                         "link 2 task 1/2: release g1 to 4\n"
                         "changed 1: running\n");
    arrived(stage, 1, 1, 2, 5);
    arrived(stage, 2, 1, 1, 5);
    flush(stage);
    expect_output(stage, "commit: watermark 1\n"
                         "link 1 job 1: release g1 to 5\n"
                         "link 2 job 1: release g1 to 5\n");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.tasks[2].pid, 102);
    assert_int_equal(info.position, 4);
    stage_close(stage);
}

/* The watermarks were never synced: the tasks know better than the ledger. */
static void a_lost_tail_is_made_up_for_by_the_tasks(void **state)
{
    (void)state;
    struct stage *stage = stage_restarted(true);
    come_back(stage);
    flush(stage);
    expect_output(stage,
        "commit!: watermark 1\n" /* with the start of the coordinator */
        "link 1: welcome worker 1\n"
        "link 2: welcome worker 2\n"
        "link 1 job 1: release g1 to 4\n" /* to all: some may not have received it */
        "link 2 job 1: release g1 to 4\n"
        "link 1 task 1/1: release g1 to 4\n"
        "link 2 task 1/2: release g1 to 4\n"
        "changed 1: running\n");
    arrived(stage, 1, 1, 2, 5);
    arrived(stage, 2, 1, 1, 5);
    flush(stage);
    expect_output(stage, "commit: watermark 1\n"
                         "link 1 job 1: release g1 to 5\n"
                         "link 2 job 1: release g1 to 5\n");
    stage_close(stage);
}

/* One worker never comes back: after its lease the job goes on without it, or waits for a place. */
static void a_worker_that_stays_away_is_lost(void **state)
{
    (void)state;
    struct stage *stage = stage_restarted(false);
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    task_hello_again(stage, 1, 1, 0, 3, 4);
    task_hello_again(stage, 1, 1, 1, 3, 4);
    flush(stage);
    stage_skip(stage);
    stage->now_us += 9 * SECOND;
    heartbeat(stage, 1);
    stage->now_us += 2 * SECOND;
    engine_tick(stage->engine, stage->now_us);
    flush(stage);
    expect_output(stage,
        "commit: task exit 1\n"
        "link 1 job 1: abort g1: task 2 was lost with worker two, which did not come back "
        "for 10 s after the coordinator was started again\n"
        "changed 1: running\n");
    stage_close(stage);
}

/* And then a worker with room comes: the lost task begins there as a joiner of those that are left.
 */
static void a_lost_task_begins_elsewhere(void **state)
{
    (void)state;
    struct stage *stage = stage_restarted(false);
    struct job_info info;
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    task_hello_again(stage, 1, 1, 0, 3, 4);
    task_hello_again(stage, 1, 1, 1, 3, 4);
    flush(stage);
    stage->now_us += 9 * SECOND;
    heartbeat(stage, 1);
    stage->now_us += 2 * SECOND;
    engine_tick(stage->engine, stage->now_us);
    report(stage, 1, 1, 0, 4, REPORT_ABORT);
    report(stage, 1, 1, 1, 3, REPORT_ABORT);
    flush(stage);
    stage_skip(stage);
    join(stage, 3, "three", 1);
    flush(stage);
    expect_output(stage, "commit!: task 1\n"
                         "link 3: welcome worker 3\n"
                         "link 3: start 1/2#4 of 3 program\n"
                         "changed 1: running\n");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_string_equal(info.tasks[2].worker, "three");
    assert_int_equal(info.tasks[2].incarnation, 4);
    assert_int_equal(info.tasks[2].state, TASK_STARTING);
    stage_reopen(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_string_equal(info.tasks[2].worker, "three");
    assert_int_equal(info.tasks[2].incarnation, 4);
    stage_close(stage);
}

static void a_job_that_was_ending_goes_on_ending(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    cancel(stage, 5, 1);
    flush(stage);
    stage_reopen(stage);
    stage_skip(stage);
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    rejoin(stage, 2, "two", 2, 1, 2, 1);
    flush(stage);
    expect_output(stage, "link 1: welcome worker 1\n"
                         "link 1: stop job 1, one task\n"
                         "link 1: stop job 1, one task\n"
                         "link 2: welcome worker 2\n"
                         "link 2: stop job 1, one task\n"
                         "changed 1: ending\n");
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(stage, slot < 2 ? 1 : 2, 1, slot, 0, "");
        collected(stage, slot < 2 ? 1 : 2, 1, slot);
    }
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.state, JOB_CANCELLED);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_are_adopted_at_their_position),
        cmocka_unit_test(a_lost_tail_is_made_up_for_by_the_tasks),
        cmocka_unit_test(a_worker_that_stays_away_is_lost),
        cmocka_unit_test(a_lost_task_begins_elsewhere),
        cmocka_unit_test(a_job_that_was_ending_goes_on_ending)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
