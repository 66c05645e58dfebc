/* SPDX-License-Identifier: Apache-2.0
 * Ten thousand workers: that the limits hold it, that rounds are released, and how long a step
 * takes here (printed, for people; nothing is asserted about time). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/core/core.h"
#include "tests/lib/test.h"

#define WORKERS 10000u
#define ROUNDS  20u

struct stage {
    struct core *core;
    struct core_actions actions;
    size_t relay_up;
    uint64_t now_us;
};

static void step(struct stage *stage, const struct core_event *event)
{
    struct core_event timed = *event;
    timed.now_us = stage->now_us;
    stage->actions.count = 0;
    core_step(stage->core, &timed, &stage->actions);
    stage->relay_up += stage->actions.count;
}

static void settle(struct stage *stage)
{
    while (core_wake_us(stage->core) <= stage->now_us) {
        step(stage, &(struct core_event){.type = CORE_EVENT_TICK});
    }
}

static void up(struct stage *stage, uint32_t w, const struct agent_up *message)
{
    step(stage, &(struct core_event){
                    .type = CORE_EVENT_AGENT_UP, .agent = {.link = {w + 1}, .up = message}});
}

static void print_rate(const char *what, uint32_t events, uint64_t since_us)
{
    uint64_t took_us = clock_monotonic_us() - since_us;
    print_message("%-28s %8u events in %7.1f ms: %6.0f ns each\n", what, events,
        (double)took_us / 1000, (double)took_us * 1000 / events);
}

static void join_all(struct stage *stage)
{
    uint64_t since_us = clock_monotonic_us();
    for (uint32_t w = 0; w < WORKERS; w++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "worker-%05u", w);
        up(stage, w,
            &(struct agent_up){.type = AGENT_UP_HELLO,
                .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                    .name = name,
                    .boot_nonce = w + 1,
                    .slots = 1}});
    }
    print_rate("hello", WORKERS, since_us);
}

static void start_all(struct stage *stage)
{
    uint64_t since_us = clock_monotonic_us();
    step(stage,
        &(struct core_event){.type = CORE_EVENT_SUBMIT,
            .submit = {.spec = {.tasks = WORKERS, .tasks_min = WORKERS, .max_restarts = 1}}});
    print_rate("submit and placement", 1, since_us);
    since_us = clock_monotonic_us();
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct agent_up message = {.type = AGENT_UP_RELAY,
            .relay_up = {.task = {.job = {1}, .slot = w, .incarnation = w + 1},
                .up = {.type = TASK_UP_HELLO,
                    .hello = {.frame_version = TASK_FRAME_VERSION,
                        .pid = w + 1,
                        .replicas = 1,
                        .mesh_address = "10.0.0.1:1"}}}};
        up(stage, w, &message);
    }
    print_rate("hello of a task", WORKERS, since_us);
}

static void run_rounds(struct stage *stage)
{
    struct core_job_view view;
    assert_true(core_job(stage->core, (struct job_id){1}, &view));
    assert_int_equal(view.roster, WORKERS);
    uint64_t since_us = clock_monotonic_us();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            struct agent_up message = {.type = AGENT_UP_ARRIVED,
                .arrived = {.job = {1},
                    .generation = view.generation,
                    .tasks = 1,
                    .up_to = round,
                    .applied = round - 1,
                    .cursor = {.stream = 1}}};
            up(stage, w, &message);
        }
    }
    print_rate("arrival", ROUNDS * WORKERS, since_us);
    assert_true(core_job(stage->core, (struct job_id){1}, &view));
    assert_int_equal(view.released, ROUNDS);
    assert_int_equal(view.committed, ROUNDS - 1);
}

/* One is killed, all others report and go on, and another takes its place. */
static void regroup(struct stage *stage)
{
    struct core_job_view view;
    struct task_ref dead = {.job = {1}, .slot = 7, .incarnation = 8};
    struct agent_up message = {
        .type = AGENT_UP_TASK_GONE, .gone = {.task = dead, .exit = {.signal = 9}}};
    assert_true(core_job(stage->core, (struct job_id){1}, &view));
    uint64_t since_us = clock_monotonic_us();
    up(stage, 7, &message);
    message = (struct agent_up){.type = AGENT_UP_TASK_COLLECTED, .collected = {.task = dead}};
    message.collected.text = "";
    up(stage, 7, &message);
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (w == 7) {
            continue;
        }
        message = (struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {.task = {.job = {1}, .slot = w, .incarnation = w + 1},
                .up = {.type = TASK_UP_REPORT,
                    .report = {.generation = view.generation,
                        .position = ROUNDS - 1,
                        .clean = true,
                        .begun = true,
                        .stream = 1,
                        .reason = REPORT_ABORT,
                        .text = ""}}}};
        up(stage, w, &message);
    }
    struct agent_up joiner = {.type = AGENT_UP_RELAY,
        .relay_up = {.task = {.job = {1}, .slot = 7, .incarnation = WORKERS + 1},
            .up = {.type = TASK_UP_HELLO,
                .hello = {.frame_version = TASK_FRAME_VERSION,
                    .pid = 1,
                    .replicas = 1,
                    .mesh_address = "10.0.0.1:1"}}}};
    up(stage, 7, &joiner);
    joiner.relay_up.up = (struct task_up){.type = TASK_UP_JOIN, .join = {.stream = 1}};
    up(stage, 7, &joiner);
    print_rate("report of a regroup", WORKERS, since_us);
    assert_true(core_job(stage->core, (struct job_id){1}, &view));
    assert_int_equal(view.generation.number, 2);
    assert_int_equal(view.roster, WORKERS);
    assert_int_equal(view.resume, ROUNDS - 1);
    assert_null(core_invariant(stage->core, true));
}

