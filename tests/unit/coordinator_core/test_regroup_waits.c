/* SPDX-License-Identifier: Apache-2.0
 * A generation ends: how long members are waited for, which are not in the next one, and what is
 * counted. */
#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec elastic = {.tasks = 3, .tasks_min = 1, .max_restarts = 3};
static const struct core_job_spec fixed = {.tasks = 2, .tasks_min = 2, .max_restarts = 3};

/* Time passes for workers that are alive on links 1 to this one. */
static void beat(struct script *s, uint64_t links, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        wait_us(s, SECOND);
        for (uint64_t link = 1; link <= links; link++) {
            heartbeat(s, link);
        }
    }
}

/* What ended the generation was the first one; the second is in no sentence. */
static void the_first_death_is_the_reason(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    gone(s, 3, 1, 2, 0, 11, "");
    frozen(s, 1, 1, 0, 3, 1);
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b was killed by signal 9 (Killed); the other went on from step 3");
    script_close(s);
}

/* Where no member has a state they get the lease, in each generation again. */
static void without_a_state_the_silent_are_given_a_lease(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    beat(s, 3, 4);
    expect_output(s, "");
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    gone(s, 3, 1, 2, 0, 9, "");
    script_skip(s);
    beat(s, 3, 9);
    expect_output(s, "");
    frozen(s, 1, 1, 0, 3, 1);
    expect_output(s, "record! job 1: plan g3 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g3\n");
    gone(s, 1, 1, 0, 0, 9, ""); /* and no longer */
    script_close(s);
}

