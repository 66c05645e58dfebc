/* SPDX-License-Identifier: Apache-2.0
 * A start of the coordinator from its store: the queue comes back, tasks that compute meanwhile are
 * adopted, and what no agent lists is lost. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static const struct generation second = {.number = 2, .nonce = 77};

static void restore(struct script *s, const struct core_restore_job *restore)
{
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = *restore});
}

static void restore_done(struct script *s, uint64_t job_max)
{
    step(s, &(struct core_event){
                .type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = job_max}});
}

static void queued(struct script *s, uint64_t job, uint32_t tasks, int32_t priority)
{
    restore(s, &(struct core_restore_job){.job = {job},
                   .spec = {.tasks = tasks, .tasks_min = tasks, .priority = priority}});
}

static void the_queue_comes_back(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    queued(s, 3, 1, 0);
    queued(s, 7, 1, 4);
    restore_done(s, 12);
    expect_output(s, "");
    assert_int_equal(job_view(s, 3).queued_before, 1);
    join(s, 1, "a", 2);
    expect_output(s, "welcome link 1: worker 1\n"
                     "record! job 7: started, incarnations to 1\n"
                     "start job 7\n"
                     "record! job 3: started, incarnations to 1\n"
                     "start job 3\n");
    /* No id is used twice, also of jobs that ended before the restart. */
    submit(s, 1, 1, 0);
    expect_output(s, "record! job 13: submitted 1 tasks\n"
                     "answer 1: job 13, 0 before\n");
    script_close(s);
}

static void what_does_not_fit_any_more_fails(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 1, .jobs_max = 1, .tasks_max = 4});
    queued(s, 1, 5, 0);
    queued(s, 2, 4, 0);
    queued(s, 3, 1, 0);
    restore_done(s, 3);
    expect_output(s,
        "record! job 1: failed UNAVAILABLE exit 1: the coordinator was restarted with limits "
        "that do not hold this job\n"
        "ended job 1\n"
        "record! job 3: failed UNAVAILABLE exit 1: the coordinator was restarted with limits "
        "that do not hold this job\n"
        "ended job 3\n");
    assert_int_equal(job_view(s, 2).state, JOB_QUEUED);
    script_close(s);
}

/* Two tasks on a and b, in generation 2 from step 10, of which 20 are recorded as released. */
static const struct core_restore_task both[] = {
    {.slot = 0, .incarnation = 3, .rank = 0, .worker = "a"},
    {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
};

static struct core_restore_job running(void)
{
    return (struct core_restore_job){.job = {1},
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
}

/* The daemon comes with its task, which says hello in turn. */
static void comes_back(struct script *s, uint64_t link, const char *name, uint32_t slot)
{
    struct task_ref held = ref(s, 1, slot);
    hello(s, link, name, 50 + link, 1, &held, 1);
}

static void sends_hello(struct script *s, uint64_t link, uint32_t slot, uint64_t released)
{
    relay_up(s, link, 1, slot,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .pid = 100,
                .replicas = 1,
                .mesh_address = "127.0.0.1:9",
                .generation = second,
                .position = released - 1,
                .clean = true,
                .released = released}});
}

static void arrives(struct script *s, uint64_t link, uint64_t up_to, uint64_t applied)
{
    arrived_at(
        s, link, 1, 1, up_to, applied, (struct cursor){.stream = 1, .first = 10, .begin = 10});
}

/* NULL: the job of running(). */
static struct script *stage_adopted(const struct core_restore_job *job)
{
    struct script *s = script_open(NULL);
    const struct core_restore_job plain = running();
    restore(s, job != NULL ? job : &plain);
    restore_done(s, 1);
    return s;
}