/* Each job a task, each worker a slot: submitted, placed, run to its end and forgotten. */
static void ten_thousand_jobs(void **state)
{
    (void)state;
    const struct core_options options = {
        .limits = {.workers_max = WORKERS, .jobs_max = WORKERS + 1, .tasks_max = 2 * WORKERS},
        .seed = 1,
        .lease_us = 10000000,
        .grace_us = 1,
        .collect_us = 1,
        .form_us = 1,
        .report_us = 1000000,
        .wait_us = 1};
    void *memory = malloc(core_bytes(&options.limits));
    assert_non_null(memory);
    struct stage stage = {
        .core = core_init(memory, &options), .actions = {.capacity = CORE_ACTIONS_PER_STEP_MAX}};
    stage.actions.items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof(*stage.actions.items));
    assert_non_null(stage.actions.items);
    join_all(&stage);
    uint64_t since_us = clock_monotonic_us();
    for (uint32_t i = 0; i < WORKERS; i++) {
        step(&stage, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                         .submit = {.spec = {.tasks = 1, .tasks_min = 1, .max_restarts = 1}}});
    }
    print_rate("submit and place a job", WORKERS, since_us);
    for (uint32_t i = 0; i < WORKERS; i += WORKERS / 10) {
        struct core_task_view task;
        core_job_task(stage.core, (struct job_id){i + 1}, 0, &task);
        assert_int_equal(task.worker.n, i + 1); /* the oldest first among equals */
    }
    since_us = clock_monotonic_us();
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct task_ref task = {.job = {w + 1}, .incarnation = 1};
        struct agent_up message = {.type = AGENT_UP_TASK_GONE, .gone = {.task = task}};
        up(&stage, w, &message);
        message = (struct agent_up){
            .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = task, .text = ""}};
        up(&stage, w, &message);
    }
    print_rate("end of a job", WORKERS, since_us);
    struct core_job_view view;
    assert_false(core_job(stage.core, (struct job_id){WORKERS}, &view));
    assert_null(core_invariant(stage.core, true));
    free(stage.actions.items);
    free(memory);
}

