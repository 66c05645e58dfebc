/* SPDX-License-Identifier: Apache-2.0
 * A step that does not end although no task died. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec elastic = {
    .tasks = 3, .tasks_min = 1, .max_restarts = 3, .stall_us = 60 * SECOND};

static void stalls(struct script *s, uint64_t link, uint32_t slot, uint32_t other)
{
    relay_up(s, link, 1, slot,
        &(struct task_up){.type = TASK_UP_STALL,
            .stall = {.generation = job_view(s, 1).generation,
                .position = 2,
                .slot = other,
                .waited_us = SECOND}});
}

static void pass(struct script *s, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        wait_us(s, SECOND);
        for (uint64_t link = 1; link <= 3; link++) {
            heartbeat(s, link);
        }
    }
}

/* Steps of 200 ms, then one that does not end. */
static struct script *stage_stalled(void)
{
    struct script *s = stage_running(&elastic, 3, 8);
    for (uint64_t applied = 1; applied <= 2; applied++) {
        s->now_us += SECOND / 5;
        for (uint64_t link = 1; link <= 3; link++) {
            arrived(s, link, 1, 1, 8, applied);
        }
    }
    pass(s, 1);
    stalls(s, 1, 0, 2);
    stalls(s, 3, 2, 1); /* the task that is waited for waits itself */
    script_skip(s);
    return s;
}

static void a_slow_step_is_reported(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    pass(s, 3);
    assert_string_equal(script_job_text(s, 1), "");
    assert_false(job_view(s, 1).stall.slow); /* the same stall, known and not slow yet */
    assert_int_equal(job_view(s, 1).stall.slot, 1);
    assert_int_equal(job_view(s, 1).stall.waited_us, 4 * SECOND);
    pass(s, 3);
    assert_true(job_view(s, 1).stall.slow);
    assert_int_equal(job_view(s, 1).stall.slot, 1);
    assert_int_equal(job_view(s, 1).stall.step, 2);
    assert_int_equal(job_view(s, 1).stall.waited_us, 7 * SECOND);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0.2 s): task 1 on worker b is waited for by 1 "
        "other");
    expect_output(s, "");
    /* It ends after all. */
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 3);
    }
    assert_string_equal(script_job_text(s, 1), "");
    pass(s, 70);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    script_close(s);
}

static uint64_t waited_us_of(struct script *s, uint32_t slot)
{
    struct core_task_view view;
    core_job_task(s->core, (struct job_id){1}, slot, &view);
    return view.waited_us;
}

/* Long before it is slow; and added up when it ends, also by a replacement. */
static void who_is_waited_for_is_known_after_a_second(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    assert_int_equal(job_view(s, 1).stall.slot, 1);
    assert_int_equal(job_view(s, 1).stall.waited_us, SECOND);
    pass(s, 3);
    assert_int_equal(job_view(s, 1).stall.waited_us, 4 * SECOND);
    assert_int_equal(waited_us_of(s, 1), 0);
    stalls(s, 2, 1, 1); /* it has gone on, and waits for the next release */
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 3);
    }
    assert_int_equal(job_view(s, 1).stall.slot, UINT32_MAX);
    assert_int_equal(job_view(s, 1).stall.waited_us, 0);
    assert_int_equal(waited_us_of(s, 1), 4 * SECOND);
    assert_int_equal(waited_us_of(s, 0), 0);
    assert_int_equal(waited_us_of(s, 2), 0);
    script_close(s);
    s = stage_stalled();
    pass(s, 59);
    assert_int_equal(waited_us_of(s, 1), 60 * SECOND); /* it is being replaced */
    assert_int_equal(job_view(s, 1).stall.slot, UINT32_MAX);
    collect(s, 2, 1, 1);
    assert_int_equal(waited_us_of(s, 1), 60 * SECOND); /* the slot's */
    script_close(s);
}

/* The steps before a task's missing step arrive a second or two after it was waited for: that
 * ends no wait. */
static void steps_that_are_reported_late_end_no_wait(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 8);
    s->now_us += SECOND / 5;
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 1);
    }
    pass(s, 1);
    stalls(s, 1, 0, 1);
    stalls(s, 3, 2, 1);
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 2);
    }
    assert_int_equal(job_view(s, 1).committed, 2);
    pass(s, 6);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 1.0 s): task 1 on worker b is waited for by 2 "
        "others");
    arrived(s, 1, 1, 1, 8, 3);
    arrived(s, 2, 1, 1, 8, 3);
    arrived(s, 3, 1, 1, 8, 3);
    assert_string_equal(script_job_text(s, 1), "");
    script_close(s);
}

/* No other task waits for it. It is slow when a step has not ended, not when it does other things
 * between two; and it is not replaced. */