static void tasks_are_adopted(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    expect_output(s, "");
    comes_back(s, 1, "a", 0);
    comes_back(s, 2, "b", 1);
    expect_output(s, "welcome link 1: worker 1\n"
                     "welcome link 2: worker 2\n");
    sends_hello(s, 1, 0, 20);
    expect_output(s, "tell job 1 task 0 on link 1: release g2 to 20\n");
    /* The tail of the watermark was lost: the task has it, and all receive it (rules 4, 5). */
    sends_hello(s, 2, 1, 23);
    expect_output(s, "tell job 1 task 1 on link 2: release g2 to 23\n"
                     "record job 1: released to 23, stream 0 epoch 0 from 0\n"
                     "tell job 1: release g2 to 23\n");
    arrives(s, 1, 24, 23);
    arrives(s, 2, 24, 23);
    expect_output(s, "record job 1: released to 24, stream 1 epoch 0 from 10\n"
                     "tell job 1: release g2 to 24\n");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).committed, 23);
    assert_int_equal(job_view(s, 1).restarts, 1);
    wait_us(s, 9 * SECOND);
    heartbeat(s, 1);
    heartbeat(s, 2);
    wait_us(s, 9 * SECOND);
    expect_output(s, "");
    script_close(s);
}

static void an_arrival_may_come_before_a_hello(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    comes_back(s, 1, "a", 0);
    script_skip(s);
    arrives(s, 1, 25, 22);
    expect_output(s, "record job 1: released to 22, stream 1 epoch 0 from 10\n"
                     "tell job 1: release g2 to 22\n");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    script_close(s);
}

static void no_halt_before_all_were_received(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    job.spec.tasks = 3;
    struct script *s = stage_adopted(&job);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    comes_back(s, 2, "b", 1);
    join(s, 3, "c", 1);
    task_hello(s, 3, 1, 2, 0);
    arrives(s, 1, 21, 20);
    script_skip(s);
    joins(s, 3, 1, 2, 1);
    expect_output(s, ""); /* rule 4 */
    sends_hello(s, 2, 1, 20);
    expect_output(s, "tell job 1 task 1 on link 2: release g2 to 20, halt\n"
                     "record! job 1: halt at 20 of stream 1\n"
                     "tell job 1: release g2 to 20, halt\n");
    script_close(s);
}

static void a_recorded_halt_stays_pending(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    job.has_control = true;
    job.halt_at = 20;
    job.halt_kind = HALT_REGROUP;
    job.halt_stream = STREAM_ANY;
    struct script *s = stage_adopted(&job);
    comes_back(s, 1, "a", 0);
    comes_back(s, 2, "b", 1);
    sends_hello(s, 1, 0, 20);
    script_skip(s);
    halted(s, 1, 1, 0, 20, 1);
    sends_hello(s, 2, 1, 20);
    expect_output(s, "tell job 1 task 1 on link 2: release g2 to 20, halt\n");
    halted(s, 2, 1, 1, 20, 1);
    expect_output(s, "record! job 1: plan g3 from 20 of 0 1, source rank 0\n"
                     "tell job 1: plan g3\n");
    script_close(s);
}

static void who_does_not_come_is_lost(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    arrived(s, 1, 1, 1, 21, 20);
    script_skip(s);
    wait_us(s, 9 * SECOND);
    heartbeat(s, 1);
    wait_us(s, SECOND);
    expect_output(s,
        "tell job 1: abort g2: task 1 was lost with worker b, which did not come back for 10 s "
        "after the coordinator was started again\n"
        "record job 1: task 1 lost 0/0\n");
    frozen(s, 1, 1, 0, 20, 1);
    join(s, 3, "c", 1);
    expect_output(s, "welcome link 3: worker 3\n"
                     "record! job 1: task 1#4 on c\n"
                     "start again job 1 on link 3\n");
    script_close(s);
}

static void one_that_its_worker_does_not_list_is_lost(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    comes_back(s, 1, "a", 0);
    script_skip(s);
    struct task_ref older = {.job = {1}, .slot = 1, .incarnation = 1};
    hello(s, 2, "b", 9, 1, &older, 1);
    expect_output(s,
        "welcome link 2: worker 2\n"
        "tell job 1: abort g2: task 1 was lost with worker b, which came back without it\n"
        "record job 1: task 1 lost 0/0\n"
        "record! job 1: task 1#4 on b\n"
        "start again job 1 on link 2\n"
        "stop task 1/1#1 on link 2\n");
    script_close(s);
}

