/* SPDX-License-Identifier: Apache-2.0
 * Workers that are silent for a lease: of each job that others carry on the silent tasks are lost,
 * those of the others are waited for. Lease 10 s, rewind patience 40 s. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec two_tasks = {.tasks = 2, .tasks_min = 2, .max_restarts = 2};

static void beat(struct script *s, uint64_t link, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        heartbeat(s, link);
        wait_us(s, SECOND);
    }
}

static void comes_back(struct script *s, uint64_t link, const char *name, uint32_t slot)
{
    struct core_worker_view view;
    assert_true(core_worker_named(s->core, name, &view));
    struct task_ref held = ref(s, 1, slot);
    hello(s, link, name, view.boot_nonce, 1, &held, 1);
}

/* The same daemon, and the task in the job's generation, as if nothing had been. */
static void goes_on(struct script *s, uint64_t link, uint32_t slot)
{
    struct core_job_view job = job_view(s, 1);
    task_hello(s, link, 1, slot, job.generation.number);
    arrived(s, link, 1, 1, job.released, job.released);
}

/* The coordinator is cut off from all workers of a job for longer than the lease. */
static void a_cut_of_the_coordinator_loses_nothing(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    wait_us(s, 30 * SECOND);
    expect_output(s,
        "refuse link 1: UNAVAILABLE: the worker was silent for too long: connect again\n"
        "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n");
    assert_int_equal(core_worker_count(s->core), 2);
    comes_back(s, 3, "a", 0);
    goes_on(s, 3, 0);
    beat(s, 3, 8); /* the other has a lease from now on */
    comes_back(s, 4, "b", 1);
    goes_on(s, 4, 1);
    script_skip(s);
    arrived(s, 3, 1, 1, 7, 5);
    arrived(s, 4, 1, 1, 7, 5);
    expect_output(s, "record job 1: released to 7, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 7\n");
    assert_int_equal(job_view(s, 1).generation.number, 1);
    assert_int_equal(core_workers_lost(s->core), 0);
    script_close(s);
}

static void who_does_not_come_back_behind_the_others_is_lost(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    wait_us(s, 20 * SECOND);
    comes_back(s, 3, "a", 0);
    goes_on(s, 3, 0);
    script_skip(s);
    beat(s, 3, 9);
    expect_output(s, "");
    beat(s, 3, 5);
    expect_output(s,
        "tell job 1: abort g1: task 1 was lost with worker b, which was silent for 10 s\n"
        "record job 1: task 1 lost 0/0\n");
    script_close(s);
}

/* Its host died, as far as is known. */
static void a_job_waits_no_longer_than_the_patience(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    join(s, 3, "c", 2);
    beat(s, 3, 39);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    assert_true(job_view(s, 1).formed);
    beat(s, 3, 2);
    assert_false(job_view(s, 1).formed);
    assert_int_equal(core_worker_count(s->core), 1);
    assert_int_equal(core_workers_lost(s->core), 2);
    assert_non_null(strstr(s->transcript, "record! job 1: task 0#3 on c\n"));
    script_close(s);
}

/* It ends its tasks by itself: then there is nothing to wait for. */
static void no_task_is_waited_for_beyond_the_orphan_limit(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 1, .tasks_min = 1};
    struct script *s = stage_running(&spec, 1, 5);
    const struct task_ref held = ref(s, 1, 0);
    const struct agent_up up = {.type = AGENT_UP_HELLO,
        .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
            .name = "a",
            .boot_nonce = 1001,
            .slots = 1,
            .orphan_us = 15 * SECOND,
            .tasks = &held,
            .task_count = 1}};
    step(s, &(struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {7}, .up = &up}});
    wait_us(s, 14 * SECOND);
    assert_true(job_view(s, 1).formed);
    wait_us(s, 2 * SECOND);
    assert_false(job_view(s, 1).formed);
    script_close(s);
}

static void a_restarted_daemon_ends_the_wait(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    wait_us(s, 15 * SECOND);
    script_skip(s);
    hello(s, 3, "a", 77, 1, NULL, 0);
    expect_output(s,
        "welcome link 3: worker 3\n"
        "tell job 1: abort g1: task 0 was lost with worker a, which was started again\n"
        "record job 1: task 0 lost 0/0\n"
        "record! job 1: task 0#3 on a\n"
        "start again job 1 on link 3\n");
    script_close(s);
}

