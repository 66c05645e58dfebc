/* SPDX-License-Identifier: Apache-2.0
 * A job that has to leave its machines: one step for all, saved, and then the queue or the end. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static void notice(struct script *s, uint64_t link, uint32_t slot, bool stops, uint64_t grace_us)
{
    const struct task_up up = {
        .type = TASK_UP_PREEMPT, .preempt = {.stops = stops, .grace_us = grace_us}};
    relay_up(s, link, 1, slot, &up);
}

static void checkpoint(struct script *s, uint64_t call, uint64_t job)
{
    step(s, &(struct core_event){
                .type = CORE_EVENT_CHECKPOINT, .checkpoint = {.call = {call}, .job = {job}}});
}

/* Both of two tasks have 6 in hand, 4 are released and 3 applied. */
static struct script *stage_noticed(uint32_t max_restarts)
{
    const struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = max_restarts};
    struct script *s = stage_running(&spec, 2, 4);
    arrived(s, 1, 1, 1, 6, 3);
    script_skip(s);
    notice(s, 2, 1, true, 0);
    return s;
}

/* All come to step 5. */
static void all_stop(struct script *s)
{
    arrived(s, 1, 1, 1, 6, 4);
    arrived(s, 2, 1, 1, 6, 4);
    script_skip(s);
    arrived(s, 1, 1, 1, 6, 5);
    halted(s, 1, 1, 0, 5, 1);
    arrived(s, 2, 1, 1, 6, 5);
    halted(s, 2, 1, 1, 5, 1);
    expect_output(s, "");
}

static void it_saves_and_goes_back_to_the_queue(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    expect_output(s, "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g1 to 4, halt\n");
    notice(s, 1, 0, true, 0);
    expect_output(s, ""); /* the first decides */
    all_stop(s);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    expect_output(s, "record! job 1: checkpoint at 5 in checkpoint-5.json\n"
                     "record! job 1: done at 5\n"
                     "tell job 1: bye g1\n");
    gone(s, 1, 1, 0, 42, 0, "");
    gone(s, 2, 1, 1, 1, 0, ""); /* whatever its program makes of it */
    collected(s, 1, 1, 0);
    script_skip(s);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record job 1: queued again\n"
                     "record! job 1: started, incarnations to 4\n"
                     "start job 1\n");
    struct core_job_view view = job_view(s, 1);
    assert_true(view.restores && view.checkpoint.position == 5);
    assert_int_equal(view.restarts, 0);
    script_close(s);
}

/* Of the step before the stop: that is the program's failure, and not one of saving. */
static void a_program_that_fails_on_its_way_has_failed(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    script_skip(s);
    report(s, 1, 1, 0,
        &(struct task_report){.position = 3,
            .reason = REPORT_FAILED,
            .code = CADRE_INVALID_ARGUMENT,
            .text = "loss is not finite"});
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a failed in step 3: loss is not finite\n"
        "stop job 1\n");
    script_close(s);
}

