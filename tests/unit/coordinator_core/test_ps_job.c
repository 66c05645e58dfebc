/* SPDX-License-Identifier: Apache-2.0
 * Jobs whose tasks are of types: the chief alone is in the ledger, the others come and go. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

/* Killed, and nothing of it is left. */
static void dies(struct script *s, uint32_t slot)
{
    uint64_t link = link_of(s, slot);
    gone(s, link, 1, slot, 0, 9, "");
    collected(s, link, 1, slot);
}

static void members_are_reported_from_the_first_plan_on(void **state)
{
    (void)state;
    struct script *s = stage_ps_job_placed(&ps_job_spec);
    task_hello(s, 2, 1, 3, 0);
    task_hello(s, 1, 1, 1, 0);
    expect_output(s, ""); /* there is no generation yet */
    task_hello(s, 1, 1, 0, 0);
    expect_output(s, "record! job 1: plan g1 from 0\n"
                     "tell job 1: plan g1\n"
                     "tell job 1: members g1\n");
    task_hello(s, 2, 1, 2, 0); /* a worker concerns the chief */
    expect_output(s, "tell job 1 task 2 on link 2: members g1\n"
                     "tell job 1 task 0 on link 1: members g1\n");
    task_hello(s, 3, 1, 4, 0); /* a server all */
    expect_output(s, "tell job 1: members g1\n");
    task_hello(s, 3, 1, 4, 0); /* a new connection of the same */
    expect_output(s, "tell job 1 task 4 on link 3: members g1\n");
    assert_true(task_view(s, 4).here && task_view(s, 4).attempts == 1);
    assert_false(task_view(s, 5).here);
    assert_int_equal(job_view(s, 1).roster, 1);
    script_close(s);
}

static void a_server_that_dies_comes_back_where_it_was(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    uint64_t generation = job_view(s, 1).generation.number;
    gone(s, 2, 1, 3, 0, 9, "");
    expect_output(s, "record job 1: task 3 exited 0/9\n"
                     "tell job 1: members g1\n");
    assert_false(task_view(s, 3).here);
    collected(s, 2, 1, 3);
    expect_output(s, "stop task 1/3#4 on link 2\n"
                     "record! job 1: task 3#7 on b\n"
                     "start again job 1 on link 2\n");
    assert_int_equal(task_view(s, 3).predecessor, 4);
    assert_int_equal(task_view(s, 3).attempts, 2);
    assert_int_equal(job_view(s, 1).restarts, 1);
    assert_int_equal(job_view(s, 1).generation.number, generation);
    assert_string_equal(script_job_text(s, 1),
        "ps 0 (slot 3) on worker b was killed by signal 9 (Killed); "
        "it is started again");
    script_close(s);
}

static void one_failure_too_many_names_the_task(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    dies(s, 4);
    started(s, 3, 1, 4);
    dies(s, 4);
    wait_us(s, SECOND / 10);
    started(s, 3, 1, 4);
    script_skip(s);
    gone(s, 3, 1, 4, 0, 9, "");
    script_skip(s);
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.state, JOB_ENDING);
    assert_string_equal(script_job_text(s, 1),
        "ps 1 (slot 4) on worker c was killed by signal 9 (Killed); it was restarted 2 times "
        "before, as often as it may be (--max-restarts)");
    script_close(s);
}

/* Status 0, too, while the chief goes on. */
static void a_worker_that_leaves_is_started_again(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    gone(s, 1, 1, 1, 0, 0, "");
    expect_output(s, "record job 1: task 1 exited 0/0\n"
                     "tell job 1 task 0 on link 1: members g1\n");
    collected(s, 1, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 1\n"
                     "record! job 1: task 1#7 on a\n"
                     "start again job 1 on link 1\n");
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

/* All but "c" said hello. */
static void all_beat(struct script *s, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        heartbeat(s, 1);
        heartbeat(s, 2);
        heartbeat(s, 4);
        wait_us(s, SECOND);
    }
}

