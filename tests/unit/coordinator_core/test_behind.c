/* SPDX-License-Identifier: Apache-2.0
 * A ledger that is older than what tasks have seen, because a disk lied about an fsync or a copy
 * was put back (protocol, rule 30): the job waits, and no task of it is superseded, reset or
 * stopped. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

#define LATER (1000 * SECOND)

static const struct core_restore_task both[] = {
    {.slot = 0, .incarnation = 1, .rank = 0, .worker = "a"},
    {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
};

/* Two tasks on a and b, in generation 2 of 10 steps; or, before the first plan, in none. */
static struct script *stage_restored(uint64_t generation)
{
    struct core_restore_task tasks[2];
    memcpy(tasks, both, sizeof(tasks));
    tasks[0].rank = generation > 0 ? 0 : UINT32_MAX;
    tasks[1].rank = generation > 0 ? 1 : UINT32_MAX;
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                .restore = {.job = {1},
                    .spec = {.tasks = 2, .tasks_min = 1, .max_restarts = 5},
                    .started = true,
                    .incarnation_max = 2,
                    .generation = {.number = generation, .nonce = generation > 0 ? 77 : 0},
                    .roster = generation > 0 ? 2 : 0,
                    .tasks = tasks,
                    .task_count = 2}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct task_ref held = ref(s, 1, slot);
        hello(s, slot + 1, slot == 0 ? "a" : "b", 51 + slot, 1, &held, 1);
    }
    script_skip(s);
    return s;
}

static void says_hello(struct script *s, uint32_t slot, struct generation generation)
{
    relay_up(s, slot + 1, 1, slot,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .pid = 100,
                .replicas = 1,
                .mesh_address = "127.0.0.1:9",
                .generation = generation,
                .position = 4,
                .clean = true,
                .released = 5}});
}

/* Heartbeats of both workers: no lease is over. */
static void time_passes(struct script *s)
{
    for (unsigned i = 0; i < 40; i++) {
        heartbeat(s, 1);
        heartbeat(s, 2);
        wait_us(s, 5 * SECOND);
    }
}

static void a_job_with_an_older_ledger_waits(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    assert_false(core_is_behind(s->core));
    says_hello(s, 0, (struct generation){.number = 3, .nonce = 78});
    assert_true(core_is_behind(s->core));
    says_hello(s, 1, (struct generation){.number = 3, .nonce = 78});
    expect_output(s, "");
    assert_string_equal(script_job_text(s, 1),
        "task 0 on worker a is in generation 3, and the newest in the ledger is 2: the ledger is "
        "older than the job, which waits; its tasks keep their state. Start the coordinator with "
        "the newer ledger, or cancel the job and submit it again with --restore 1");
    time_passes(s);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_true(job_view(s, 1).behind);
    step(s, &(struct core_event){
                .type = CORE_EVENT_CHECKPOINT, .checkpoint = {.call = {7}, .job = {1}}});
    assert_non_null(strstr(s->transcript, "answer 7: FAILED_PRECONDITION: task 0 on worker a"));
    script_skip(s);
    /* A client decides what becomes of it. */
    cancel(s, 8, 1);
    expect_output(s, "answer 8: job 1, 0 before\n"
                     "tell job 1: abort g2: cancelled\n"
                     "stop job 1\n");
    collect(s, 1, 1, 0);
    collect(s, 2, 1, 1);
    script_close(s);
}

static void a_lost_first_plan_is_noticed(void **state)
{
    (void)state;
    struct script *s = stage_restored(0);
    says_hello(s, 1, (struct generation){.number = 1, .nonce = 5});
    says_hello(s, 0, (struct generation){.number = 1, .nonce = 5});
    time_passes(s);
    expect_output(s, "");
    assert_memory_equal(
        script_job_text(s, 1), "task 1 on worker b is in generation 1, and the newest", 53);
    script_close(s);
}

static void a_number_with_another_nonce_is_another_line(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    says_hello(s, 0, (struct generation){.number = 2, .nonce = 5});
    time_passes(s);
    expect_output(s, "");
    assert_true(job_view(s, 1).behind);
    script_close(s);
}

