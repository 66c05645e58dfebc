/* SPDX-License-Identifier: Apache-2.0
 * Jobs of plain programs: where tasks join or leave all begin again, together. */
#include "tests/unit/coordinator_core/script.h"

static void plain_hello(struct script *s, uint64_t link, uint32_t slot)
{
    const struct task_up message = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = "0.2.0",
            .pid = 100 + slot,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .plain = true}};
    relay_up(s, link, 1, slot, &message);
}

/* Two of at most four that have saved step 4; a third has come to a free slot. The job waits for
 * others no longer than 2 s. */
static struct script *stage_coming(void)
{
    static const struct core_job_spec spec = {
        .tasks = 4, .tasks_min = 2, .max_restarts = 0, .wait_us = 2 * SECOND};
    struct script *s = stage_running(&spec, 2, 4);
    join(s, 3, "c", 1);
    plain_hello(s, 3, 2);
    part(s, 1, 1, 0, 4, "checkpoint-4");
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4);
    script_skip(s);
    return s;
}

/* It has waited for as long as others may still come. */
static struct script *stage_waiting(void)
{
    struct script *s = stage_coming();
    joins(s, 3, 1, 2, 1);
    wait_us(s, SECOND);
    expect_output(s, "");
    return s;
}

/* The members begin step 4. */
static void begin(struct script *s)
{
    arrived(s, 1, 1, 1, 5, 4);
    arrived(s, 2, 1, 1, 5, 4);
}

/* All were reset at the halt of step 4, and have exited. */
static struct script *stage_begins_again(void)
{
    struct script *s = stage_waiting();
    begin(s);
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 2, 1, 1, 4, 1);
    script_skip(s);
    return s;
}

static void exits(struct script *s, uint64_t link, uint32_t slot)
{
    gone(s, link, 1, slot, 42, 0, "");
    collected(s, link, 1, slot);
}