static void a_worker_daemon_that_is_lost_is_no_failure(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    join(s, 4, "d", 2);
    script_skip(s);
    link_down(s, 3);
    expect_output(s, "");
    wait_us(s, 9 * SECOND); /* the others keep their leases */
    heartbeat(s, 1);
    heartbeat(s, 2);
    heartbeat(s, 4);
    script_skip(s);
    wait_us(s, 2 * SECOND);
    expect_output(s, "tell job 1 task 0 on link 1: members g1\n"
                     "record job 1: task 5 lost 0/0\n"
                     "record! job 1: task 5#7 on d\n"
                     "start again job 1 on link 4\n");
    all_beat(s, 28);
    expect_output(s, ""); /* no other task has what the server has */
    all_beat(s, 2);
    expect_output(s, "tell job 1: members g1\n"
                     "record job 1: task 4 lost 0/0\n"
                     "record! job 1: task 4#8 on d\n"
                     "start again job 1 on link 4\n");
    assert_int_equal(task_view(s, 4).predecessor, 0); /* its memory is lost with the worker */
    assert_int_equal(task_view(s, 4).attempts, 2);
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

static void without_a_slot_for_a_server_it_fails_in_time(void **state)
{
    (void)state;
    struct core_job_spec spec = ps_job_spec;
    spec.wait_us = 3 * SECOND;
    struct script *s = stage_ps_job(&spec);
    link_down(s, 3);
    hello(s, 5, "c", 77, 1, NULL, 0); /* the daemon was started again, with one slot */
    script_skip(s);
    assert_int_equal(link_of(s, 4), 5);
    assert_int_equal(link_of(s, 5), 0);
    wait_us(s, 4 * SECOND);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING); /* an evaluator is not waited for */
    link_down(s, 5);
    heartbeat(s, 1);
    heartbeat(s, 2);
    for (uint32_t i = 0; i < 41; i++) {
        wait_us(s, SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    wait_us(s, 3 * SECOND);
    assert_string_equal(script_job_text(s, 1),
        "no place for ps 1 (slot 4) was found within 3 s: ps 1 (slot 4) was lost with worker c, "
        "whose connection ended and which did not come back in 40 s");
    script_close(s);
}

static void the_chief_takes_all_with_it(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    dies(s, 3);
    started(s, 2, 1, 3);
    task_hello(s, 2, 1, 3, 0);
    assert_int_equal(task_view(s, 3).attempts, 2);
    script_skip(s);
    gone(s, 1, 1, 0, 1, 0, "");
    for (uint32_t slot = 1; slot < 6; slot++) {
        assert_false(task_view(s, slot).here);
    }
    script_skip(s);
    task_hello(s, 2, 1, 3, 0); /* too late */
    expect_output(
        s, "tell task 1/3 on link 2: superseded ABORTED: the job goes on without this task\n");
    uint64_t last = task_view(s, 5).incarnation;
    collected(s, 1, 1, 0);
    for (uint32_t slot = 1; slot < 6; slot++) {
        uint64_t link = link_of(s, slot);
        gone(s, link, 1, slot, 1, 0, "");
        collected(s, link, 1, slot);
    }
    wait_us(s, SECOND / 10);
    script_skip(s);
    for (uint32_t slot = 0; slot < 6; slot++) {
        assert_true(task_view(s, slot).incarnation > last);
        assert_int_equal(task_view(s, slot).attempts, 1);
        started(s, link_of(s, slot), 1, slot);
    }
    task_hello(s, link_of(s, 3), 1, 3, 0);
    expect_output(s, ""); /* nothing of the old generation is sent to the new tasks */
    task_hello(s, link_of(s, 0), 1, 0, 0);
    expect_output(s, "record! job 1: plan g2 from 0, restarted of 0\n"
                     "tell job 1: plan g2\n"
                     "tell job 1: members g2\n");
    assert_int_equal(job_view(s, 1).restarts, 2);
    script_close(s);
}

static void servers_leave_last(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    finished(s, 1, 1, 0, 0);
    expect_output(s, "record! job 1: done at 0\n"
                     "tell job 1: bye g1\n"
                     "tell job 1: bye to workers g1\n");
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 1, 1, 1, 0, 0, "");
    gone(s, 2, 1, 2, 0, 0, "");
    script_skip(s);
    task_hello(s, 3, 1, 5, 0); /* its connection was lost: it may have missed it */
    expect_output(s, "tell job 1 task 5 on link 3: bye g1\n");
    task_hello(s, 2, 1, 3, 0); /* a server is not to leave yet */
    expect_output(s, "tell job 1 task 3 on link 2: members g1\n");
    gone(s, 3, 1, 5, 0, 0, "");
    expect_output(s, "record job 1: task 5 exited 0/0\n"
                     "tell job 1: bye to the servers g1\n");
    gone(s, 2, 1, 3, 0, 0, "");
    task_hello(s, 3, 1, 4, 0);
    expect_output(s, "record job 1: task 3 exited 0/0\n"
                     "tell job 1: members g1\n"
                     "tell job 1 task 4 on link 3: bye g1\n");
    gone(s, 3, 1, 4, 1, 0, "");
    assert_string_equal(script_job_text(s, 1),
        "ps 1 (slot 4) on worker c exited with status 1; all 0 steps were done by then");
    script_close(s);
}

static void the_chief_may_leave_after_its_workers(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    finished(s, 1, 1, 0, 0);
    gone(s, 1, 1, 1, 0, 0, "");
    gone(s, 2, 1, 2, 0, 0, "");
    gone(s, 3, 1, 5, 0, 0, "");
    script_skip(s);
    gone(s, 1, 1, 0, 0, 0, "");
    expect_output(s, "record job 1: task 0 exited 0/0\n"
                     "tell job 1: bye to the servers g1\n");
    script_close(s);
}

static void a_hanging_evaluator_is_ended(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    finished(s, 1, 1, 0, 0);
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(s, link_of(s, slot), 1, slot, 0, 0, "");
    }
    script_skip(s);
    for (int i = 0; i < 4; i++) { /* collect_us is 20 s, and leases are 10 s */
        wait_us(s, 5 * SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
        heartbeat(s, 3);
    }
    expect_output(s, "tell job 1: bye to the servers g1\n"
                     "stop task 1/5#6 on link 3\n");
    gone(s, 3, 1, 5, 0, 15, "");
    gone(s, 2, 1, 3, 0, 0, "");
    gone(s, 3, 1, 4, 0, 0, "");
    assert_string_equal(script_job_text(s, 1), "finished after 0 steps");
    for (uint32_t slot = 0; slot < 6; slot++) {
        collected(s, link_of(s, slot), 1, slot);
    }
    struct core_job_view view;
    assert_false(core_job(s->core, (struct job_id){1}, &view));
    script_close(s);
}

static void a_failure_of_an_ps_task_ends_the_job(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    relay_up(s, 2, 1, 2,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.reason = REPORT_FAILED,
                .code = CADRE_INVALID_ARGUMENT,
                .text = "no variable is named w"}});
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    assert_string_equal(
        script_job_text(s, 1), "worker 1 (slot 2) on worker b failed: no variable is named w");
    script_close(s);
}

