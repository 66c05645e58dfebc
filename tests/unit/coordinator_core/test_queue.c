/* SPDX-License-Identifier: Apache-2.0
 * Submit, the queue and placement: gangs, strict order, limits, cancelling what waits. */
#include "tests/unit/coordinator_core/script.h"

static void workers_of(const struct script *s, uint64_t job, uint32_t tasks, uint64_t *ret_workers)
{
    for (uint32_t slot = 0; slot < tasks; slot++) {
        struct core_task_view task;
        core_job_task(s->core, (struct job_id){job}, slot, &task);
        ret_workers[slot] = task.worker.n;
    }
}

/* Ends a running job of `tasks` tasks, all on `link`. */
static void run_out(struct script *s, uint64_t link, uint64_t job, uint32_t tasks)
{
    for (uint32_t slot = 0; slot < tasks; slot++) {
        gone(s, link, job, slot, 0, 0, "");
    }
    for (uint32_t slot = 0; slot < tasks; slot++) {
        collected(s, link, job, slot);
    }
}

static void a_job_is_placed_at_once(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    script_skip(s);
    submit(s, 5, 2, 0);
    expect_output(s, "record! job 1: submitted 2 tasks\n"
                     "answer 5: job 1, 0 before\n"
                     "record! job 1: started, incarnations to 2\n"
                     "start job 1\n");
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.state, JOB_STARTING);
    assert_int_equal(view.workers, 2);
    assert_string_equal(script_job_text(s, 1), "0 of 2 tasks run");
    struct worker_id worker;
    struct link_id link;
    uint32_t members;
    core_job_worker(s->core, view.job, 1, &worker, &link, &members);
    assert_int_equal(worker.n, 2);
    assert_int_equal(link.n, 2);
    assert_int_equal(members, 0);
    script_close(s);
}

static void a_gang_waits_for_all_its_slots(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    submit(s, 0, 3, 0);
    assert_string_equal(script_job_text(s, 1), "waits for workers: none has joined");
    join(s, 1, "a", 1);
    assert_string_equal(
        script_job_text(s, 1), "waits for more workers: it asks for 3 slots, the cluster has 1");
    join(s, 2, "b", 1);
    script_skip(s);
    join(s, 3, "c", 1);
    expect_output(s, "welcome link 3: worker 3\n"
                     "record! job 1: started, incarnations to 3\n"
                     "start job 1\n");
    script_close(s);
}

static void two_run_and_the_third_queues(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    join(s, 2, "b", 2);
    submit(s, 1, 1, 0);
    submit(s, 2, 2, 0);
    script_skip(s);
    submit(s, 3, 3, 0);
    expect_output(s, "record! job 3: submitted 3 tasks\n"
                     "answer 3: job 3, 0 before\n");
    assert_string_equal(script_job_text(s, 3), "waits for 3 free slots, 1 of 4 is free");
    /* A small one does not overtake it, though it would fit. */
    submit(s, 4, 1, 0);
    assert_string_equal(script_job_text(s, 4), "waits for its turn: 1 job is before it");
    script_skip(s);
    uint64_t at[2];
    workers_of(s, 2, 2, at);
    gone(s, at[0], 2, 0, 0, 0, "");
    gone(s, at[1], 2, 1, 0, 0, "");
    collected(s, at[0], 2, 0);
    collected(s, at[1], 2, 1);
    expect_output(s,
        "record job 2: task 0 exited 0/0\n"
        "record job 2: task 1 exited 0/0\n"
        "stop task 2/0#1 on link 1\n"
        "stop task 2/1#2 on link 2\n"
        "record! job 2: succeeded OK exit 0: all tasks exited with status 0 without joining a "
        "strategy\n"
        "ended job 2\n"
        "record! job 3: started, incarnations to 3\n"
        "start job 3\n");
    script_close(s);
}

static void priority_comes_first_then_order(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    submit(s, 0, 1, 0);
    submit(s, 0, 1, 0);
    submit(s, 0, 1, 5);
    submit(s, 0, 1, 5);
    submit(s, 0, 1, -1);
    assert_int_equal(job_view(s, 3).queued_before, 0);
    assert_int_equal(job_view(s, 4).queued_before, 1);
    assert_int_equal(job_view(s, 2).queued_before, 2);
    assert_int_equal(job_view(s, 5).queued_before, 3);
    static const uint64_t order[] = {1, 3, 4, 2, 5};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(job_view(s, order[i]).state, JOB_STARTING);
        run_out(s, 1, order[i], 1);
    }
    script_close(s);
}

static void an_impossible_job_delays_no_job(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    submit(s, 0, 2, 0);
    script_skip(s);
    submit(s, 0, 1, 0);
    expect_output(s, "record! job 2: submitted 1 tasks\n"
                     "record! job 2: started, incarnations to 1\n"
                     "start job 2\n");
    /* As soon as the cluster is large enough it is the head, and no job overtakes it. */
    join(s, 2, "b", 1);
    submit(s, 0, 1, 0);
    assert_string_equal(script_job_text(s, 1), "waits for 2 free slots, 1 of 2 is free");
    assert_int_equal(job_view(s, 3).state, JOB_QUEUED);
    script_close(s);
}