/* Job 2 has a task on another worker that is alive, job 1 has none. What is lost stays lost. */
static void each_job_decides_for_itself(void **state)
{
    (void)state;
    const struct core_job_spec one = {.tasks = 1, .tasks_min = 1};
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    join(s, 2, "b", 1);
    submit_spec(s, 1, &one);       /* on "a" */
    submit_spec(s, 2, &two_tasks); /* one on each */
    started(s, 1, 1, 0);
    started(s, 1, 2, 0);
    started(s, 2, 2, 1);
    task_hello(s, 1, 1, 0, 0);
    task_hello(s, 1, 2, 0, 0);
    task_hello(s, 2, 2, 1, 0);
    arrived(s, 1, 1, 1, 5, 0);
    arrived(s, 1, 2, 1, 5, 0);
    arrived(s, 2, 2, 1, 5, 0);
    script_skip(s);
    beat(s, 2, 11);
    expect_output(s,
        "refuse link 1: UNAVAILABLE: the worker was silent for too long: connect again\n"
        "tell job 2: abort g1: task 0 was lost with worker a, which was silent for 10 s\n"
        "record job 2: task 0 lost 0/0\n");
    assert_true(job_view(s, 1).formed);
    submit_spec(s, 3, &one); /* slots of silent workers are not offered */
    assert_int_equal(job_view(s, 3).state, JOB_QUEUED);
    script_skip(s);
    const struct task_ref held[2] = {
        {.job = {1}, .slot = 0, .incarnation = 1}, {.job = {2}, .slot = 0, .incarnation = 1}};
    hello(s, 3, "a", 1001, 2, held, 2);
    assert_non_null(strstr(s->transcript, "stop task 2/0#1 on link 3\n"));
    assert_null(strstr(s->transcript, "job 1:"));
    assert_int_equal(job_view(s, 1).generation.number, 1);
    script_close(s);
}

/* The one that reported has half a step applied, and the one that may have the state is silent. */
static void the_last_that_may_have_the_state_is_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    peer_error(s, 1, 1, 0, 3);
    const struct task_report torn = {.position = 3, .reason = REPORT_ABORT, .text = ""};
    report(s, 1, 1, 0, &torn);
    link_down(s, 2);
    script_skip(s);
    beat(s, 1, 25);
    expect_output(s, "");
    comes_back(s, 4, "b", 1);
    task_hello(s, 4, 1, 1, 1);
    script_skip(s);
    frozen(s, 4, 1, 1, 4, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1, source rank 1\n"
                     "tell job 1: plan g2\n");
    assert_false(job_view(s, 1).restores);
    script_close(s);
}

/* It is not known what a program without a hello holds. */
static void a_plain_program_is_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    script_skip(s);
    beat(s, 1, 35);
    expect_output(
        s, "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n");
    comes_back(s, 3, "b", 1);
    gone(s, 3, 1, 1, 0, 0, "");
    gone(s, 1, 1, 0, 0, 0, "");
    collected(s, 3, 1, 1);
    script_skip(s);
    collected(s, 1, 1, 0);
    assert_non_null(strstr(s->transcript, "succeeded"));
    script_close(s);
}

/* What a task does after bye is its own: its job does not fail because it is silent. */
static void a_job_at_its_end_is_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    arrived(s, 1, 1, 1, 5, 5);
    arrived(s, 2, 1, 1, 5, 5);
    finished(s, 1, 1, 0, 5);
    finished(s, 2, 1, 1, 5);
    gone(s, 1, 1, 0, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    beat(s, 1, 30);
    comes_back(s, 3, "b", 1);
    gone(s, 3, 1, 1, 0, 0, "");
    script_skip(s);
    collected(s, 3, 1, 1);
    assert_non_null(strstr(s->transcript, "succeeded"));
    script_close(s);
}

static void a_job_that_is_cancelled_is_not_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    wait_us(s, 15 * SECOND);
    cancel(s, 9, 1);
    script_skip(s);
    wait_us(s, 3 * SECOND);
    assert_non_null(strstr(s->transcript, "cancelled"));
    assert_int_equal(core_worker_count(s->core), 0);
    script_close(s);
}

static void all_beat(struct script *s, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        heartbeat(s, 1);
        heartbeat(s, 2);
        heartbeat(s, 4);
        wait_us(s, SECOND);
    }
}

/* The server that has the copy is alive: the lease is enough. */
static void a_server_with_a_backup_is_replaced_at_the_lease(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec_backups);
    join(s, 4, "d", 2);
    script_skip(s);
    link_down(s, 3);
    all_beat(s, 9);
    expect_output(s, "");
    all_beat(s, 2);
    expect_output(s, "tell job 1: members g1\n"
                     "record job 1: task 5 lost 0/0\n"
                     "record job 1: task 4 lost 0/0\n"
                     "record! job 1: task 4#7 on d\n"
                     "record! job 1: task 5#8 on d\n"
                     "start again job 1 on link 4\n");
    script_close(s);
}