static void ten_thousand_workers(void **state)
{
    (void)state;
    const struct core_options options = {
        .limits = {.workers_max = WORKERS, .jobs_max = 100, .tasks_max = 20000},
        .seed = 1,
        .lease_us = 10000000,
        .grace_us = 1,
        .collect_us = 1,
        .form_us = 1,
        .report_us = 1000000,
        .wait_us = 1};
    size_t bytes = core_bytes(&options.limits);
    void *memory = malloc(bytes);
    assert_non_null(memory);
    struct stage stage = {
        .core = core_init(memory, &options), .actions = {.capacity = CORE_ACTIONS_PER_STEP_MAX}};
    stage.actions.items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof(*stage.actions.items));
    assert_non_null(stage.actions.items);
    print_message("memory of the core: %zu KiB\n", bytes / 1024);
    join_all(&stage);
    start_all(&stage);
    run_rounds(&stage);
    assert_null(core_invariant(stage.core, true));

    regroup(&stage);
    /* All fall silent at once: every worker is refused, every task recorded, in bounded steps. */
    stage.relay_up = 0;
    stage.now_us += options.lease_us;
    uint64_t since_us = clock_monotonic_us();
    settle(&stage);
    stage.now_us += 1; /* the wait for outputs that no agent will send */
    settle(&stage);
    print_rate("loss of a worker", WORKERS, since_us);
    assert_int_equal(core_worker_count(stage.core), 0);
    assert_true(stage.relay_up > 2 * WORKERS);
    struct core_job_view view;
    assert_false(core_job(stage.core, (struct job_id){1}, &view));
    assert_null(core_invariant(stage.core, true));
    free(stage.actions.items);
    free(memory);
}

static uint32_t tellings(const struct stage *stage)
{
    uint32_t count = 0;
    for (size_t i = 0; i < stage->actions.count; i++) {
        const struct core_action *action = &stage->actions.items[i];
        bool members = action->type == CORE_ACTION_NOTIFY_JOB &&
                       action->notify_job.message == CORE_MESSAGE_MEMBERS;
        count += members && (!action->notify_job.one || action->notify_job.slot == 0) ? 1 : 0;
    }
    return count;
}

/* The workers of a ps job come one after another, for a second: the chief receives all of them, but
 * not at each. */
static void ps_job_starts(uint32_t tasks, uint64_t members_us)
{
    const struct core_options options = {
        .limits = {.workers_max = WORKERS, .jobs_max = 1, .tasks_max = WORKERS},
        .seed = 1,
        .lease_us = 10000000,
        .grace_us = 1,
        .collect_us = 1,
        .form_us = 1,
        .report_us = 1000000,
        .wait_us = 1000000,
        .members_us = members_us};
    void *memory = malloc(core_bytes(&options.limits));
    assert_non_null(memory);
    struct stage stage = {
        .core = core_init(memory, &options), .actions = {.capacity = CORE_ACTIONS_PER_STEP_MAX}};
    stage.actions.items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof(*stage.actions.items));
    assert_non_null(stage.actions.items);
    join_all(&stage);
    step(&stage, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                     .submit = {.spec = {.tasks = tasks,
                                    .tasks_min = tasks,
                                    .ps_job = {.workers = tasks - 2, .servers = 1}}}});
    uint32_t notified = 0;
    for (uint32_t slot = 0; slot < tasks; slot++) {
        struct agent_up message = {.type = AGENT_UP_RELAY,
            .relay_up = {.task = {.job = {1}, .slot = slot, .incarnation = slot + 1},
                .up = {.type = TASK_UP_HELLO,
                    .hello = {.frame_version = TASK_FRAME_VERSION,
                        .pid = slot + 1,
                        .replicas = 1,
                        .mesh_address = "10.0.0.1:1"}}}};
        up(&stage, slot, &message);
        notified += tellings(&stage);
        stage.now_us += 1000000 / tasks;
        while (core_wake_us(stage.core) <= stage.now_us) {
            step(&stage, &(struct core_event){.type = CORE_EVENT_TICK});
            notified += tellings(&stage);
        }
    }
    stage.now_us += members_us * tasks;
    step(&stage, &(struct core_event){.type = CORE_EVENT_TICK});
    notified += tellings(&stage);
    print_message("a ps job of %u starts: its chief gets %u messages, of %llu members together\n",
        tasks, notified, (unsigned long long)notified * tasks);
    struct core_task_view task;
    core_job_task(stage.core, (struct job_id){1}, tasks - 1, &task);
    assert_true(task.here);
    assert_true(notified <= 2 + 1000000 / (members_us * tasks));
    assert_null(core_invariant(stage.core, true));
    free(stage.actions.items);
    free(memory);
}

static void a_large_ps_job_starts(void **state)
{
    (void)state;
    ps_job_starts(100, 20);
    ps_job_starts(1000, 20);
    ps_job_starts(WORKERS, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand_workers),
        cmocka_unit_test(ten_thousand_jobs), cmocka_unit_test(a_large_ps_job_starts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
