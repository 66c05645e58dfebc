/* SPDX-License-Identifier: Apache-2.0
 * Tasks and daemons that keep to the protocol, in random order, while tasks are killed, daemons and
 * the coordinator are started again, connections break and workers drain: as long as a slot is
 * left, every job reaches its end, with all its steps done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/coordinator_core/world.h"

#define FAULTS   8
#define PATIENCE 20000

static void come_up(struct world *world, uint32_t w)
{
    static const char *const names[WORKERS] = {"a", "b", "c", "d"};
    struct task_ref held[64];
    size_t count = 0;
    for (size_t i = 0; i < 64; i++) {
        const struct process *process = &world->processes[i];
        if (process->attempt != NOT_THERE && process->worker == w) {
            held[count++] = process->ref;
        }
    }
    world->links[w] = ++world->link_last;
    world_up(world, w,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .name = names[w],
                .boot_nonce = world->boots[w],
                .slots = 1,
                .tasks = held,
                .task_count = count}});
    for (size_t i = 0; i < 64; i++) {
        struct process *process = &world->processes[i];
        enum attempt attempt = process->attempt;
        if (attempt == NOT_THERE || attempt >= EXITS || process->worker != w ||
            attempt == STARTED) {
            continue;
        }
        process_send_hello(world, process);
        if (process->attempt == FROZEN && attempt == FROZEN) {
            process_send_report(world, process);
        } else if (process->attempt == JOINS) {
            process_send_join(world, process);
        }
        process->notified = POSITION_NONE;
    }
}

static void go_down(struct world *world, uint32_t w)
{
    uint64_t link = world->links[w];
    world->links[w] = 0;
    world_step(world, (struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
}

/* The coordinator is killed and started again; with its machine, the tail of the watermark is gone.
 */
static void restart(struct world *world)
{
    struct core_options options = *world->options;
    struct core_restore_job job = world->stored.job;
    struct core_restore_task tasks[SLOTS];
    size_t count = 0;
    options.seed = prng_next(&world->prng);
    world->core = core_init(world->memory, &options);
    if (prng_chance(&world->prng, 1, 2)) {
        job.released = world->stored.synced;
        world->stored.job.released = job.released;
    }
    world->watch->jobs[1].watermark = job.released;
    world->watch->jobs[1].relay_up = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (world->stored.tasks[slot].incarnation > 0) {
            tasks[count++] = world->stored.tasks[slot];
        }
    }
    job.tasks = tasks;
    job.task_count = count;
    memset(world->links, 0, sizeof(world->links));
    world_step(world, (struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = job});
    world_step(world,
        (struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
}

static void fault(struct world *world)
{
    uint32_t w = (uint32_t)prng_uniform(&world->prng, WORKERS);
    uint64_t which = prng_uniform(&world->prng, 10);
    if (world->links[w] == 0) {
        return;
    }
    world->faults++;
    if (which < 4) { /* a task is killed */
        struct process *process = &world->processes[prng_uniform(&world->prng, 8)];
        process_exits(process, 0, 9);
    } else if (which < 6) { /* a connection breaks */
        go_down(world, w);
    } else if (which < 7) { /* a daemon is started again, its tasks are lost */
        go_down(world, w);
        world->boots[w] += 10;
        for (size_t i = 0; i < 64; i++) {
            if (world->processes[i].worker == w) {
                world->processes[i] = (struct process){.attempt = NOT_THERE};
            }
        }
        come_up(world, w);
    } else if (which < 9) {
        restart(world);
    } else if (w == WORKERS - 1) {
        bool ends = prng_uniform(&world->prng, 2) == 0;
        struct core_event event = {
            .type = CORE_EVENT_DRAIN, .drain = {.ends = ends, .drained = {.worker = "d"}}};
        world_step(world, event);
    }
}

static void pass_time(struct world *world)
{
    world->now_us += prng_uniform(&world->prng, SECOND / 20);
    world_step(world, (struct core_event){.type = CORE_EVENT_TICK});
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (world->links[w] != 0) {
            world_up(world, w, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
    }
}

static void world_run(struct world *world, uint64_t seed, const struct core_options *options)
{
    struct core_job_spec spec = {.tasks = SLOTS, .max_restarts = 100};
    world->options = options;
    world->core = core_init(world->memory, options);
    memset(&world->stored, 0, sizeof(world->stored));
    memset(world->watch, 0, sizeof(*world->watch));
    memset(world->processes, 0, sizeof(world->processes));
    world->prng = (struct prng){.state = seed};
    world->now_us = 0;
    world->link_last = 0;
    world->faults = 0;
    world->ended = false;
    spec.tasks_min = 1 + (uint32_t)prng_uniform(&world->prng, SLOTS);
    for (uint32_t w = 0; w < WORKERS; w++) {
        world->boots[w] = w + 1;
        come_up(world, w);
    }
    world_step(world, (struct core_event){.type = CORE_EVENT_SUBMIT, .submit = {.spec = spec}});
    for (int i = 0; i < PATIENCE && !world->ended; i++) {
        struct process *process = &world->processes[prng_uniform(&world->prng, 12)];
        if (world->links[process->worker] != 0) {
            process_act(world, process);
        }
        if (!world->ended && world->faults < FAULTS && prng_chance(&world->prng, 1, 60)) {
            fault(world);
        }
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == 0 && prng_chance(&world->prng, 1, 40)) {
                come_up(world, w);
            }
        }
        if (prng_chance(&world->prng, 1, 8)) {
            pass_time(world);
        }
    }
}

static void jobs_come_to_their_end(void **state)
{
    (void)state;
    const struct core_options options = {
        .limits = {.workers_max = 8, .jobs_max = 2, .tasks_max = 8},
        .seed = 5,
        .lease_us = 10 * SECOND,
        .rewind_us = 25 * SECOND,
        .grace_us = 5 * SECOND,
        .collect_us = 5 * SECOND,
        .form_us = 100 * SECOND,
        .report_us = 2 * SECOND,
        .wait_us = 1000 * SECOND,
        .stall_us = 1000 * SECOND,
        .slow_factor = 10,
        .slow_us = SECOND};
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->memory = malloc(core_bytes(&options.limits));
    world->watch = malloc(sizeof(*world->watch));
    assert_true(world->memory != NULL && world->watch != NULL);
    uint64_t succeeded = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world_run(world, seed, &options);
        if (!world->ended) {
            struct core_job_view view;
            char text[LIMIT_TEXT_BYTES];
            assert_true(core_job(world->core, (struct job_id){1}, &view));
            assert_true(core_job_text(world->core, view.job, text));
            for (size_t i = 0; i < 64; i++) {
                const struct process *process = &world->processes[i];
                if (process->attempt != NOT_THERE) {
                    print_message(
                        "task %u#%llu on %u: state %d, generation %llu at %llu, published %lld\n",
                        process->ref.slot, (unsigned long long)process->ref.incarnation,
                        process->worker, (int)process->attempt,
                        (unsigned long long)process->generation.number,
                        (unsigned long long)process->position, (long long)process->notified);
                }
            }
            fail_msg("seed %llu: generation %llu at %llu of %u: %s", (unsigned long long)seed,
                (unsigned long long)view.generation.number, (unsigned long long)view.released,
                view.roster, text);
        }
        succeeded += world->watch->succeeded;
    }
    print_message("%llu of 300 succeeded, %llu times a task was planned in\n",
        (unsigned long long)succeeded, (unsigned long long)world->generations);
    assert_true(succeeded > 200); /* one that dies after bye has failed */
    free(world->watch);
    free(world->memory);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_come_to_their_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