static void tasks_are_spread_and_neighbours(void **state)
{
    (void)state;
    uint64_t at[5];
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 4);
    join(s, 3, "c", 3);
    submit(s, 0, 5, 0);
    workers_of(s, 1, 5, at);
    /* b, b, c, b, c were picked: each time the one with most free slots. */
    assert_int_equal(at[0], 2);
    assert_int_equal(at[1], 2);
    assert_int_equal(at[2], 2);
    assert_int_equal(at[3], 3);
    assert_int_equal(at[4], 3);
    submit(s, 0, 3, 0);
    workers_of(s, 2, 3, at);
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 2);
    assert_int_equal(at[2], 3);
    script_close(s);
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 2, .jobs_max = 2, .tasks_max = 5});
    submit(s, 1, 0, 0);
    submit(s, 2, LIMIT_TASKS_PER_JOB + 1, 0);
    expect_output(s, "answer 1: INVALID_ARGUMENT: a job has 1 to 16384 tasks, not 0\n"
                     "answer 2: INVALID_ARGUMENT: a job has 1 to 16384 tasks, not 16385\n");
    submit(s, 0, 3, 0);
    script_skip(s);
    submit(s, 3, 3, 0);
    expect_output(s,
        "answer 3: RESOURCE_EXHAUSTED: the job asks for 3 tasks and the coordinator holds 3 of "
        "at most 5: try again when a job has ended, or raise --tasks-max\n");
    submit(s, 0, 1, 0);
    script_skip(s);
    submit(s, 4, 1, 0);
    expect_output(s,
        "answer 4: RESOURCE_EXHAUSTED: the coordinator holds 2 jobs that have not ended, which "
        "is its limit: try again when one has, or raise --jobs-max\n");
    script_close(s);
}

static void memory_is_reused(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 2, .jobs_max = 4, .tasks_max = 6});
    join(s, 1, "a", 6);
    submit(s, 0, 2, 0);
    submit(s, 0, 2, 0);
    submit(s, 0, 2, 0);
    started(s, 1, 2, 1);
    run_out(s, 1, 1, 2);
    run_out(s, 1, 3, 2);
    script_skip(s);
    /* The middle one has to be moved to make room for four. */
    submit(s, 0, 4, 0);
    expect_output(s, "record! job 4: submitted 4 tasks\n"
                     "record! job 4: started, incarnations to 4\n"
                     "start job 4\n");
    struct core_task_view task;
    core_job_task(s->core, (struct job_id){2}, 1, &task);
    assert_int_equal(task.state, TASK_RUNNING);
    assert_int_equal(task.pid, 101);
    run_out(s, 1, 2, 2);
    run_out(s, 1, 4, 4);
    script_close(s);
}

static void cancelling_what_waits(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    submit(s, 0, 1, 0);
    submit(s, 0, 2, 0);
    submit(s, 0, 1, 0);
    script_skip(s);
    cancel(s, 9, 2);
    expect_output(s, "record! job 2: cancelled CANCELLED exit 130: cancelled\n"
                     "ended job 2\n"
                     "answer 9: job 2, 0 before\n"
                     "record! job 3: started, incarnations to 1\n"
                     "start job 3\n");
    cancel(s, 9, 2);
    cancel(s, 9, 17);
    cancel(s, 9, 0);
    expect_output(s, "answer 9: FAILED_PRECONDITION: job 2 has ended already\n"
                     "answer 9: NOT_FOUND: job 17 does not exist: `cadre jobs` lists them\n"
                     "answer 9: NOT_FOUND: job 0 does not exist: `cadre jobs` lists them\n");
    script_close(s);
}

static void watchers_are_notified_of_changes(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    s->shows_changes = true;
    submit(s, 0, 1, 0);
    expect_output(s, "record! job 1: submitted 1 tasks\n"
                     "changed job 1\n");
    join(s, 1, "a", 1);
    expect_output(s, "welcome link 1: worker 1\n"
                     "record! job 1: started, incarnations to 1\n"
                     "start job 1\n"
                     "changed job 1\n");
    started(s, 1, 1, 0);
    expect_output(s, "changed job 1\n");
    submit(s, 0, 1, 0);
    script_skip(s);
    join(s, 2, "b", 1);
    draining(s, 2);
    expect_output(s, "welcome link 2: worker 2\n"
                     "record! job 2: started, incarnations to 1\n"
                     "start job 2\n"
                     "changed job 2\n");
    script_close(s);
}

static void join_gpus(
    struct script *s, uint64_t link, const char *name, uint32_t slots, uint32_t gpus)
{
    s->gpus = gpus;
    join(s, link, name, slots);
    s->gpus = 0;
}

