/* SPDX-License-Identifier: Apache-2.0
 * A member is lost: which tasks report and form the next generation, where it begins, what is
 * waited for, and when it is too much. */
#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec elastic = {.tasks = 3, .tasks_min = 1, .max_restarts = 3};
static const struct core_job_spec fixed = {.tasks = 2, .tasks_min = 2, .max_restarts = 3};

static void survivors_go_on_at_once(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "out of memory");
    expect_output(s,
        "record job 1: task 1 exited 0/9\n"
        "tell job 1: abort g1: task 1 on worker b was killed by signal 9 (Killed): out of "
        "memory\n");
    frozen(s, 1, 1, 0, 2, 1);
    expect_output(s, "");
    frozen(s, 3, 1, 2, 3, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 0 2, source rank 1\n"
                     "tell job 1: plan g2\n");
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b was killed by signal 9 (Killed): out of memory; the 2 others went on "
        "from step 3");
    assert_int_equal(job_view(s, 1).restarts, 1);
    assert_int_equal(job_view(s, 1).roster, 2);
    /* Its slot is placed again once nothing of the old one is left. */
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#4 on b\n"
                     "start again job 1 on link 2\n");
    /* Messages of the old generation are dropped (rule 13). */
    arrived(s, 1, 1, 1, 5, 3);
    arrived(s, 3, 1, 1, 5, 3);
    expect_output(s, "record job 1: released to 5, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g2 to 5\n");
    script_close(s);
}

/* Two workers die at once; the report of one's task came before its connection ended. Who is back
 * in time says it again. */
static void a_report_lapses_with_the_connection(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    peer_error(s, 1, 1, 0, 3);
    frozen(s, 2, 1, 1, 3, 1);
    script_skip(s);
    link_down(s, 2);
    link_down(s, 3);
    expect_output(s, "");
    wait_us(s, 1000000);
    heartbeat(s, 1);
    wait_us(s, 1100000);
    assert_int_equal(job_view(s, 1).generation.number, 2);
    assert_int_equal(job_view(s, 1).roster, 1);
    assert_int_equal(job_view(s, 1).resume, 3);
    script_close(s);
}

/* All are at a halt for a drain, and with the last report a link breaks, before the job waits for a
 * replacement. A member that does not report again is lost in the end. */
static void who_stood_still_has_to_answer_again(void **state)
{
    (void)state;
    struct core_job_spec spec = fixed;
    spec.tasks = 3;
    spec.tasks_min = 3;
    struct script *s = stage_running(&spec, 4, 4);
    struct task_ref held = ref(s, 1, 0);
    struct task_up report = {.type = TASK_UP_REPORT,
        .report = {.generation = generation_of(s, 1),
            .position = 4,
            .clean = true,
            .reason = REPORT_HALT,
            .begun = true,
            .stream = 1}};
    drain(s, 0, "b");
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 4, 4);
    }
    halted(s, 1, 1, 0, 4, 1);
    halted(s, 2, 1, 1, 4, 1);
    script_skip(s);
    struct agent_up up = {.type = AGENT_UP_RELAY, .relay_up = {.task = ref(s, 1, 2), .up = report}};
    step_once(
        s, &(struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {3}, .up = &up}});
    link_down(s, 1);
    script_skip(s);
    gone(s, 2, 1, 1, 0, 15, "");
    collected(s, 2, 1, 1);
    started(s, 4, 1, 1);
    task_hello(s, 4, 1, 1, 0);
    hello(s, 9, "a", 1001, 1, &held, 1);
    joins(s, 4, 1, 1, 1);
    script_skip(s);
    /* Its process is stopped and sends nothing any more. */
    for (int i = 0; i < 13; i++) {
        wait_us(s, SECOND);
        heartbeat(s, 9);
        heartbeat(s, 2);
        heartbeat(s, 3);
        heartbeat(s, 4);
    }
    expect_output(s, "stop task 1/0#1 on link 9\n");
    script_close(s);
}