/* Ledger messages of a ps task are dropped. */
static void ps_tasks_are_in_no_ledger(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    for (uint32_t slot = 1; slot < 6; slot++) {
        uint64_t link = link_of(s, slot);
        arrived(s, link, 1, 1, 4, 0);
        joins(s, link, 1, slot, 1);
        part(s, link, 1, slot, 0, "checkpoint-0.json");
        finished(s, link, 1, slot, 0);
        peer_error(s, link, 1, slot, 0);
        wants(s, link, 1, slot, 3);
        relay_up(s, link, 1, slot, &(struct task_up){.type = TASK_UP_STALL});
        relay_up(s, link, 1, slot,
            &(struct task_up){
                .type = TASK_UP_STREAM, .stream = {.stream = 1, .name = "d", .samples = 4}});
    }
    /* "a" has the chief, which has arrived: the arrival is its own. */
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).roster, 1);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    script_close(s);
}

static void a_drain_moves_workers_without_a_halt(void **state)
{
    (void)state;
    struct core_job_spec spec = ps_job_spec;
    spec.ps_job = (struct ps_job){.workers = 4, .servers = 1};
    struct script *s = stage_ps_job(&spec); /* workers 1 and 2 are alone on "b" */
    join(s, 4, "d", 2);
    script_skip(s);
    drain(s, 9, "b");
    expect_output(s,
        "record! worker b is drained\n"
        "answer 9: job 0, 0 before\n"
        "tell job 1 task 0 on link 1: members g1\n"
        "tell task 1/3 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/3#4 on link 2\n"
        "tell task 1/2 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/2#3 on link 2\n");
    gone(s, 2, 1, 2, 1, 0, "");
    collected(s, 2, 1, 2);
    assert_int_equal(link_of(s, 2), 4);
    assert_int_equal(job_view(s, 1).restarts, 0);
    assert_int_equal(job_view(s, 1).halt_kind, HALT_NONE);
    script_close(s);
}