/* A live member that hangs is lost, one whose worker is silent may have the state. */
static void of_the_stateless_the_cut_off_are_waited_for(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    struct task_ref held = ref(s, 1, 2);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    beat(s, 3, 1);
    link_down(s, 3);
    beat(s, 2, 9);
    expect_output(s, "stop task 1/0#1 on link 1\n");
    hello(s, 9, "c", 1003, 1, &held, 1);
    script_skip(s);
    frozen(s, 9, 1, 2, 3, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

/* Who had reported, and whose connection broke while another task is waited for, is given the time
 * that its worker may be away: what it was given before is over. */
static void who_reported_may_be_away_for_a_lease(void **state)
{
    (void)state;
    struct core_job_spec spec = fixed;
    spec.tasks = 3;
    spec.tasks_min = 3;
    struct script *s = stage_running(&spec, 3, 4);
    struct task_ref held = ref(s, 1, 2);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    script_skip(s);
    link_down(s, 3);
    beat(s, 2, 5);
    expect_output(s, "");
    hello(s, 9, "c", 1003, 1, &held, 1);
    task_hello(s, 9, 1, 2, 1);
    frozen(s, 9, 1, 2, 3, 1);
    collected(s, 2, 1, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    script_skip(s);
    joins(s, 2, 1, 1, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 0 1 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

/* Joiners come in at the step of their stream only, and all members there have begun it. */
static void who_is_at_other_steps_takes_no_joiner(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    collect(s, 2, 1, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    frozen(s, 3, 1, 2, 3, 2);
    expect_output(s, "record! job 1: plan g2 from 3 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

/* The one that drains is behind: it is left out all the same, since enough are there. */
static void a_regroup_leaves_out_who_drains(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    drain(s, 0, "a");
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    frozen(s, 3, 1, 2, 4, 1);
    expect_output(s,
        "record! job 1: plan g2 from 4 of 2, source rank 0\n"
        "tell job 1: plan g2\n"
        "tell task 1/0 on link 1: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/0#1 on link 1\n");
    script_close(s);
}

/* A failure is counted once, however often is looked for others that may come. */
static void a_failure_is_counted_once(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 2, 0);
    report(s, 2, 1, 1, &(struct task_report){.clean = true, .reason = REPORT_PEER_ERROR});
    gone(s, 2, 1, 1, 1, 0, "");
    report(s, 1, 1, 0, &(struct task_report){.clean = true, .reason = REPORT_ABORT});
    assert_int_equal(job_view(s, 1).restarts, 1);
    collected(s, 2, 1, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

/* When all were at a halt and too few are left, no failure is counted, also without a step. */
static void a_drain_without_a_step_is_no_failure(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 3, 4);
    drain(s, 0, "b");
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4);
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 2, 1, 1, 4, 1);
    gone(s, 2, 1, 1, 0, 15, "");
    collected(s, 2, 1, 1);
    task_hello(s, 3, 1, 1, 0);
    joins(s, 3, 1, 1, 1);
    assert_int_equal(generation_of(s, 1).number, 2);
    script_skip(s);
    join(s, 4, "d", 1);
    drain(s, 0, "c"); /* before any step of this generation */
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 3, 1, 1, 4, 1);
    gone(s, 3, 1, 1, 0, 15, "");
    collected(s, 3, 1, 1);
    task_hello(s, 4, 1, 1, 0);
    joins(s, 4, 1, 1, 1);
    assert_int_equal(generation_of(s, 1).number, 3);
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* One whose program found nothing to do is started again when it is needed. */
static void who_declined_is_needed_again(void **state)
{
    (void)state;
    struct core_job_spec spec = elastic;
    spec.tasks_min = 2;
    struct script *s = stage_running(&spec, 3, 4);
    collect(s, 2, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    started(s, 2, 1, 1);
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 2, 1, 1);
    for (uint64_t applied = 3; applied <= 5; applied++) {
        arrived(s, 1, 1, 1, 6, applied);
        arrived(s, 3, 1, 1, 6, applied);
    }
    script_skip(s);
    gone(s, 3, 1, 2, 0, 9, "");
    expect_output(s, "record job 1: task 2 exited 0/9\n"
                     "tell job 1: abort g2: task 2 on worker c was killed by signal 9 (Killed)\n"
                     "record! job 1: task 1#5 on b\n"
                     "start again job 1 on link 2\n");
    script_close(s);
}

/* What is waited for is a place: once it has one, its program takes as long as it takes. */
static void a_slot_ends_the_wait_for_it(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    struct task_ref lost = {0};
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    submit_spec(s, 0, &fixed);
    lost = ref(s, 1, 1);
    task_hello(s, 1, 1, 0, 0);
    script_skip(s);
    draining(s, 2);
    gone(s, 2, 1, 1, 0, 15, "");
    collected(s, 2, 1, lost.slot);
    beat(s, 2, 50);
    join(s, 3, "c", 1);
    started(s, 3, 1, 1);
    script_skip(s);
    beat(s, 3, 15);
    expect_output(s, "");
    task_hello(s, 3, 1, 1, 0);
    expect_output(s, "record! job 1: plan g1 from 0\n"
                     "tell job 1: plan g1\n");
    script_close(s);
}

/* The first step is undone: a joiner without a state has none at the beginning either. */
static void a_joiner_is_not_taken_back_to_the_beginning(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 1);
    collect(s, 2, 1, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    frozen(s, 1, 1, 0, 0, 1);
    frozen(s, 3, 1, 2, 1, 1);
    assert_int_equal(job_view(s, 1).resume, 1);
    gone(s, 3, 1, 2, 0, 9, "");
    frozen(s, 1, 1, 0, 0, 1);
    script_skip(s);
    report(s, 2, 1, 1, &(struct task_report){.reason = REPORT_ABORT, .text = ""});
    expect_output(s, "record! job 1: plan g3 from 0 of 0, source rank 0\n"
                     "tell job 1: plan g3\n"
                     "tell task 1/1#4 on link 2: reset\n"
                     "stop task 1/1#4 on link 2\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_death_is_the_reason),
        cmocka_unit_test(without_a_state_the_silent_are_given_a_lease),
        cmocka_unit_test(of_the_stateless_the_cut_off_are_waited_for),
        cmocka_unit_test(who_reported_may_be_away_for_a_lease),
        cmocka_unit_test(who_is_at_other_steps_takes_no_joiner),
        cmocka_unit_test(a_regroup_leaves_out_who_drains),
        cmocka_unit_test(a_failure_is_counted_once),
        cmocka_unit_test(a_drain_without_a_step_is_no_failure),
        cmocka_unit_test(who_declined_is_needed_again),
        cmocka_unit_test(a_slot_ends_the_wait_for_it),
        cmocka_unit_test(a_joiner_is_not_taken_back_to_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