static void submit_gpus(
    struct script *s, uint32_t tasks_min, uint32_t tasks, uint32_t gpus, int32_t priority)
{
    submit_spec(s, 0,
        &(struct core_job_spec){
            .tasks = tasks, .tasks_min = tasks_min, .gpus = gpus, .priority = priority});
}

static void a_job_that_asks_for_gpus_gets_slots_that_have_them(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    uint64_t at[8];
    join(s, 1, "cpu", 8);
    join_gpus(s, 2, "eight", 2, 8);
    join_gpus(s, 3, "four", 4, 4);
    join_gpus(s, 4, "few", 4, 3); /* slots share them: none is anybody's own */
    submit_gpus(s, 2, 2, 4, 0);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    workers_of(s, 1, 2, at);
    assert_int_equal(at[0], 2);
    assert_int_equal(at[1], 2);
    submit_gpus(s, 3, 3, 1, 0);
    assert_int_equal(job_view(s, 2).state, JOB_STARTING);
    workers_of(s, 2, 3, at);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(at[i], 3);
    }
    /* As many as there are, and a CPU job takes any slot. */
    submit_gpus(s, 1, 4, 1, 0);
    workers_of(s, 3, 1, at);
    assert_int_equal(at[0], 3);
    struct core_task_view task;
    core_job_task(s->core, (struct job_id){3}, 1, &task);
    assert_int_equal(task.state, TASK_WAITING);
    submit(s, 0, 8, 0);
    assert_int_equal(job_view(s, 4).state, JOB_STARTING);
    submit_gpus(s, 1, 1, 4, 0);
    assert_string_equal(
        script_job_text(s, 5), "waits for 1 free slot with 4 GPUs, 0 of 2 are free");
    run_out(s, 2, 1, 2);
    assert_int_equal(job_view(s, 5).state, JOB_STARTING);
    workers_of(s, 5, 1, at);
    assert_int_equal(at[0], 2);
    script_close(s);
}

static void a_job_waits_for_slots_with_gpus(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "cpu", 3);
    submit_gpus(s, 2, 2, 1, 0);
    assert_string_equal(script_job_text(s, 1),
        "waits for more workers: it asks for 2 slots with 1 GPU each, the cluster has none such "
        "among 3 slots");
    submit(s, 0, 1, 0); /* no job waits for what no worker has */
    assert_int_equal(job_view(s, 2).state, JOB_STARTING);
    join_gpus(s, 2, "one", 1, 1);
    assert_string_equal(script_job_text(s, 1),
        "waits for more workers: it asks for 2 slots with 1 GPU each, the cluster has 1 among 4 "
        "slots");
    submit_gpus(s, 1, 1, 1, 0);
    assert_int_equal(job_view(s, 3).state, JOB_STARTING);
    join_gpus(s, 3, "two", 1, 2);
    assert_string_equal(
        script_job_text(s, 1), "waits for 2 free slots with 1 GPU each, 1 of 2 is free");
    submit(s, 0, 1, 0); /* the queue's order is strict */
    assert_string_equal(script_job_text(s, 4), "waits for its turn: 1 job is before it");
    run_out(s, 2, 3, 1);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    assert_int_equal(job_view(s, 4).state, JOB_STARTING);
    submit_gpus(s, 1, 1, 2, 0);
    assert_string_equal(
        script_job_text(s, 5), "waits for 1 free slot with 2 GPUs, 0 of 1 are free");
    link_down(s, 3);
    assert_string_equal(
        script_job_text(s, 5), "waits for 1 free slot with 2 GPUs, 0 of 1 are free");
    script_close(s);
}

static void a_worker_reports_how_many_gpus_within_limits(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join_gpus(s, 1, "a", 1, LIMIT_GPUS_PER_WORKER + 1);
    expect_output(s,
        "refuse link 1: INVALID_ARGUMENT: a worker has at most 64 GPUs, not 65: use fewer with "
        "--gpus\n");
    join_gpus(s, 2, "b", 1, LIMIT_GPUS_PER_WORKER);
    submit_gpus(s, 1, 1, LIMIT_GPUS_PER_WORKER, 0);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_placed_at_once),
        cmocka_unit_test(a_job_that_asks_for_gpus_gets_slots_that_have_them),
        cmocka_unit_test(a_job_waits_for_slots_with_gpus),
        cmocka_unit_test(a_worker_reports_how_many_gpus_within_limits),
        cmocka_unit_test(a_gang_waits_for_all_its_slots),
        cmocka_unit_test(two_run_and_the_third_queues),
        cmocka_unit_test(priority_comes_first_then_order),
        cmocka_unit_test(an_impossible_job_delays_no_job),
        cmocka_unit_test(tasks_are_spread_and_neighbours),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(memory_is_reused),
        cmocka_unit_test(cancelling_what_waits),
        cmocka_unit_test(watchers_are_notified_of_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