static void all_begin_again_with_those_that_came(void **state)
{
    (void)state;
    struct script *s = stage_waiting();
    begin(s);
    expect_output(s, "record! job 1: halt at 4 of stream 1\n"
                     "tell job 1: release g1 to 4, halt\n");
    halted(s, 1, 1, 0, 4, 1);
    expect_output(s, "");
    halted(s, 2, 1, 1, 4, 1);
    /* They are to end by themselves: none is stopped. */
    expect_output(s, "tell task 1/2#3 on link 3: reset\n"
                     "tell task 1/1#2 on link 2: reset\n"
                     "tell task 1/0#1 on link 1: reset\n");
    assert_string_equal(
        script_job_text(s, 1), "1 task joins; all tasks began again from the checkpoint of step 4");
    exits(s, 1, 0);
    plain_hello(s, 1, 0);
    exits(s, 2, 1);
    plain_hello(s, 2, 1);
    script_skip(s); /* two are enough for the job, and do not begin before the third */
    exits(s, 3, 2);
    script_skip(s);
    plain_hello(s, 3, 2);
    expect_output(s, "record! job 1: plan g2 from 4, restarted of 0 1 2\n"
                     "tell job 1: plan g2\n"
                     "tell job 1: release g2 to 4\n");
    assert_string_equal(
        script_job_text(s, 1), "1 task joins; all tasks began again from the checkpoint of step 4");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

static void what_does_not_end_is_stopped(void **state)
{
    (void)state;
    struct script *s = stage_begins_again();
    exits(s, 1, 0);
    exits(s, 2, 1);
    script_skip(s);
    wait_us(s, 5 * SECOND);
    expect_output(s, "tell task 1/2#3 on link 3: reset\n"
                     "stop task 1/2#3 on link 3\n");
    script_close(s);
}

/* What ends is no task that is missing. */
static void it_waits_for_others_when_all_have_ended(void **state)
{
    (void)state;
    struct script *s = stage_begins_again();
    wait_us(s, 4 * SECOND);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    exits(s, 1, 0);
    exits(s, 2, 1);
    exits(s, 3, 2);
    plain_hello(s, 1, 0);
    plain_hello(s, 2, 1);
    plain_hello(s, 3, 2);
    script_skip(s);
    assert_int_equal(job_view(s, 1).roster, 3);
    script_close(s);
}

static void one_start_for_those_that_come_together(void **state)
{
    (void)state;
    struct script *s = stage_coming();
    joins(s, 3, 1, 2, 1);
    join(s, 4, "d", 1);
    script_skip(s);
    wait_us(s, SECOND);
    begin(s); /* the fourth is starting */
    expect_output(s, "record job 1: released to 5, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 5\n");
    plain_hello(s, 4, 3);
    joins(s, 4, 1, 3, 1);
    script_skip(s);
    arrived(s, 1, 1, 1, 6, 5);
    arrived(s, 2, 1, 1, 6, 5); /* and has just come */
    expect_output(s, "record job 1: released to 6, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 6\n");
    wait_us(s, SECOND);
    arrived(s, 1, 1, 1, 7, 6);
    expect_output(s, "record! job 1: halt at 6 of stream 1\n"
                     "tell job 1: release g1 to 6, halt\n");
    script_close(s);
}

static void what_waits_is_shown(void **state)
{
    (void)state;
    struct script *s = stage_waiting();
    assert_string_equal(script_job_text(s, 1), "2 of 4 tasks run, 1 more waits for the next save");
    script_close(s);
}

/* A job that may not fail once. */
static void one_that_dies_while_it_waits_changes_nothing(void **state)
{
    (void)state;
    struct script *s = stage_waiting();
    gone(s, 3, 1, 2, 0, 9, "");
    expect_output(s, "record job 1: task 2 exited 0/9\n");
    begin(s);
    expect_output(s, "record job 1: released to 5, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 5\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* Another job, which is larger than what was free, would leave it fewer. */
static void it_gets_the_slots_that_it_had(void **state)
{
    (void)state;
    struct script *s = stage_begins_again();
    submit(s, 7, 2, 0);
    exits(s, 1, 0);
    exits(s, 2, 1);
    exits(s, 3, 2);
    script_skip(s);
    plain_hello(s, 1, 0);
    plain_hello(s, 2, 1);
    plain_hello(s, 3, 2);
    assert_int_equal(job_view(s, 1).roster, 3);
    assert_int_equal(job_view(s, 2).state, JOB_QUEUED);
    script_close(s);
}

/* What they reported in order is no state that another member could go on from. */
static void a_member_that_dies_at_the_halt_is_the_failure(void **state)
{
    (void)state;
    struct script *s = stage_waiting();
    begin(s);
    halted(s, 1, 1, 0, 4, 1);
    gone(s, 2, 1, 1, 0, 9, "");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING); /* it may not fail once */
    assert_string_equal(
        script_job_text(s, 1), "task 1 on worker b was killed by signal 9 (Killed)");
    script_skip(s);
    script_close(s);
}

/* The coordinator was started again behind a halt that had reset them. */
static void one_that_has_left_is_no_failure(void **state)
{
    (void)state;
    struct script *s = stage_waiting();
    begin(s);
    gone(s, 2, 1, 1, 42, 0, "");
    script_skip(s);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* Before its first save a program is inside the first step, though it has not asked for it. */
static void a_drain_waits_for_the_first_save(void **state)
{
    (void)state;
    static const struct core_job_spec spec = {.tasks = 4, .tasks_min = 2, .max_restarts = 0};
    struct script *s = stage_running(&spec, 3, 0);
    join(s, 4, "d", 1);
    plain_hello(s, 4, 3);
    script_skip(s);
    drain(s, 9, "c");
    expect_output(s, "record! worker c is drained\n"
                     "answer 9: job 0, 0 before\n"
                     "record! job 1: halt at 1\n"
                     "tell job 1: release g1 to 0, halt\n");
    script_close(s);
}

/* The only task, with no room elsewhere. */
static struct script *stage_alone(void)
{
    static const struct core_job_spec spec = {.tasks = 1, .tasks_min = 1, .max_restarts = 0};
    struct script *s = stage_running(&spec, 1, 0);
    plain_hello(s, 1, 0);
    script_skip(s);
    return s;
}

static void a_job_stops_at_its_next_save(void **state)
{
    (void)state;
    struct script *s = stage_alone();
    drain(s, 9, "a");
    expect_output(s, "record! worker a is drained\n"
                     "answer 9: job 0, 0 before\n"
                     "record! job 1: halt at 1 of stream 0\n"
                     "tell job 1: release g1 to 0, halt\n");
    script_close(s);
    s = stage_alone();
    arrived(s, 1, 1, 1, 4, 0);
    arrived(s, 1, 1, 1, 5, 4); /* it is in step 4 */
    script_skip(s);
    drain(s, 9, "a");
    expect_output(s, "record! worker a is drained\n"
                     "answer 9: job 0, 0 before\n"
                     "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g1 to 5, halt\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_begin_again_with_those_that_came),
        cmocka_unit_test(what_does_not_end_is_stopped),
        cmocka_unit_test(it_waits_for_others_when_all_have_ended),
        cmocka_unit_test(one_start_for_those_that_come_together),
        cmocka_unit_test(what_waits_is_shown),
        cmocka_unit_test(one_that_dies_while_it_waits_changes_nothing),
        cmocka_unit_test(it_gets_the_slots_that_it_had),
        cmocka_unit_test(a_member_that_dies_at_the_halt_is_the_failure),
        cmocka_unit_test(one_that_has_left_is_no_failure),
        cmocka_unit_test(a_drain_waits_for_the_first_save),
        cmocka_unit_test(a_job_stops_at_its_next_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