static void a_regroup_that_was_under_way_begins_again(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    struct core_restore_task tasks[2] = {both[0], both[1]};
    tasks[1].gone = true;
    job.tasks = tasks;
    struct script *s = stage_adopted(&job);
    expect_output(
        s, "tell job 1: abort g2: 1 of 2 tasks had ended when the coordinator was started again\n");
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    expect_output(s,
        "welcome link 1: worker 1\n"
        "tell job 1 task 0 on link 1: abort g2: 1 of 2 tasks had ended when the coordinator "
        "was started again\n");
    frozen(s, 1, 1, 0, 20, 1);
    hello(s, 2, "b", 9, 1, NULL, 0); /* nothing of it is left there */
    expect_output(s, "welcome link 2: worker 2\n"
                     "record! job 1: task 1#4 on b\n"
                     "start again job 1 on link 2\n");
    task_hello(s, 2, 1, 1, 0);
    script_skip(s);
    joins(s, 2, 1, 1, 1);
    expect_output(s, "record! job 1: plan g3 from 20 of 0 1, source rank 0\n"
                     "tell job 1: plan g3\n");
    script_close(s);
}

/* Abort was sent, and no record of it is durable: the frozen members report. */
static void frozen_members_are_a_regroup(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    comes_back(s, 1, "a", 0);
    comes_back(s, 2, "b", 1);
    sends_hello(s, 1, 0, 20);
    script_skip(s);
    frozen(s, 1, 1, 0, 20, 1);
    expect_output(s, "tell job 1: abort g2: task 0 on worker a lost its peers in step 20\n");
    sends_hello(s, 2, 1, 20);
    frozen(s, 2, 1, 1, 19, 1);
    expect_output(s,
        "tell job 1 task 1 on link 2: abort g2: task 0 on worker a lost its peers in step 20\n"
        "record! job 1: plan g3 from 20 of 0 1, source rank 0\n"
        "tell job 1: plan g3\n");
    script_close(s);
}

static void a_job_that_restarts_does_so_again(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    struct core_restore_task tasks[2] = {both[0], both[1]};
    tasks[0].rank = UINT32_MAX; /* started again since the plan */
    tasks[1].rank = UINT32_MAX;
    job.tasks = tasks;
    job.has_checkpoint = true;
    job.checkpoint.position = 15;
    struct script *s = stage_adopted(&job);
    expect_output(s, "");
    assert_true(job_view(s, 1).restores);
    comes_back(s, 1, "a", 0);
    expect_output(s, "welcome link 1: worker 1\n"
                     "stop task 1/0#3 on link 1\n");
    hello(s, 2, "b", 9, 1, NULL, 0);
    collect(s, 1, 1, 0);
    script_skip(s);
    task_hello(s, 1, 1, 0, 0);
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "record! job 1: plan g3 from 15, restarted of 0 1\n"
                     "tell job 1: plan g3\n"
                     "tell job 1: release g3 to 15\n"); /* it carries what is published */
    script_close(s);
}

static void goodbye_is_resent(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    job.done = true;
    job.done_position = 20;
    struct script *s = stage_adopted(&job);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    expect_output(s, "welcome link 1: worker 1\n"
                     "tell job 1 task 0 on link 1: bye g2\n");
    comes_back(s, 2, "b", 1);
    gone(s, 2, 1, 1, 0, 0, "");
    gone(s, 1, 1, 0, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: succeeded OK exit 0: finished after 20 steps\n"
                     "ended job 1\n");
    script_close(s);
}

