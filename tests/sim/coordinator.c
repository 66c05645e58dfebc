/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's shell: turns of several events, then all their records, then all their speech;
 * and its restart. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"

#define TICKS_MAX 10000

void coordinator_boot(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    uint32_t agents = sim->scenario.agents;
    struct core_options options = {
        .limits = {.workers_max = agents > 1000 ? agents + 64 : 4 * agents,
            .jobs_max = SCENARIO_JOBS_MAX,
            .tasks_max = sim->scenario.job_count * sim->scenario.slots_total},
        .seed = prng_next(&sim->prng),
        .lease_us = SCENARIO_LEASE_US,
        .rewind_us = mutant_goes_on(sim, MUTANT_LEASE_ALONE) ? 0 : SCENARIO_REWIND_US,
        .grace_us = SCENARIO_GRACE_US,
        .collect_us = SCENARIO_COLLECT_US,
        .form_us = SCENARIO_FORM_US,
        .report_us = SCENARIO_REPORT_US,
        .wait_us = SCENARIO_WAIT_US,
        .stall_us = SCENARIO_STALL_US,
        .slow_factor = 10,
        .slow_us = SCENARIO_SLOW_US,
    };
    size_t bytes = core_bytes(&options.limits);
    if (bytes > c->memory_bytes) {
        free(c->memory);
        c->memory = malloc(bytes);
        CADRE_ASSERT(c->memory != NULL);
        c->memory_bytes = bytes;
    }
    c->core = core_init(c->memory, &options);
    c->life++;
    c->turn.count = 0;
    c->turn_open = false;
    c->sync_armed = false;
    c->tick_at_us = UINT64_MAX;
    c->submitting = NOBODY;
}

static bool is_lost(struct sim *sim, const struct core_record *record)
{
    switch (record->type) {
    case CORE_RECORD_JOB:
        return mutant_acts(sim, MUTANT_ANSWER_UNRECORDED);
    case CORE_RECORD_STARTED:
        return mutant_acts(sim, MUTANT_START_UNRECORDED);
    case CORE_RECORD_TASK:
        return mutant_acts(sim, MUTANT_TASK_UNRECORDED);
    case CORE_RECORD_PLAN:
        return mutant_acts(sim, MUTANT_PLAN_UNRECORDED);
    case CORE_RECORD_CONTROL:
        return record->control.halt_kind != HALT_NONE &&
               mutant_acts(sim, MUTANT_CONTROL_UNRECORDED);
    case CORE_RECORD_WATERMARK:
        return mutant_acts(sim, MUTANT_WATERMARK_UNRECORDED);
    case CORE_RECORD_END_OF_DATA:
        return mutant_acts(sim, MUTANT_END_LOST);
    case CORE_RECORD_CHECKPOINT:
        return mutant_acts(sim, MUTANT_CHECKPOINT_UNRECORDED);
    case CORE_RECORD_DONE:
        return mutant_acts(sim, MUTANT_DONE_UNRECORDED);
    case CORE_RECORD_DRAINED:
        return mutant_goes_on(sim, MUTANT_DRAIN_UNRECORDED);
    default:
        return false;
    }
}

/* One transaction. */
static void write_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    bool sync = false;
    for (size_t i = 0; i < c->turn.count; i++) {
        const struct core_action *action = &c->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && !is_lost(sim, &action->record)) {
            if (sim->tracing) {
                trace_record(sim, &action->record);
            }
            store_add(sim, &action->record);
            sync |= action->record.sync;
        }
    }
    store_commit(sim, sync);
    if (sim->store.count > 0 && !c->sync_armed) {
        c->sync_armed = true;
        later(sim, sim->scenario.sync_us, ON_SYNC, 0, c->life, 0);
    }
}

void coordinator_sync(struct sim *sim)
{
    sim->coordinator.sync_armed = false;
    store_sync(sim);
}

