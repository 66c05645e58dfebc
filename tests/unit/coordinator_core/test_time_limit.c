/* SPDX-License-Identifier: Apache-2.0
 * A job that may run for a time only. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

#define LIMIT_US (60 * SECOND)

static const struct core_job_spec spec = {
    .tasks = 2, .tasks_min = 2, .max_restarts = 3, .time_limit_us = LIMIT_US};

/* Its workers live on meanwhile. */
static void live_us(struct script *s, uint64_t for_us)
{
    for (uint64_t done_us = 0; done_us < for_us; done_us += SECOND) {
        wait_us(s, SECOND);
        heartbeat(s, 1);
        heartbeat(s, 2);
    }
}

static void it_saves_and_fails(void **state)
{
    (void)state;
    struct script *s = stage_running(&spec, 2, 4);
    arrived(s, 1, 1, 1, 6, 3);
    live_us(s, LIMIT_US - SECOND);
    script_skip(s);
    wait_us(s, SECOND);
    expect_output(s, "record! job 1: halt at 5 of stream 0\n"
                     "tell job 1: release g1 to 4, halt\n");
    arrived(s, 1, 1, 1, 6, 4);
    arrived(s, 2, 1, 1, 6, 4);
    arrived(s, 1, 1, 1, 6, 5);
    halted(s, 1, 1, 0, 5, 1);
    arrived(s, 2, 1, 1, 6, 5);
    halted(s, 2, 1, 1, 5, 1);
    part(s, 1, 1, 0, 5, "checkpoint-5.json");
    script_skip(s);
    gone(s, 1, 1, 0, 42, 0, "");
    gone(s, 2, 1, 1, 42, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed DEADLINE_EXCEEDED exit 1: ran longer than its --time-limit of "
        "1 min; saved at step 5, where --restore 1 goes on\n"
        "ended job 1\n");
    script_close(s);
}

/* One that already leaves for another reason goes on telling that. */
static void it_leaves_already(void **state)
{
    (void)state;
    const struct task_up notice = {.type = TASK_UP_PREEMPT, .preempt.stops = true};
    struct script *s = stage_running(&spec, 2, 4);
    live_us(s, LIMIT_US - SECOND);
    relay_up(s, 2, 1, 1, &notice);
    char before[LIMIT_TEXT_BYTES];
    snprintf(before, sizeof before, "%s", script_job_text(s, 1));
    live_us(s, 2 * SECOND);
    script_skip(s);
    assert_string_equal(script_job_text(s, 1), before);
    assert_non_null(strstr(before, "(task 1 on worker b has to leave its machine)"));
    script_close(s);
}

/* A program that never joins is stopped; its exit counts as nothing. */
static void one_without_steps(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    submit_spec(s, 1, &spec);
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    live_us(s, LIMIT_US - SECOND);
    script_skip(s);
    live_us(s, SECOND);
    expect_output(s, "record! job 1: halt at 0 of stream 0\n"
                     "stop task 1/1#2 on link 2\n"
                     "stop task 1/0#1 on link 1\n");
    gone(s, 1, 1, 0, 0, 15, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: failed DEADLINE_EXCEEDED exit 1: ran longer than its --time-limit of "
        "1 min\n"
        "ended job 1\n");
    script_close(s);
}

/* The queue takes none of it, and what ends in time is not concerned. */
static void the_queue_does_not_count(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    submit_spec(s, 1, &spec);
    live_us(s, 2 * LIMIT_US);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    live_us(s, LIMIT_US / 2);
    gone(s, 1, 1, 0, 0, 0, "");
    gone(s, 2, 1, 1, 0, 0, "");
    collected(s, 1, 1, 0);
    script_skip(s);
    collected(s, 2, 1, 1);
    expect_output(s,
        "stop task 1/1#2 on link 2\n"
        "record! job 1: succeeded OK exit 0: all tasks exited with status 0 without joining a "
        "strategy\n"
        "ended job 1\n");
    script_close(s);
}

/* The coordinator was started again: what ran before counts. */
static void a_restart_does_not_reset_it(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    const struct core_restore_task tasks[] = {
        {.slot = 0, .incarnation = 1, .rank = UINT32_MAX, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = UINT32_MAX, .worker = "b"}};
    const struct task_ref held[] = {{{1}, 0, 1}, {{1}, 1, 2}};
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                .restore = {.job = {1},
                    .spec = spec,
                    .started = true,
                    .ran_us = LIMIT_US - 5 * SECOND,
                    .incarnation_max = 2,
                    .tasks = tasks,
                    .task_count = 2}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done.job_max = 1});
    hello(s, 1, "a", 1, 1, &held[0], 1);
    hello(s, 2, "b", 1, 1, &held[1], 1);
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    live_us(s, 4 * SECOND);
    script_skip(s);
    live_us(s, SECOND);
    expect_output(s, "record! job 1: halt at 0 of stream 0\n"
                     "stop task 1/1#2 on link 2\n"
                     "stop task 1/0#1 on link 1\n");
    script_close(s);
}

/* It waits to go on from its checkpoint, after a preemption and a start of the coordinator. */
static void the_queue_after_a_preemption_counts(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                .restore = {.job = {1},
                    .spec = spec,
                    .ran_us = LIMIT_US - 5 * SECOND,
                    .incarnation_max = 2,
                    .generation = {.number = 1, .nonce = 7},
                    .has_checkpoint = true,
                    .checkpoint = {.position = 3, .path = "checkpoint-3.json"}}});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done.job_max = 1});
    live_us(s, 4 * SECOND);
    script_skip(s);
    live_us(s, SECOND);
    expect_output(s,
        "record! job 1: failed DEADLINE_EXCEEDED exit 1: ran longer than its --time-limit of "
        "1 min; saved at step 3, where --restore 1 goes on\n"
        "ended job 1\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_saves_and_fails),
        cmocka_unit_test(it_leaves_already),
        cmocka_unit_test(one_without_steps),
        cmocka_unit_test(the_queue_does_not_count),
        cmocka_unit_test(a_restart_does_not_reset_it),
        cmocka_unit_test(the_queue_after_a_preemption_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