static void a_fixed_job_waits_for_a_slot(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 2, 4);
    wait_us(s, 2 * SECOND);
    heartbeat(s, 1);
    heartbeat(s, 2);
    gone(s, 2, 1, 1, 3, 0, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b exited with status 3; waits for 1 more task (0 of 2 slots are free) "
        "for 0 s of at most 60 s");
    wait_us(s, 3 * SECOND);
    heartbeat(s, 1);
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b exited with status 3; waits for 1 more task (0 of 2 slots are free) "
        "for 3 s of at most 60 s");
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#3 on b\n"
                     "start again job 1 on link 2\n");
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "tell task 1/1#3 on link 2: warm\n");
    joins(s, 2, 1, 1, 1);
    /* The chief is one that has the state. */
    expect_output(s, "record! job 1: plan g2 from 3 of 0 1, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

static void the_chief_is_replaced_by_a_survivor(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 2, 4);
    collect(s, 1, 1, 0);
    frozen(s, 2, 1, 1, 3, 1);
    task_hello(s, 1, 1, 0, 0);
    script_skip(s);
    joins(s, 1, 1, 0, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 1 0, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

static void the_silent_are_lost(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    wait_us(s, 2 * SECOND);
    expect_output(s, "record! job 1: plan g2 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g2\n"
                     "stop task 1/2#3 on link 3\n");
    /* Rule 7: its messages are dropped, and it is stopped. */
    frozen(s, 3, 1, 2, 4, 1);
    expect_output(s, "");
    task_hello(s, 3, 1, 2, 2);
    expect_output(
        s, "tell task 1/2 on link 3: superseded ABORTED: the job goes on without this task\n");
    gone(s, 3, 1, 2, 0, 9, "");
    collected(s, 3, 1, 2);
    expect_output(s, "record job 1: task 2 exited 0/9\n"
                     "stop task 1/2#3 on link 3\n"
                     "record! job 1: task 2#4 on c\n"
                     "start again job 1 on link 3\n");
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

static void two_die_one_after_the_other(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 3, 1, 2, 4, 1); /* it was ahead, and dies with what it had */
    gone(s, 3, 1, 2, 0, 9, "");
    script_skip(s);
    frozen(s, 1, 1, 0, 3, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 1); /* one generation ended */
    script_close(s);
}

static void a_second_death_while_they_sync(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 4, 1);
    script_skip(s);
    gone(s, 3, 1, 2, 0, 11, "");
    expect_output(s,
        "record job 1: task 2 exited 0/11\n"
        "tell job 1: abort g2: task 2 on worker c was killed by signal 11 (Segmentation "
        "fault)\n");
    /* The receiver kept its own: the step is done again. */
    frozen(s, 1, 1, 0, 3, 1);
    expect_output(s, "record! job 1: plan g3 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g3\n");
    assert_int_equal(job_view(s, 1).restarts, 2);
    script_close(s);
}

/* A joiner of the step that is undone has no state, and is at another step. */
static void a_joiner_is_not_taken_back(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    collect(s, 2, 1, 1);
    started(s, 2, 1, 1);
    task_hello(s, 2, 1, 1, 0);
    joins(s, 2, 1, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    frozen(s, 3, 1, 2, 4, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1 2, source rank 2\n"
                     "tell job 1: plan g2\n");
    gone(s, 3, 1, 2, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    report(s, 2, 1, 1, &(struct task_report){.reason = REPORT_ABORT, .text = ""});
    expect_output(s, "record! job 1: plan g3 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g3\n"
                     "tell task 1/1#4 on link 2: reset\n"
                     "stop task 1/1#4 on link 2\n");
    script_close(s);
}

/* A report of an older state than any can have counts as without a state. */
static void only_the_last_step_is_undone(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 2, 4);
    frozen(s, 1, 1, 0, 4, 1);
    frozen(s, 2, 1, 1, 4, 1);
    script_skip(s);
    frozen(s, 1, 1, 0, 2, 1);
    frozen(s, 2, 1, 1, 2, 1);
    expect_output(s, "tell job 1: abort g2: task 0 on worker a lost its peers in step 2\n"
                     "tell task 1/1#2 on link 2: reset\n"
                     "stop task 1/1#2 on link 2\n"
                     "tell task 1/0#1 on link 1: reset\n"
                     "stop task 1/0#1 on link 1\n");
    script_close(s);
}

static void no_survivor(const char *plan, uint64_t checkpoint)
{
    struct script *s = stage_running(&fixed, 2, 4);
    if (checkpoint > 0) {
        arrived(s, 1, 1, 1, 4, 4);
        arrived(s, 2, 1, 1, 4, 4);
        part(s, 1, 1, 0, checkpoint, "checkpoint-2.json");
    }
    gone(s, 1, 1, 0, 0, 9, "");
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    assert_true(job_view(s, 1).restores == (checkpoint > 0));
    collected(s, 1, 1, 0);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/0#1 on link 1\n"
                     "record! job 1: task 0#3 on a\n"
                     "start again job 1 on link 1\n"
                     "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#4 on b\n"
                     "start again job 1 on link 2\n");
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "");
    task_hello(s, 1, 1, 0, 0);
    expect_output(s, plan);
    assert_int_equal(job_view(s, 1).source, SOURCE_NONE);
    assert_false(job_view(s, 1).restores);
    script_close(s);
}