static void a_drain_of_a_server_preempts(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    drain(s, 9, "c"); /* ps 1 and the evaluator */
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.halt_kind, HALT_STOP);
    assert_string_equal(script_job_text(s, 1),
        "is preempted (the worker of its chief or of a server drains): stops at step 1");
    arrived(s, 1, 1, 1, 1, 0);
    arrived(s, 1, 1, 1, 1, 1);
    halted(s, 1, 1, 0, 1, 1);
    script_skip(s);
    part(s, 1, 1, 0, 1, "checkpoint-1.json");
    expect_output(s, "record! job 1: checkpoint at 1 in checkpoint-1.json\n"
                     "record! job 1: done at 1\n"
                     "tell job 1: bye g1\n"
                     "tell job 1: bye to workers g1\n");
    for (uint32_t slot = 0; slot < 6; slot++) {
        uint64_t link = link_of(s, slot);
        gone(s, link, 1, slot, slot == 0 ? 42 : 0, 0, "");
        script_skip(s);
        collected(s, link, 1, slot);
    }
    expect_output(s, "stop task 1/5#6 on link 3\n"
                     "record job 1: queued again\n"
                     "forget job 1\n");
    assert_int_equal(job_view(s, 1).state, JOB_QUEUED); /* there is no room without "c" */
    script_close(s);
}

static void a_notice_of_a_server_preempts(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec);
    relay_up(s, 3, 1, 4, &(struct task_up){.type = TASK_UP_PREEMPT, .preempt = {.stops = true}});
    assert_string_equal(script_job_text(s, 1),
        "is preempted (ps 1 (slot 4) on worker c has to leave its machine): stops at step 1");
    script_close(s);
}

/* Programs that are none of Cadre. */
static void a_plain_chief_ends_the_job(void **state)
{
    (void)state;
    struct script *s = stage_ps_job_placed(&ps_job_spec);
    gone(s, 1, 1, 0, 0, 0, "");
    for (uint32_t slot = 1; slot < 6; slot++) {
        bool fails = slot == 3; /* it was dismissed, so that counts as nothing */
        gone(s, link_of(s, slot), 1, slot, fails, fails ? 0 : 15, "");
    }
    collected(s, 1, 1, 0);
    for (uint32_t slot = 1; slot < 5; slot++) {
        collected(s, link_of(s, slot), 1, slot);
    }
    script_skip(s);
    collected(s, 3, 1, 5);
    expect_output(s,
        "stop task 1/5#6 on link 3\n"
        "record! job 1: succeeded OK exit 0: the chief exited with status 0 without joining a "
        "strategy\n"
        "forget job 1\n"
        "ended job 1\n");
    script_close(s);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    struct core_job_spec spec = ps_job_spec;
    spec.tasks_min = 5;
    submit_spec(s, 1, &spec);
    expect_output(s,
        "answer 1: INVALID_ARGUMENT: a job with parameter servers has one task for each "
        "role, which are 6, and at least one worker\n");
    spec.tasks = spec.tasks_min = 7;
    submit_spec(s, 2, &spec);
    script_skip(s);
    assert_false(core_job(s->core, (struct job_id){1}, &(struct core_job_view){0}));
    script_close(s);
}