static void the_only_task_of_a_job(void **state)
{
    (void)state;
    static const struct core_job_spec alone = {
        .tasks = 1, .tasks_min = 1, .max_restarts = 3, .stall_us = 60 * SECOND};
    struct script *s = stage_running(&alone, 1, 1);
    pass(s, 20); /* a first step takes as long as it takes */
    assert_string_equal(script_job_text(s, 1), "");
    arrived(s, 1, 1, 1, 1, 1);
    s->now_us += SECOND / 5;
    for (uint64_t applied = 1; applied <= 400; applied++) {
        arrived(s, 1, 1, 1, applied + 1, applied);
        s->now_us += SECOND / 5;
        arrived(s, 1, 1, 1, applied + 1, applied + 1);
    }
    pass(s, 30);
    assert_string_equal(script_job_text(s, 1), "");
    arrived(s, 1, 1, 1, 405, 401); /* what follows is released, and the program is elsewhere */
    pass(s, 30);
    assert_string_equal(script_job_text(s, 1), "");
    begins(s, 1, 1, 401, 405);
    pass(s, 4);
    assert_string_equal(script_job_text(s, 1), "");
    assert_int_equal(job_view(s, 1).stall.slot, UINT32_MAX);
    pass(s, 2);
    assert_string_equal(script_job_text(s, 1),
        "step 401 has not ended for 6 s (median 0.1 s): task 0 on worker a is still in it");
    assert_int_equal(job_view(s, 1).stall.slot, 0);
    assert_int_equal(job_view(s, 1).stall.step, 401);
    pass(s, 90);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    arrived(s, 1, 1, 1, 405, 402);
    assert_string_equal(script_job_text(s, 1), "");
    assert_int_equal(waited_us_of(s, 0), 0);
    script_close(s);
}

static void one_that_stalls_is_replaced(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    pass(s, 59);
    expect_output(s, "tell job 1: abort g1: task 1 on worker b did not come to step 2 for 60 s\n"
                     "stop task 1/1#2 on link 2\n");
    frozen(s, 1, 1, 0, 2, 1);
    frozen(s, 3, 1, 2, 2, 1);
    expect_output(s, "record! job 1: plan g2 from 2 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    collect(s, 2, 1, 1);
    expect_output(s, "record job 1: task 1 exited 0/9\n"
                     "stop task 1/1#2 on link 2\n"
                     "record! job 1: task 1#4 on b\n"
                     "start again job 1 on link 2\n");
    script_close(s);
}

static void hangs(
    struct script *s, uint64_t link, uint32_t slot, uint64_t position, const struct task_hang *hang)
{
    relay_up(s, link, 1, slot,
        &(struct task_up){.type = TASK_UP_STALL,
            .stall = {.generation = job_view(s, 1).generation,
                .position = position,
                .slot = slot,
                .waited_us = 10 * SECOND,
                .hang = *hang}});
}

/* Also where no other task is there to wait for it. It has taken steps that it has not reported. */
static void a_replica_that_hangs_is_named(void **state)
{
    static const struct core_job_spec alone = {.tasks = 1, .tasks_min = 1, .max_restarts = 3};
    static const struct {
        struct task_hang hang;
        const char *notified;
    } cases[] = {
        {{.at = HANG_COLLECTIVE, .collective = 2, .replica = 1},
            "replica 1 of task 0 on worker a has not come to collective 2"},
        {{.at = HANG_COLLECTIVE, .collective = 1, .replica = 5, .others = 2},
            "replica 5 of task 0 on worker a and 2 others of its replicas have not come to "
            "collective 1"},
        {{.at = HANG_MEETING, .replica = 3},
            "replica 3 of task 0 on worker a has not come to cadre_merge_call"},
        {{.at = HANG_MERGE}, "the function of cadre_merge_call in task 0 on worker a has not "
                             "returned"},
        {{.at = HANG_RETURN, .replica = 1},
            "replica 1 of task 0 on worker a has not returned from its function"},
        {{.at = HANG_RETURN, .replica = 1, .others = 1},
            "replica 1 of task 0 on worker a and 1 other of its replicas have not returned from "
            "their functions"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[LIMIT_TEXT_BYTES];
        struct script *s = stage_running(&alone, 3, 8);
        s->shows_changes = true;
        arrived(s, 1, 1, 1, 8, 2);
        pass(s, 10);
        script_skip(s);
        hangs(s, 1, 0, 3, &cases[i].hang);
        pass(s, 1);
        expect_output(s, "changed job 1\n"); /* the job's watchers are notified, once */
        snprintf(expected, sizeof expected, "step 3 has not ended for 11 s (median 0 ms): %s",
            cases[i].notified);
        assert_string_equal(script_job_text(s, 1), expected);
        arrived(s, 1, 1, 1, 8, 4);
        assert_string_equal(script_job_text(s, 1), "");
        script_close(s);
    }
}

static const struct task_hang second_of_b = {.at = HANG_COLLECTIVE, .collective = 2, .replica = 3};

/* The task that all wait for reports which of its replicas it is, and another reports itself. */
static void a_task_whose_replica_hangs_is_replaced(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    const struct task_hang other = {.at = HANG_RETURN, .replica = 0};
    stalls(s, 1, 0, 1);
    pass(s, 6);
    hangs(s, 2, 1, 2, &second_of_b);
    hangs(s, 1, 0, 2, &other);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0.2 s): replica 3 of task 1 on worker b has not come "
        "to collective 2; 2 other tasks wait for it");
    script_skip(s);
    for (int i = 0; i < 10; i++) {
        pass(s, 5);
        hangs(s, 2, 1, 2, &second_of_b);
    }
    pass(s, 3);
    expect_output(s,
        "tell job 1: abort g1: replica 3 of task 1 on worker b has not come to collective 2 in "
        "step 2 for 60 s\n"
        "stop task 1/1#2 on link 2\n");
    script_close(s);
}