static void without_a_survivor_all_begin_again(void **state)
{
    (void)state;
    no_survivor("record! job 1: plan g2 from 0, restarted of 0 1\n"
                "tell job 1: plan g2\n",
        0);
    no_survivor("record! job 1: plan g2 from 2, restarted of 0 1\n"
                "tell job 1: plan g2\n"
                "tell job 1: release g2 to 2\n", /* what is published */
        2);
}

static void dirty_survivors_are_started_again(void **state)
{
    (void)state;
    struct script *s = stage_running(&fixed, 2, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    report(s, 1, 1, 0, &(struct task_report){.position = 3, .reason = REPORT_PEER_ERROR});
    expect_output(s, "tell task 1/0#1 on link 1: reset\n"
                     "stop task 1/0#1 on link 1\n");
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b was killed by signal 9 (Killed); waits for 2 more tasks (0 of 2 slots "
        "are free) for 0 s of at most 60 s");
    gone(s, 1, 1, 0, 0, 15, "");
    assert_int_equal(job_view(s, 1).restarts, 1); /* it was stopped */
    script_close(s);
}

static void too_many_failures(void **state)
{
    (void)state;
    struct core_job_spec spec = elastic;
    spec.max_restarts = 1;
    struct script *s = stage_running(&spec, 3, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    script_skip(s);
    gone(s, 3, 1, 2, 7, 0, "bad input");
    expect_output(s,
        "record job 1: task 2 exited 7/0\n"
        "tell job 1: abort g2: task 2 on worker c exited with status 7: bad input; it was "
        "restarted 1 time before, as often as it may be (--max-restarts)\n"
        "stop job 1\n");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

static void lost_workers_are_not_counted(void **state)
{
    (void)state;
    struct core_job_spec spec = elastic;
    spec.max_restarts = 0;
    struct script *s = stage_running(&spec, 3, 4);
    struct task_ref held = ref(s, 1, 1);
    link_down(s, 2);
    hello(s, 9, "b", 77, 1, &held, 1);
    expect_output(s,
        "welcome link 9: worker 4\n"
        "tell job 1: abort g1: task 1 was lost with worker b, which was started again\n"
        "record job 1: task 1 lost 0/0\n"
        "record! job 1: task 1#4 on b\n"
        "start again job 1 on link 9\n"
        "stop task 1/1#2 on link 9\n");
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 0);
    script_close(s);
}

/* A program that gives up when it has lost its peers does so before it is known that a worker is
 * lost, and why it could not go on. */
static void who_gives_up_for_a_lost_worker_is_not_counted(void **state)
{
    (void)state;
    struct core_job_spec spec = fixed;
    spec.max_restarts = 0;
    struct script *s = stage_running(&spec, 2, 0);
    struct task_ref held = ref(s, 1, 1);
    report(s, 1, 1, 0, &(struct task_report){.position = 0, .reason = REPORT_PEER_ERROR});
    gone(s, 1, 1, 0, 1, 0, "");
    link_down(s, 2);
    script_skip(s);
    hello(s, 9, "b", 77, 1, &held, 1);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).restarts, 0);
    assert_string_equal(script_job_text(s, 1),
        "task 1 was lost with worker b, which was started again; waits for 1 more task (0 of 2 "
        "slots are free) for 0 s of at most 60 s");
    script_close(s);
}