/* No other task has what it has, and it is waited for, with all of its job; the others do not
 * receive that it is lost. */
static void a_chief_that_is_silent_is_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    link_down(s, 1);
    for (uint32_t i = 0; i < 30; i++) {
        heartbeat(s, 2);
        heartbeat(s, 3);
        wait_us(s, SECOND);
    }
    expect_output(s, "");
    const struct task_ref held[2] = {ref(s, 1, 0), ref(s, 1, 1)};
    hello(s, 9, "a", 1001, 2, held, 2);
    expect_output(s, "welcome link 9: worker 1\n");
    task_hello(s, 9, 1, 0, 1);
    expect_output(s, "tell job 1 task 0 on link 9: members g1\n");
    wait_us(s, SECOND);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* Its connection ended a moment ago: it may be cut off as the other one is. */
static void who_is_away_carries_nothing(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    beat(s, 1, 7);
    link_down(s, 1);
    script_skip(s);
    wait_us(s, 4 * SECOND);
    expect_output(
        s, "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n");
    assert_true(job_view(s, 1).formed);
    script_close(s);
}

/* A joiner that has not arrived has no state of the job yet; the silent one has. */
static void a_joiner_carries_nothing_before_it_arrives(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    collect(s, 2, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    assert_int_equal(job_view(s, 1).generation.number, 2);
    script_skip(s);
    beat(s, 2, 25);
    expect_output(
        s, "refuse link 1: UNAVAILABLE: the worker was silent for too long: connect again\n");
    script_close(s);
}

/* A cut that ended just before the lease: the second one back has as long as behind a longer one.
 */
static void the_lease_of_the_others_begins_with_the_first_who_is_back(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    wait_us(s, 9 * SECOND);
    comes_back(s, 3, "a", 0);
    goes_on(s, 3, 0);
    script_skip(s);
    beat(s, 3, 9);
    expect_output(
        s, "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n");
    beat(s, 3, 3);
    expect_output(s,
        "tell job 1: abort g1: task 1 was lost with worker b, which was silent for 10 s\n"
        "record job 1: task 1 lost 0/0\n");
    script_close(s);
}

/* One has ended behind bye and the other, whose worker is silent, does something of its own. */
static void behind_goodbye_each_task_is_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    arrived(s, 1, 1, 1, 5, 5);
    arrived(s, 2, 1, 1, 5, 5);
    finished(s, 1, 1, 0, 5);
    finished(s, 2, 1, 1, 5);
    script_skip(s);
    beat(s, 1, 30);
    expect_output(
        s, "refuse link 2: UNAVAILABLE: the worker was silent for too long: connect again\n");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    script_close(s);
}

/* All have ended well, and what one left is on a worker that is silent. */
static void outputs_are_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&two_tasks, 2, 5);
    arrived(s, 1, 1, 1, 5, 5);
    arrived(s, 2, 1, 1, 5, 5);
    finished(s, 1, 1, 0, 5);
    finished(s, 2, 1, 1, 5);
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    beat(s, 1, 15);
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_of_the_coordinator_loses_nothing),
        cmocka_unit_test(who_does_not_come_back_behind_the_others_is_lost),
        cmocka_unit_test(a_job_waits_no_longer_than_the_patience),
        cmocka_unit_test(no_task_is_waited_for_beyond_the_orphan_limit),
        cmocka_unit_test(a_restarted_daemon_ends_the_wait),
        cmocka_unit_test(each_job_decides_for_itself),
        cmocka_unit_test(the_last_that_may_have_the_state_is_waited_for),
        cmocka_unit_test(a_plain_program_is_waited_for),
        cmocka_unit_test(a_job_at_its_end_is_waited_for),
        cmocka_unit_test(a_job_that_is_cancelled_is_not_waited_for),
        cmocka_unit_test(a_server_with_a_backup_is_replaced_at_the_lease),
        cmocka_unit_test(a_chief_that_is_silent_is_waited_for),
        cmocka_unit_test(who_is_away_carries_nothing),
        cmocka_unit_test(a_joiner_carries_nothing_before_it_arrives),
        cmocka_unit_test(the_lease_of_the_others_begins_with_the_first_who_is_back),
        cmocka_unit_test(behind_goodbye_each_task_is_waited_for),
        cmocka_unit_test(outputs_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