static void an_ending_goes_on(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    job.ending = true;
    job.ending_as = (struct core_ending){
        .state = JOB_CANCELLED, .code = CADRE_CANCELLED, .exit_code = 130, .text = "cancelled"};
    struct script *s = stage_adopted(&job);
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    comes_back(s, 1, "a", 0);
    expect_output(s, "welcome link 1: worker 1\n"
                     "stop task 1/0#3 on link 1\n");
    gone(s, 1, 1, 0, 0, 15, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    hello(s, 2, "b", 9, 1, NULL, 0);
    expect_output(s, "welcome link 2: worker 2\n"
                     "record job 1: task 1 lost 0/0\n"
                     "record! job 1: cancelled CANCELLED exit 130: cancelled\n"
                     "ended job 1\n");
    script_close(s);
}

static void what_will_be_the_end_is_recorded(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    s->shows_endings = true;
    cancel(s, 9, 1);
    expect_output(s, "answer 9: job 1, 0 before\n"
                     "record! job 1: ending as cancelled\n"
                     "tell job 1: abort g1: cancelled\n"
                     "stop job 1\n");
    script_close(s);
}

static void a_start_that_may_not_have_been_sent_is_sent(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    struct core_restore_task tasks[2] = {both[0], both[1]};
    tasks[0].rank = UINT32_MAX;
    tasks[1].rank = UINT32_MAX;
    job.tasks = tasks;
    job.generation = (struct generation){0};
    job.resume = 0;
    job.released = 0;
    job.roster = 0;
    struct script *s = stage_adopted(&job);
    hello(s, 1, "a", 9, 1, NULL, 0);
    expect_output(s, "welcome link 1: worker 1\n"
                     "start again job 1 on link 1\n");
    comes_back(s, 2, "b", 1);
    task_hello(s, 2, 1, 1, 0);
    script_skip(s);
    task_hello(s, 1, 1, 0, 0);
    expect_output(s, "record! job 1: plan g1 from 0\n"
                     "tell job 1: plan g1\n");
    script_close(s);
}

/* How long a step has taken is not known after a start: the time before it does not count. */
static void a_stall_counts_from_the_start(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    struct script *s = script_open(NULL);
    s->now_us = 3600 * SECOND;
    restore(s, &job);
    restore_done(s, 1);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    script_skip(s);
    relay_up(s, 1, 1, 0,
        &(struct task_up){.type = TASK_UP_STALL,
            .stall = {.generation = second, .position = 20, .waited_us = SECOND}});
    wait_us(s, 2 * SECOND);
    expect_output(s, ""); /* the other is on its way */
    assert_string_equal(script_job_text(s, 1), "");
    comes_back(s, 2, "b", 1);
    sends_hello(s, 2, 1, 20);
    expect_output(s, "welcome link 2: worker 2\n"
                     "tell job 1 task 1 on link 2: release g2 to 20\n");
    script_close(s);
}

/* A third task that is in no plan, on c. */
static struct core_restore_job with_a_third(struct core_restore_task tasks[3])
{
    struct core_restore_job job = running();
    memcpy(tasks, both, sizeof(both));
    tasks[2] =
        (struct core_restore_task){.slot = 2, .incarnation = 1, .rank = UINT32_MAX, .worker = "c"};
    job.spec = (struct core_job_spec){.tasks = 3, .tasks_min = 2};
    job.restarts = 0;
    job.tasks = tasks;
    job.task_count = 3;
    return job;
}

/* The joiner has not said hello yet, and members at the halt are about to report. */
static void a_halt_for_a_joiner_stays_pending(void **state)
{
    (void)state;
    struct core_restore_task tasks[3];
    struct core_restore_job job = with_a_third(tasks);
    job.resume = 20;
    job.has_control = true;
    job.halt_at = 20;
    job.halt_kind = HALT_REGROUP;
    job.halt_stream = 1;
    struct script *s = stage_adopted(&job);
    comes_back(s, 1, "a", 0);
    comes_back(s, 2, "b", 1);
    comes_back(s, 3, "c", 2);
    script_skip(s);
    sends_hello(s, 1, 0, 20);
    expect_output(s, "tell job 1 task 0 on link 1: release g2 to 20, halt\n");
    halted(s, 1, 1, 0, 20, 1);
    expect_output(s, "");
    task_hello(s, 3, 1, 2, 0);
    joins(s, 3, 1, 2, 1);
    sends_hello(s, 2, 1, 20);
    halted(s, 2, 1, 1, 20, 1);
    expect_output(s, "tell task 1/2#1 on link 3: warm\n"
                     "tell job 1 task 1 on link 2: release g2 to 20, halt\n"
                     "record! job 1: plan g3 from 20 of 0 1 2, source rank 0\n"
                     "tell job 1: plan g3\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* The coordinator that stopped it was restarted: its exit is no failure. */
static void who_was_left_out_may_end(void **state)
{
    (void)state;
    for (int reports_it = 0; reports_it <= 1; reports_it++) {
        struct core_restore_task tasks[3];
        struct core_restore_job job = with_a_third(tasks);
        struct script *s = stage_adopted(&job);
        comes_back(s, 1, "a", 0);
        comes_back(s, 2, "b", 1);
        comes_back(s, 3, "c", 2);
        script_skip(s);
        if (reports_it) {
            task_hello(s, 3, 1, 2, 1); /* of the generation before */
            expect_output(s,
                "tell task 1/2 on link 3: superseded ABORTED: this task is not of the job's "
                "current generation\n"
                "stop task 1/2#1 on link 3\n");
        }
        gone(s, 3, 1, 2, 0, 15, "");
        expect_output(s, "record job 1: task 2 exited 0/15\n");
        assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
        collected(s, 3, 1, 2);
        expect_output(s, "stop task 1/2#1 on link 3\n"
                         "record! job 1: task 2#4 on c\n"
                         "start again job 1 on link 3\n");
        /* A new one counts. */
        gone(s, 3, 1, 2, 0, 15, "");
        assert_int_equal(job_view(s, 1).state, JOB_ENDING);
        script_close(s);
    }
}

/* One task died while the coordinator was away. The worker of another tries again only now and
 * then: it has as long as a worker has to come back at all. */
static void a_regroup_awaits_who_is_on_its_way(void **state)
{
    (void)state;
    struct script *s = stage_adopted(NULL);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    frozen(s, 1, 1, 0, 20, 1);
    expect_output(s, "welcome link 1: worker 1\n"
                     "tell job 1 task 0 on link 1: release g2 to 20\n"
                     "tell job 1: abort g2: task 0 on worker a lost its peers in step 20\n");
    wait_us(s, 8 * SECOND);
    heartbeat(s, 1);
    expect_output(s, "");
    comes_back(s, 2, "b", 1);
    sends_hello(s, 2, 1, 20);
    frozen(s, 2, 1, 1, 19, 1);
    expect_output(s,
        "welcome link 2: worker 2\n"
        "tell job 1 task 1 on link 2: abort g2: task 0 on worker a lost its peers in step 20\n"
        "record! job 1: plan g3 from 20 of 0 1, source rank 0\n"
        "tell job 1: plan g3\n");
    script_close(s);
}

/* After bye a worker was lost, and the job has failed by that: all had finished all the same. */
static void who_was_lost_after_goodbye_had_finished(void **state)
{
    (void)state;
    struct core_restore_job job = running();
    struct core_restore_task tasks[2] = {both[0], both[1]};
    tasks[1].gone = true;
    tasks[1].lost = true;
    job.tasks = tasks;
    job.done = true;
    job.done_position = 20;
    job.ending = true;
    job.ending_as =
        (struct core_ending){.state = JOB_FAILED, .code = CADRE_UNAVAILABLE, .text = "lost"};
    struct script *s = stage_adopted(&job);
    comes_back(s, 1, "a", 0);
    sends_hello(s, 1, 0, 20);
    expect_output(s, "welcome link 1: worker 1\n"
                     "tell job 1 task 0 on link 1: bye g2\n");
    gone(s, 1, 1, 0, 0, 0, "");
    script_skip(s);
    collected(s, 1, 1, 0);
    expect_output(s, "stop task 1/0#3 on link 1\n"
                     "record! job 1: failed UNAVAILABLE exit 0: lost\n"
                     "ended job 1\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_comes_back),
        cmocka_unit_test(what_does_not_fit_any_more_fails),
        cmocka_unit_test(tasks_are_adopted),
        cmocka_unit_test(an_arrival_may_come_before_a_hello),
        cmocka_unit_test(no_halt_before_all_were_received),
        cmocka_unit_test(a_recorded_halt_stays_pending),
        cmocka_unit_test(who_does_not_come_is_lost),
        cmocka_unit_test(one_that_its_worker_does_not_list_is_lost),
        cmocka_unit_test(a_regroup_that_was_under_way_begins_again),
        cmocka_unit_test(frozen_members_are_a_regroup),
        cmocka_unit_test(a_job_that_restarts_does_so_again),
        cmocka_unit_test(goodbye_is_resent),
        cmocka_unit_test(an_ending_goes_on),
        cmocka_unit_test(what_will_be_the_end_is_recorded),
        cmocka_unit_test(a_start_that_may_not_have_been_sent_is_sent),
        cmocka_unit_test(a_stall_counts_from_the_start),
        cmocka_unit_test(a_halt_for_a_joiner_stays_pending),
        cmocka_unit_test(who_was_left_out_may_end),
        cmocka_unit_test(a_regroup_awaits_who_is_on_its_way),
        cmocka_unit_test(who_was_lost_after_goodbye_had_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