static void a_worker_that_comes_back_in_time_changes_nothing(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    struct task_ref held = ref(s, 1, 1);
    link_down(s, 2);
    wait_us(s, 3 * SECOND);
    hello(s, 9, "b", 1002, 1, &held, 1);
    expect_output(s, "welcome link 9: worker 2\n");
    task_hello(s, 9, 1, 1, 1);
    expect_output(s, "tell job 1 task 1 on link 9: release g1 to 4\n");
    script_close(s);
}

static void the_programs_own_failure_is_final(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    report(s, 1, 1, 0,
        &(struct task_report){.position = 3,
            .reason = REPORT_FAILED,
            .code = CADRE_INVALID_ARGUMENT,
            .text = "replicas disagree on the shape of loss"});
    expect_output(s,
        "tell job 1: abort g1: task 0 on worker a failed in step 3: replicas disagree on the "
        "shape of loss\n"
        "stop job 1\n");
    script_close(s);
}

/* Its peers reported the broken mesh first, it received abort, and then its failure came up. */
static void a_failure_that_a_plan_overtook_is_final(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    struct task_up failed = {.type = TASK_UP_REPORT,
        .report = {.generation = generation_of(s, 1),
            .position = 4,
            .reason = REPORT_FAILED,
            .code = CADRE_DATA_LOSS,
            .text = "sample 3 is no sample"}};
    peer_error(s, 2, 1, 1, 4);
    frozen(s, 3, 1, 2, 4, 1);
    frozen(s, 1, 1, 0, 4, 1);
    script_skip(s);
    assert_int_equal(generation_of(s, 1).number, 2);
    relay_up(s, 1, 1, 0, &failed);
    expect_output(s,
        "tell job 1: abort g2: task 0 on worker a failed in step 4: sample 3 is no sample\n"
        "stop job 1\n");
    script_close(s);
}