/* It came, and another task holds up the step. */
static void who_hangs_no_longer_is_not_named(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    hangs(s, 1, 0, 2, &second_of_b);
    pass(s, 20);
    assert_non_null(strstr(script_job_text(s, 1), ": replica 3 of task 0 on worker a"));
    pass(s, 1);
    assert_non_null(strstr(script_job_text(s, 1), ": task 1 on worker b is waited for by 1 other"));
    hangs(s, 3, 2, 2, &second_of_b);
    assert_non_null(strstr(script_job_text(s, 1), ": replica 3 of task 2 on worker c"));
    collect(s, 3, 1, 2);
    for (uint64_t link = 1; link <= 2; link++) {
        frozen(s, link, 1, (uint32_t)link - 1, 2, 1);
    }
    stalls(s, 1, 0, 1);
    pass(s, 6);
    assert_non_null(strstr(script_job_text(s, 1), ": task 1 on worker b is waited for by 1 other"));
    script_close(s);
}

/* No task can be named: the generation is formed again, once for the steps that it did, then as
 * often as the job may be restarted. */
static void a_ring_of_waits_is_broken_and_counted(void **state)
{
    (void)state;
    struct script *s = stage_stalled();
    stalls(s, 2, 1, 0);
    pass(s, 6);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0.2 s): its tasks wait for one another; all must "
        "make the same calls");
    for (uint32_t generation = 1; generation <= 4; generation++) {
        pass(s, 60);
        assert_int_equal(job_view(s, 1).restarts, generation == 1 ? 0 : generation - 2);
        for (uint64_t link = 1; link <= 3; link++) {
            frozen(s, link, 1, (uint32_t)link - 1, 2, 1);
        }
        assert_int_equal(job_view(s, 1).generation.number, generation + 1);
        for (uint64_t link = 1; link <= 3; link++) {
            arrived(s, link, 1, 1, 8, 2);
            stalls(s, link, (uint32_t)link - 1, (uint32_t)link % 3);
        }
    }
    script_skip(s);
    pass(s, 60);
    for (uint64_t link = 1; link <= 3; link++) {
        frozen(s, link, 1, (uint32_t)link - 1, 2, 1);
    }
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    assert_non_null(strstr(script_job_text(s, 1), "; it was restarted 3 times before"));
    script_close(s);
}

/* In a collective of GPUs it is not known which is missing, but that task does not wait. */
static void who_holds_a_released_step_is_named(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 8);
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 2);
    }
    pass(s, 1);
    stalls(s, 1, 0, 0);
    stalls(s, 3, 2, 2);
    pass(s, 6);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0 ms): task 1 on worker b is waited for");
    script_skip(s);
    pass(s, 53);
    expect_output(s, "tell job 1: abort g1: task 1 on worker b did not come to step 2 for 60 s\n"
                     "stop task 1/1#2 on link 2\n");
    script_close(s);
}

/* As where their GPUs do not reach each other. */
static void gpus_that_wait_for_one_another_are_reported(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 8);
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 8, 2);
    }
    for (uint64_t link = 1; link <= 3; link++) {
        stalls(s, link, (uint32_t)link - 1, (uint32_t)link - 1);
    }
    pass(s, 7);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0 ms): its GPUs wait for one another in a "
        "collective; they must reach each other");
    script_skip(s);
    pass(s, 53);
    expect_output(s,
        "tell job 1: abort g1: step 2 did not end for 60 s: its GPUs wait for one another in a "
        "collective; they must reach each other\n");
    script_close(s);
}