void coordinator_crash(struct sim *sim, bool tail)
{
    trace(sim, "coordinator crashes");
    if (sim->coordinator.turn_open && prng_chance(&sim->prng, 1, 2)) {
        write_turn(sim); /* it crashes between its commit and the first word */
    }
    if (tail) {
        store_crash(sim);
    }
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct link *link = &sim->links[i];
        if (link->coordinator_open) {
            link_cut(sim, i, 500000);
            link->coordinator_open = false;
        }
    }
    coordinator_boot(sim);
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        sim->agents[i].heard_us = sim->now_us;
    }
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->coordinator_crashed |= job->stored->known && !job->stored->ended;
        job->crashes += job->stored->started && !job->stored->ended ? 1 : 0;
        job->touches += job->stored->started && !job->stored->ended ? 1 : 0;
    }
    store_restore(sim);
    /* Who asked and was not answered asks again. */
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->call != 0 && !job->answered && !job->stored->known) {
            job->id.n = 0;
            job->call = 0;
            later(sim, draw(sim, 100000, 1000000), ON_SUBMIT, i, 0, 0);
        }
    }
}

static void make_room(struct core_actions *turn)
{
    if (turn->capacity - turn->count < CORE_ACTIONS_PER_STEP_MAX) {
        turn->capacity = 2 * turn->capacity + 4 * CORE_ACTIONS_PER_STEP_MAX;
        turn->items = realloc(turn->items, turn->capacity * sizeof(*turn->items));
        CADRE_ASSERT(turn->items != NULL);
    }
}

/* The id that a submit got is known when its record is. */
static void note_submitted(struct sim *sim, const struct core_record *record)
{
    struct coordinator *c = &sim->coordinator;
    CADRE_ASSERT(c->submitting != NOBODY);
    struct job *job = &sim->jobs[c->submitting];
    job->id = record->job;
    if (record->job.n <= sim->store.job_max) {
        broken(sim, "IDS", "job id %llu is given out twice", (unsigned long long)record->job.n);
    }
}

static void note_welcomed(struct sim *sim, const struct core_action *action)
{
    uint32_t needed = (uint32_t)action->welcome.worker.n + 1;
    sim->worker_agents =
        grown(sim->worker_agents, &sim->worker_capacity, needed, sizeof(*sim->worker_agents));
    sim->worker_agents[action->welcome.worker.n] = sim->links[action->welcome.link.n - 1].agent;
}

void coordinator_step(struct sim *sim, struct core_event *event)
{
    struct coordinator *c = &sim->coordinator;
    event->now_us = sim->now_us;
    make_room(&c->turn);
    size_t before = c->turn.count;
    core_step(c->core, event, &c->turn);
    sim->core_events++;
    for (size_t i = before; i < c->turn.count; i++) {
        const struct core_action *action = &c->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && action->record.type == CORE_RECORD_JOB) {
            note_submitted(sim, &action->record);
        } else if (action->type == CORE_ACTION_WELCOME) {
            note_welcomed(sim, action);
        }
    }
    bool whole = sim->scenario.agents <= SIM_SWEEP_MAX || sim->core_events % SIM_SWEEP_EVERY == 0;
    check_cores(sim, NOBODY, whole);
    if (!c->turn_open) {
        c->turn_open = true;
        later(sim, draw(sim, 1, sim->scenario.turn_us), ON_TURN_END, 0, c->life, 0);
    }
}

/* Work that did not fit is asked for at once, within the turn. */
static void tick_while_due(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    int ticks = 0;
    while (core_wake_us(c->core) <= sim->now_us && sim->broken == NULL) {
        if (++ticks > TICKS_MAX) {
            broken(sim, "PROGRESS", "the coordinator's core asks for ticks without end");
        }
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_TICK});
    }
}

void coordinator_turn_end(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    tick_while_due(sim);
    write_turn(sim);
    check_drains(sim);
    for (size_t i = 0; i < c->turn.count && sim->broken == NULL; i++) {
        if (c->turn.items[i].type != CORE_ACTION_RECORD) {
            check_spoken(sim, &c->turn.items[i]);
            speak(sim, &c->turn.items[i]);
        }
    }
    c->turn.count = 0;
    c->turn_open = false;
    uint64_t wake_us = core_wake_us(c->core);
    if (wake_us < c->tick_at_us) {
        c->tick_at_us = wake_us;
        later_with(sim, wake_us, ON_COORDINATOR_TICK, 0, c->life, 0, NULL);
    }
}

void coordinator_tick(struct sim *sim)
{
    sim->coordinator.tick_at_us = UINT64_MAX;
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_TICK});
}