static void early_leavers_are_failures(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    gone(s, 2, 1, 1, 0, 0, "");
    script_skip(s);
    wait_us(s, 5 * SECOND);
    expect_output(s,
        "tell job 1: abort g1: task 1 on worker b exited with status 0 before cadre_finish "
        "(or cadre_plain_finish), and 2 others wait: all must call it at the end\n");
    frozen(s, 1, 1, 0, 4, 1);
    frozen(s, 3, 1, 2, 4, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

static void joiners_that_fail_are_counted(void **state)
{
    (void)state;
    struct core_job_spec spec = elastic;
    spec.max_restarts = 2;
    struct script *s = stage_running(&spec, 3, 4);
    collect(s, 2, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    /* One that finds nothing to do is left alone until the next plan. */
    started(s, 2, 1, 1);
    gone(s, 2, 1, 1, 0, 0, "");
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s, "stop task 1/1#4 on link 2\n");
    assert_int_equal(job_view(s, 1).restarts, 1);
    gone(s, 3, 1, 2, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    assert_int_equal(job_view(s, 1).restarts, 2);
    wait_us(s, SECOND / 10); /* the second without a step: not at once */
    script_skip(s);
    started(s, 2, 1, 1);
    gone(s, 2, 1, 1, 127, 0, "the disk is full");
    expect_output(s,
        "record job 1: task 1 exited 127/0\n"
        "tell job 1: abort g3: task 1 on worker b exited with status 127: the disk is full; it "
        "was restarted 2 times before, as often as it may be (--max-restarts)\n"
        "stop job 1\n");
    script_close(s);
}

static uint64_t incarnation_of(struct script *s, uint32_t slot)
{
    struct core_task_view view;
    core_job_task(s->core, (struct job_id){1}, slot, &view);
    return view.incarnation;
}

/* A joiner that fails before it takes a step fails again: each time it is given longer. */
static void failures_without_a_step_are_given_longer(void **state)
{
    (void)state;
    static const uint64_t pauses_us[] = {
        100000, 200000, 400000, 800000, 1600000, 3200000, 6400000, 10000000, 10000000};
    struct core_job_spec spec = elastic;
    spec.max_restarts = 20;
    struct script *s = stage_running(&spec, 3, 4);
    collect(s, 2, 1, 1);
    frozen(s, 1, 1, 0, 3, 1);
    frozen(s, 3, 1, 2, 3, 1);
    for (size_t i = 0; i < sizeof pauses_us / sizeof pauses_us[0]; i++) {
        started(s, 2, 1, 1);
        gone(s, 2, 1, 1, 127, 0, "the disk is full");
        collected(s, 2, 1, 1);
        uint64_t last = incarnation_of(s, 1);
        for (uint64_t link = 1; link <= 3; link++) {
            heartbeat(s, link);
        }
        wait_us(s, pauses_us[i] - 1);
        assert_int_equal(incarnation_of(s, 1), last);
        for (uint64_t link = 1; link <= 3; link++) {
            heartbeat(s, link);
        }
        wait_us(s, 1);
        assert_true(incarnation_of(s, 1) > last);
    }
    script_close(s);
}

static void what_fails_before_the_first_plan_is_final(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    join(s, 3, "c", 1);
    submit_spec(s, 0, &fixed);
    task_hello(s, 1, 1, 0, 0);
    script_skip(s);
    /* A lost worker is not the program's fault: it gets another place. */
    hello(s, 9, "x", 1, 1, NULL, 0);
    link_down(s, 2);
    script_skip(s);
    for (int i = 0; i < 10; i++) {
        wait_us(s, SECOND);
        heartbeat(s, 1);
        heartbeat(s, 3);
        heartbeat(s, 9);
    }
    expect_output(s, "record job 1: task 1 lost 0/0\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    gone(s, 3, 1, 1, 1, 0, "");
    expect_output(s, "record job 1: task 1 exited 1/0\n"
                     "stop job 1\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_go_on_at_once),
        cmocka_unit_test(a_report_lapses_with_the_connection),
        cmocka_unit_test(who_stood_still_has_to_answer_again),
        cmocka_unit_test(a_fixed_job_waits_for_a_slot),
        cmocka_unit_test(the_chief_is_replaced_by_a_survivor),
        cmocka_unit_test(the_silent_are_lost),
        cmocka_unit_test(two_die_one_after_the_other),
        cmocka_unit_test(a_second_death_while_they_sync),
        cmocka_unit_test(a_joiner_is_not_taken_back),
        cmocka_unit_test(only_the_last_step_is_undone),
        cmocka_unit_test(without_a_survivor_all_begin_again),
        cmocka_unit_test(dirty_survivors_are_started_again),
        cmocka_unit_test(too_many_failures),
        cmocka_unit_test(lost_workers_are_not_counted),
        cmocka_unit_test(who_gives_up_for_a_lost_worker_is_not_counted),
        cmocka_unit_test(a_worker_that_comes_back_in_time_changes_nothing),
        cmocka_unit_test(the_programs_own_failure_is_final),
        cmocka_unit_test(a_failure_that_a_plan_overtook_is_final),
        cmocka_unit_test(early_leavers_are_failures),
        cmocka_unit_test(joiners_that_fail_are_counted),
        cmocka_unit_test(failures_without_a_step_are_given_longer),
        cmocka_unit_test(what_fails_before_the_first_plan_is_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