static void it_ends_when_it_may_not_start_again(void **state)
{
    (void)state;
    struct script *s = stage_noticed(0);
    all_stop(s);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    script_skip(s);
    gone(s, 1, 1, 0, 42, 0, "");
    gone(s, 2, 1, 1, 42, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: preempted CANCELLED exit 42: preempted (task 1 on worker b has to "
        "leave its machine): saved at step 5, where --restore 1 goes on\n"
        "ended job 1\n");
    script_close(s);
}

/* The chief dies while it saves: the other saves at its position, alone. */
static void a_death_while_it_saves(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    all_stop(s);
    gone(s, 1, 1, 0, 0, 9, "");
    expect_output(s, "record job 1: task 0 exited 0/9\n"
                     "record! job 1: plan g2 from 5 of 1, source rank 0\n"
                     "tell job 1: plan g2\n"
                     "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g2 to 5, halt\n");
    arrived(s, 2, 1, 1, 5, 5);
    halted(s, 2, 1, 1, 5, 1);
    part(s, 2, 1, 1, 5, "checkpoint-5.json");
    expect_output(s, "record! job 1: checkpoint at 5 in checkpoint-5.json\n"
                     "record! job 1: done at 5\n"
                     "tell job 1: bye g2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

static void who_does_not_come_is_ended(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    arrived(s, 2, 1, 1, 6, 4);
    script_skip(s);
    wait_us(s, 5 * SECOND);
    /* That nothing is saved is recorded before they are dismissed. */
    expect_output(s,
        "record! job 1: halt at 0 of stream 0\n"
        "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/1#2 on link 2\n"
        "tell task 1/0 on link 1: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/0#1 on link 1\n");
    collect(s, 1, 1, 0);
    collect(s, 2, 1, 1);
    script_skip(s);
    assert_false(job_view(s, 1).has_checkpoint);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    script_close(s);
}

static void one_that_ends_before_just_ends(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    arrived(s, 1, 1, 1, 6, 4);
    arrived(s, 2, 1, 1, 6, 4);
    script_skip(s);
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 4);
    expect_output(s, "record! job 1: no halt\n"
                     "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

static void a_drain_without_room(void **state)
{
    (void)state;
    struct script *s = stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 2}, 2, 4);
    drain(s, 5, "b");
    expect_output(s, "record! worker b is drained\n"
                     "answer 5: job 0, 0 before\n"
                     "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g1 to 4, halt\n");
    all_stop(s);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    collect(s, 1, 1, 0);
    collect(s, 2, 1, 1);
    script_skip(s);
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.state, JOB_QUEUED);
    assert_non_null(strstr(script_job_text(s, 1), "saved at step 5; waits for"));
    join(s, 3, "c", 1);
    assert_int_equal(job_view(s, 1).state, JOB_STARTING);
    script_close(s);
}

static void a_checkpoint_on_request(void **state)
{
    (void)state;
    struct script *s = stage_running(&(struct core_job_spec){.tasks = 2, .tasks_min = 2}, 2, 4);
    checkpoint(s, 5, 1);
    expect_output(s, "answer 5: job 1, 0 before\n"
                     "tell job 1: release g1 to 4\n");
    assert_int_equal(job_view(s, 1).checkpoint_at, 5);
    notice(s, 1, 0, false, 0);
    expect_output(s, ""); /* it is pending already */
    arrived(s, 1, 1, 1, 6, 4);
    arrived(s, 2, 1, 1, 6, 4);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    arrived(s, 1, 1, 1, 6, 5);
    arrived(s, 2, 1, 1, 6, 5);
    assert_true(job_view(s, 1).checkpoint_at == POSITION_NONE);
    script_skip(s);
    checkpoint(s, 6, 7);
    expect_output(s, "answer 6: NOT_FOUND: job 7 does not exist: `cadre jobs` lists them\n");
    gone(s, 1, 1, 0, 0, 9, "");
    script_skip(s);
    checkpoint(s, 7, 1);
    expect_output(s,
        "answer 7: FAILED_PRECONDITION: job 1 is between two generations, or at its end: try "
        "again in a moment\n");
    script_close(s);
}

/* Its program has begun the step that it stops before, and would take it. */
static void who_stops_may_want_more(void **state)
{
    (void)state;
    struct script *s = stage_noticed(1);
    script_skip(s);
    all_stop(s);
    wants_after(s, 2, 1, 1, 0, 0, 6);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    expect_output(s, "record! job 1: checkpoint at 5 in checkpoint-5.json\n"
                     "record! job 1: done at 5\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_saves_and_goes_back_to_the_queue),
        cmocka_unit_test(a_program_that_fails_on_its_way_has_failed),
        cmocka_unit_test(it_ends_when_it_may_not_start_again),
        cmocka_unit_test(a_death_while_it_saves),
        cmocka_unit_test(who_does_not_come_is_ended),
        cmocka_unit_test(one_that_ends_before_just_ends),
        cmocka_unit_test(a_drain_without_room),
        cmocka_unit_test(a_checkpoint_on_request),
        cmocka_unit_test(who_stops_may_want_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