/* ---- a coordinator that is started again ---- */

static void restored(struct script *s)
{
    static const char *const workers[] = {"a", "a", "b", "b", "c", "c"};
    struct core_restore_task tasks[6];
    for (uint32_t slot = 0; slot < 6; slot++) {
        tasks[slot] = (struct core_restore_task){.slot = slot,
            .incarnation = 1 + slot,
            .rank = UINT32_MAX,
            .attempts = 1,
            .attempts_generation = 3};
        memcpy(tasks[slot].worker, workers[slot], 2);
    }
    tasks[0].rank = 0;
    tasks[3].attempts = 4;
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                .restore = {.job = {1},
                    .spec = ps_job_spec,
                    .started = true,
                    .incarnation_max = 9,
                    .restarts = 1,
                    .generation = {3, 77},
                    .roster = 1,
                    .tasks = tasks,
                    .task_count = 6}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {1}});
    script_skip(s);
}

static void come_back(struct script *s)
{
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t w = 0; w < 3; w++) {
        const struct task_ref held[] = {{{1}, 2 * w, 1 + 2 * w}, {{1}, 2 * w + 1, 2 + 2 * w}};
        hello(s, 11 + w, names[w], 50 + w, 2, held, 2);
    }
    script_skip(s);
}

static void a_ps_job_goes_on_when_the_coordinator_does(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    restored(s);
    come_back(s);
    task_hello(s, 11, 1, 0, 3);
    for (uint32_t slot = 1; slot < 5; slot++) {
        task_hello(s, link_of(s, slot), 1, slot, 0);
    }
    expect_output(s, ""); /* a task without a hello is not sent as lost */
    task_hello(s, 13, 1, 5, 0);
    expect_output(s, "tell job 1: members g3\n");
    for (uint32_t slot = 0; slot < 6; slot++) {
        assert_int_equal(task_view(s, slot).incarnation, 1 + slot);
        assert_true(task_view(s, slot).here);
    }
    assert_int_equal(task_view(s, 3).attempts, 4);
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

static void who_stays_silent_does_not_hold_the_others_up(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    restored(s);
    come_back(s);
    task_hello(s, 11, 1, 0, 3);
    task_hello(s, 12, 1, 3, 0);
    for (int i = 0; i < 2; i++) {
        wait_us(s, 5 * SECOND);
        heartbeat(s, 11);
        heartbeat(s, 12);
        heartbeat(s, 13);
    }
    expect_output(s, "tell job 1: members g3\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_reported_from_the_first_plan_on),
        cmocka_unit_test(a_server_that_dies_comes_back_where_it_was),
        cmocka_unit_test(one_failure_too_many_names_the_task),
        cmocka_unit_test(a_worker_that_leaves_is_started_again),
        cmocka_unit_test(a_worker_daemon_that_is_lost_is_no_failure),
        cmocka_unit_test(without_a_slot_for_a_server_it_fails_in_time),
        cmocka_unit_test(the_chief_takes_all_with_it),
        cmocka_unit_test(servers_leave_last),
        cmocka_unit_test(the_chief_may_leave_after_its_workers),
        cmocka_unit_test(a_hanging_evaluator_is_ended),
        cmocka_unit_test(a_failure_of_an_ps_task_ends_the_job),
        cmocka_unit_test(ps_tasks_are_in_no_ledger),
        cmocka_unit_test(a_drain_moves_workers_without_a_halt),
        cmocka_unit_test(a_drain_of_a_server_preempts),
        cmocka_unit_test(a_notice_of_a_server_preempts),
        cmocka_unit_test(a_plain_chief_ends_the_job),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_ps_job_goes_on_when_the_coordinator_does),
        cmocka_unit_test(who_stays_silent_does_not_hold_the_others_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