/* The record of its start is lost, with that of its predecessor's end. */
static void a_newer_start_of_a_task_is_kept(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    struct task_ref newer = {.job = {1}, .slot = 1, .incarnation = 3};
    link_down(s, 2);
    hello(s, 4, "b", 52, 1, &newer, 1);
    expect_output(s, "welcome link 4: worker 2\n"
                     "record job 1: task 1 lost 0/0\n");
    struct agent_up message = {.type = AGENT_UP_TASK_STARTED, .started = {.task = newer}};
    const struct core_event event = {
        .type = CORE_EVENT_AGENT_UP, .agent = {.link = {4}, .up = &message}};
    step(s, &event);
    message = (struct agent_up){.type = AGENT_UP_TASK_GONE, .gone = {.task = newer}};
    step(s, &event);
    message = (struct agent_up){.type = AGENT_UP_TASK_COLLECTED, .collected = {.task = newer}};
    step(s, &event);
    expect_output(s, ""); /* nor is its end forgotten */
    assert_memory_equal(script_job_text(s, 1),
        "worker b has start 3 of task 1, and the newest in the ledger is 2: ", 67);
    script_close(s);
}

/* All that the worker lists is looked at before any of it is stopped; once a client has cancelled
 * the job, the worker lists it again, and then it is. */
static void what_was_kept_is_stopped_after_a_cancel(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    const struct task_ref listed[] = {{.job = {1}, .slot = 0, .incarnation = 2}, /* slot 1's */
        {.job = {1}, .slot = 1, .incarnation = 3}};
    link_down(s, 2);
    hello(s, 4, "b", 52, 1, listed, 2);
    expect_output(s, "welcome link 4: worker 2\n"
                     "record job 1: task 1 lost 0/0\n");
    cancel(s, 8, 1);
    assert_non_null(strstr(s->transcript, "refuse link 4: UNAVAILABLE: a job was cancelled"));
    script_skip(s);
    hello(s, 5, "b", 52, 1, listed, 2);
    expect_output(s, "welcome link 5: worker 2\n"
                     "stop task 1/0#2 on link 5\n"
                     "stop task 1/1#3 on link 5\n");
    script_close(s);
}

/* Ends are facts: they are recorded and acknowledged, and nothing follows from them. */
static void ends_are_recorded_meanwhile(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    says_hello(s, 0, (struct generation){.number = 3, .nonce = 78});
    gone(s, 1, 1, 0, 0, 9, "");
    collected(s, 1, 1, 0);
    gone(s, 2, 1, 1, 3, 0, "");
    collected(s, 2, 1, 1);
    expect_output(s, "record job 1: task 0 exited 0/9\n"
                     "stop task 1/0#1 on link 1\n"
                     "record job 1: task 1 exited 3/0\n"
                     "stop task 1/1#2 on link 2\n");
    time_passes(s);
    expect_output(s, "");
    cancel(s, 8, 1);
    assert_non_null(strstr(s->transcript, "ended job 1\n"));
    script_close(s);
}

/* Its host dies, and the coordinator has no other task: it waits as before. */
static void workers_may_be_lost_meanwhile(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    says_hello(s, 0, (struct generation){.number = 3, .nonce = 78});
    link_down(s, 1);
    wait_us(s, LATER);
    join(s, 5, "c", 4);
    time_passes(s);
    assert_null(strstr(s->transcript, "start"));
    assert_null(strstr(s->transcript, "plan"));
    assert_true(job_view(s, 1).behind);
    script_close(s);
}

static void a_worker_with_a_newer_job_is_not_served(void **state)
{
    (void)state;
    struct script *s = stage_restored(2);
    struct task_ref newer = {.job = {4}, .slot = 0, .incarnation = 1};
    hello(s, 6, "d", 9, 1, &newer, 1);
    expect_output(s,
        "refuse link 6: FAILED_PRECONDITION: a worker keeps state of job 4, and the newest job in "
        "the ledger is 1: the ledger is older than the worker. Start the coordinator with the "
        "newer ledger, or the worker once without --keep-tasks, which drops that state\n");
    submit(s, 5, 1, 0); /* it would get the number of a job that has tasks */
    expect_output(s,
        "answer 5: FAILED_PRECONDITION: a worker keeps state of job 4, and the newest job in the "
        "ledger is 1: the ledger is older than the worker. Start the coordinator with the newer "
        "ledger, or drop that state, and then start it again\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_an_older_ledger_waits),
        cmocka_unit_test(a_lost_first_plan_is_noticed),
        cmocka_unit_test(a_number_with_another_nonce_is_another_line),
        cmocka_unit_test(a_newer_start_of_a_task_is_kept),
        cmocka_unit_test(what_was_kept_is_stopped_after_a_cancel),
        cmocka_unit_test(ends_are_recorded_meanwhile),
        cmocka_unit_test(workers_may_be_lost_meanwhile),
        cmocka_unit_test(a_worker_with_a_newer_job_is_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
