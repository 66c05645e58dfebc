/* SPDX-License-Identifier: Apache-2.0
 * How many arrivals a second the coordinator's core takes, without wire, store or sockets: 1,000
 * workers of one task each, in rounds.
 *
 *     bench_core_events [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "coordinator/core/core.h"

#define WORKERS 1000u

struct stage {
    struct core *core;
    struct core_actions actions;
};

static void step(struct stage *stage, const struct core_event *event)
{
    stage->actions.count = 0;
    core_step(stage->core, event, &stage->actions);
    while (core_wake_us(stage->core) == 0) {
        stage->actions.count = 0;
        core_step(stage->core, &(struct core_event){.type = CORE_EVENT_TICK}, &stage->actions);
    }
}

static void up(struct stage *stage, uint32_t worker, const struct agent_up *message)
{
    step(stage, &(struct core_event){
                    .type = CORE_EVENT_AGENT_UP, .agent = {.link = {worker + 1}, .up = message}});
}

/* All workers join, and the tasks of one job greet. */
static void form(struct stage *stage)
{
    for (uint32_t worker = 0; worker < WORKERS; worker++) {
        char name[16];
        snprintf(name, sizeof name, "w%u", worker);
        up(stage, worker,
            &(struct agent_up){.type = AGENT_UP_HELLO,
                .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                    .name = name,
                    .boot_nonce = worker + 1,
                    .slots = 1}});
    }
    step(stage, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                    .submit = {.spec = {.tasks = WORKERS, .tasks_min = WORKERS}}});
    for (uint32_t slot = 0; slot < WORKERS; slot++) {
        struct core_task_view task;
        core_job_task(stage->core, (struct job_id){1}, slot, &task);
        struct agent_up message = {.type = AGENT_UP_RELAY,
            .relay_up = {.task = {.job = {1}, .slot = slot, .incarnation = task.incarnation},
                .up = {.type = TASK_UP_HELLO,
                    .hello = {.frame_version = TASK_FRAME_VERSION,
                        .pid = slot + 1,
                        .replicas = 1,
                        .mesh_address = "127.0.0.1:1"}}}};
        up(stage, (uint32_t)task.link.n - 1, &message);
    }
}

static bool run_rounds(struct stage *stage, uint64_t rounds)
{
    struct core_job_view view;
    if (!core_job(stage->core, (struct job_id){1}, &view)) {
        return false;
    }
    for (uint64_t round = 1; round <= rounds; round++) {
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            up(stage, worker,
                &(struct agent_up){.type = AGENT_UP_ARRIVED,
                    .arrived = {.job = {1},
                        .generation = view.generation,
                        .tasks = 1,
                        .up_to = round,
                        .applied = round - 1,
                        .cursor = {.stream = 1}}});
        }
    }
    return core_job(stage->core, (struct job_id){1}, &view) && view.released == rounds;
}

int main(int argc, char **argv)
{
    const uint64_t asked = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t rounds = asked > 0 ? asked : 1000;
    const struct core_options options = {
        .limits = {.workers_max = WORKERS, .jobs_max = 1, .tasks_max = WORKERS},
        .seed = 1,
        .lease_us = 1000000,
        .grace_us = 1,
        .collect_us = 1,
        .form_us = 1000000};
    void *memory = malloc(core_bytes(&options.limits));
    struct stage stage = {.actions = {.capacity = CORE_ACTIONS_PER_STEP_MAX}};
    stage.actions.items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof *stage.actions.items);
    if (memory == NULL || stage.actions.items == NULL) {
        fprintf(stderr, "core_events: no memory\n");
        return 1;
    }
    stage.core = core_init(memory, &options);
    form(&stage);
    uint64_t began_us = clock_monotonic_us();
    if (!run_rounds(&stage, rounds)) {
        fprintf(stderr, "core_events: the rounds were not released\n");
        return 1;
    }
    double took_s = (double)(clock_monotonic_us() - began_us) / 1e6;
    printf("arrivals_per_s=%.0f\n", (double)WORKERS * (double)rounds / took_s);
    free(stage.actions.items);
    free(memory);
    return 0;
}