/* Two have finished. The chief reports that it waits for its last checkpoint, or nothing. */
static void the_last_checkpoint_may_take_long(void **state)
{
    (void)state;
    for (int reports_it = 0; reports_it < 2; reports_it++) {
        struct script *s = stage_running(&elastic, 3, 8);
        for (uint64_t link = 1; link <= 3; link++) {
            arrived(s, link, 1, 1, 8, 2);
        }
        finished(s, 2, 1, 1, 2);
        finished(s, 3, 1, 2, 2);
        stalls(s, 2, 1, 0);
        stalls(s, 3, 2, 0);
        if (reports_it == 1) {
            stalls(s, 1, 0, 0);
        }
        script_skip(s);
        pass(s, 200);
        if (reports_it == 1) {
            expect_output(s, "");
        } else {
            expect_output(s, "record! job 1: plan g2 from 2 of 2 1, source rank 1\n"
                             "tell job 1: plan g2\n"
                             "stop task 1/0#1 on link 1\n");
        }
        script_close(s);
    }
}

static void who_holds_the_release_is_named(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 2);
    arrived(s, 1, 1, 1, 3, 2);
    arrived(s, 3, 1, 1, 3, 2);
    arrived(s, 2, 1, 1, 2, 2);
    pass(s, 1);
    stalls(s, 1, 0, 0);
    stalls(s, 3, 2, 2);
    pass(s, 6);
    assert_string_equal(script_job_text(s, 1),
        "step 2 has not ended for 7 s (median 0 ms): task 1 on worker b is waited for");
    script_close(s);
}

/* Steps go on until the halt; that does not take the halt's deadline away. */
static void who_does_not_come_to_a_halt_is_replaced(void **state)
{
    (void)state;
    static const struct core_job_spec spec = {
        .tasks = 3, .tasks_min = 1, .max_restarts = 3, .stall_us = 60 * SECOND};
    struct script *s = stage_running(&spec, 2, 2);
    join(s, 3, "c", 1);
    task_hello(s, 3, 1, 2, 0);
    joins(s, 3, 1, 2, 1);
    arrived(s, 2, 1, 1, 2, 1);
    arrived(s, 1, 1, 1, 4, 1);
    script_skip(s);
    pass(s, 50);
    relay_up(s, 1, 1, 0,
        &(struct task_up){.type = TASK_UP_STALL,
            .stall = {.generation = job_view(s, 1).generation, .position = 1, .slot = 1}});
    arrived(s, 1, 1, 1, 4, 2);
    halted(s, 1, 1, 0, 2, 1);
    arrived(s, 2, 1, 1, 2, 2);
    pass(s, 30);
    expect_output(s, ""); /* it has as long as others have for a step */
    pass(s, 31);
    expect_output(s, "record! job 1: plan g2 from 2 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n"
                     "stop task 1/1#2 on link 2\n");
    script_close(s);
}

/* One has finished, another comes to the halt and wants a step more: the job fails in the event in
 * which a third one begins to be waited for. It is not replaced when that wait is over. */
static void no_task_is_replaced_in_a_job_that_has_failed(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 8);
    drain(s, 7, "c");
    for (uint64_t link = 1; link <= 2; link++) {
        arrived(s, link, 1, 1, 8, 8);
    }
    script_skip(s);
    assert_int_equal(job_view(s, 1).halt_kind, HALT_REGROUP);
    finished(s, 1, 1, 0, 8);
    halted(s, 2, 1, 1, 8, 1);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b waits for step 9, but task 0 on worker a called cadre_finish after 8 "
        "steps: all tasks must take the same steps");
    collect(s, 1, 1, 0);
    collect(s, 2, 1, 1);
    script_skip(s);
    pass(s, 61);
    expect_output(s, "");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_step_is_reported),
        cmocka_unit_test(the_only_task_of_a_job),
        cmocka_unit_test(who_is_waited_for_is_known_after_a_second),
        cmocka_unit_test(steps_that_are_reported_late_end_no_wait),
        cmocka_unit_test(one_that_stalls_is_replaced),
        cmocka_unit_test(a_replica_that_hangs_is_named),
        cmocka_unit_test(a_task_whose_replica_hangs_is_replaced),
        cmocka_unit_test(who_hangs_no_longer_is_not_named),
        cmocka_unit_test(who_holds_a_released_step_is_named),
        cmocka_unit_test(gpus_that_wait_for_one_another_are_reported),
        cmocka_unit_test(a_ring_of_waits_is_broken_and_counted),
        cmocka_unit_test(the_last_checkpoint_may_take_long),
        cmocka_unit_test(who_holds_the_release_is_named),
        cmocka_unit_test(who_does_not_come_to_a_halt_is_replaced),
        cmocka_unit_test(no_task_is_replaced_in_a_job_that_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
