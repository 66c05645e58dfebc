/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's shell: turns of several events, then all their records, then all their
 * messages; and its restart. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "replicas/replicas.h"
#include "sim.h"

#define TICKS_MAX 10000

void coordinator_drop_placements(struct coordinator *c)
{
    for (size_t i = 0; i < c->turn.count; i++) {
        placements_drop(&c->placements[i]);
    }
    c->turn.count = 0;
}

void coordinator_drop_turn(struct sim *sim)
{
    coordinator_drop_placements(&sim->coordinator);
}

void coordinator_boot(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    uint32_t agents = sim->scenario.agents;
    /* A mutant submits jobs again and again. */
    uint32_t times = sim->scenario.replicas > 0 ? 16 : 1;
    struct core_options options = {
        .limits = {.workers_max = agents > 1000 ? agents + 64 : 4 * agents,
            .jobs_max = times * SCENARIO_JOBS_MAX,
            .tasks_max = times * sim->scenario.job_count * sim->scenario.slots_total},
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
    coordinator_drop_turn(sim);
    c->core = core_init(c->memory, &options);
    c->incarnation++;
    c->term = term_of_start(sim, sim->disk.term_start + 1, c->incarnation);
    c->term_unstored = true;
    c->pending_update_open = false;
    c->pause.on = false;
    c->hold = (struct hold){0};
    c->sync_armed = false;
    c->ends_unsynced = false; /* the first turn, which stores the term, syncs what is left */
    c->tick_at_us = UINT64_MAX;
    c->submitting = SIM_NONE;
}

/* By the clock of its machine. */
static uint64_t machine_now(const struct sim *sim)
{
    return clock_shows(&sim->coordinator.clock, sim->now_us);
}

uint64_t coordinator_now(const struct sim *sim)
{
    return hold_core_time(&sim->coordinator.hold, machine_now(sim));
}

bool coordinator_takes_calls(const struct sim *sim)
{
    return sim->coordinator.core != NULL && !sim->coordinator.hold.held &&
           !sim->coordinator.pause.on;
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
    case CORE_RECORD_BACKED:
        return mutant_acts(sim, MUTANT_BACKED_UNRECORDED);
    case CORE_RECORD_DRAINED:
        return mutant_goes_on(sim, MUTANT_DRAIN_UNRECORDED);
    default:
        return false;
    }
}

/* As coordinator/engine: ends of tasks that wait for a sync, and a worker is to forget one. */
static bool ends_wait(const struct coordinator *c)
{
    return c->ends_unsynced || synced_first_records(&c->turn);
}

static bool ends_are_forgotten(struct sim *sim)
{
    const struct coordinator *c = &sim->coordinator;
    return ends_wait(c) && synced_first_tells(&c->turn) &&
           !mutant_goes_on(sim, MUTANT_END_UNSYNCED);
}

/* One transaction. */
static void write_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    bool sync = c->term_unstored || ends_are_forgotten(sim);
    for (size_t i = 0; i < c->turn.count; i++) {
        const struct core_action *action = &c->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && !is_lost(sim, &action->record)) {
            if (sim->tracing) {
                trace_record(sim, &action->record);
            }
            store_add(sim, &action->record, &c->placements[i]);
            sync |= action->record.sync;
        }
    }
    store_commit(sim, sync);
    c->ends_unsynced = ends_wait(c) && !sync;
    if (c->term_unstored && !mutant_goes_on(sim, MUTANT_TERM_UNRECORDED)) {
        sim->disk.term_start = c->term.start;
        c->term_unstored = false;
    }
    if (sim->disk.count > 0 && !c->sync_armed) {
        c->sync_armed = true;
        schedule(sim, sim->scenario.sync_us, ON_SYNC, 0, c->incarnation, 0);
    }
}

/* A coordinator that cannot write ends. What failed may be on the disk nevertheless. */
static void fail(struct sim *sim, const struct cadre_error *error)
{
    trace(sim, "the coordinator ends: %s", error->text);
    coordinator_crash(sim, false);
}

void coordinator_sync(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    if (sim->scenario.replicas > 0) {
        coordinator_open_turn(sim); /* its end appends what is due */
        return;
    }
    struct cadre_error error;
    cadre_status status = store_can_write(sim, &error);
    if (status == CADRE_RESOURCE_EXHAUSTED) {
        schedule(sim, SCENARIO_RETRY_US, ON_SYNC, 0, c->incarnation, 0);
    } else if (status != CADRE_OK) {
        fail(sim, &error);
    } else {
        c->sync_armed = false;
        c->ends_unsynced = false;
        store_sync(sim);
    }
}

void coordinator_crash(struct sim *sim, bool tail)
{
    trace(sim, "coordinator crashes");
    if (sim->coordinator.pending_update_open && prng_chance(&sim->prng, 1, 2) &&
        sim->now_us >= sim->disk.full_until_us) {
        write_turn(sim); /* it crashes between its commit and the first message */
    }
    if (tail) {
        store_crash(sim);
    }
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct link *link = &sim->links[i];
        if (link->coordinator_open && !link->second) {
            link_cut(sim, i, 500000);
            link->coordinator_open = false;
        }
    }
    coordinator_boot(sim);
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        sim->agents[i].last_seen_us = coordinator_now(sim);
    }
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        members_sent_free(&job->members_sent);
        job->coordinator_crashed |= job->stored->known && !job->stored->ended;
        job->crashes += job->stored->started && !job->stored->ended ? 1 : 0;
        job->touches += job->stored->started && !job->stored->ended ? 1 : 0;
    }
    store_restore(sim);
    /* A client without an answer sends its request again. */
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->call != 0 && !job->answered && !job->stored->known) {
            job->id.n = 0;
            job->call = 0;
            schedule(sim, draw(sim, 100000, 1000000), ON_SUBMIT, i, 0, 0);
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

/* The id that a submission got is recorded with it. */
static void note_submitted(struct sim *sim, const struct core_record *record)
{
    struct coordinator *c = &sim->coordinator;
    CADRE_ASSERT(c->submitting != SIM_NONE);
    struct job *job = &sim->jobs[c->submitting];
    job->id = record->job;
    if (record->job.n <= sim->disk.job_max) {
        broken(sim, "IDS", "job id %llu is assigned twice", (unsigned long long)record->job.n);
    }
}

static void note_welcomed(struct sim *sim, const struct core_action *action)
{
    uint32_t needed = (uint32_t)action->welcome.worker.n + 1;
    sim->worker_agents =
        grown(sim->worker_agents, &sim->worker_capacity, needed, sizeof(*sim->worker_agents));
    sim->worker_agents[action->welcome.worker.n] = sim->links[action->welcome.link.n - 1].agent;
}

static void note_started(struct sim *sim, struct job *job)
{
    uint64_t left_us = sim->away_until_us > sim->now_us ? sim->away_until_us - sim->now_us : 0;
    if (job->stored->first_us == 0) {
        job->begun_us = sim->now_us;
        job->away_us = sim->away_us > left_us ? sim->away_us - left_us : 0;
    }
}

static void note_action(struct sim *sim, size_t index)
{
    struct coordinator *c = &sim->coordinator;
    const struct core_action *action = &c->turn.items[index];
    check_keeps(sim, action);
    if (sim->scenario.replicas > 0) {
        check_gives_up(sim, action);
    }
    if (action->type == CORE_ACTION_WELCOME) {
        note_welcomed(sim, action);
    } else if (action->type == CORE_ACTION_RECORD && action->record.type == CORE_RECORD_JOB) {
        note_submitted(sim, &action->record);
    } else if (action->type == CORE_ACTION_RECORD && placements_wanted(&action->record)) {
        CADRE_ASSERT(placements_keep(c->core, &action->record, &c->placements[index]));
        if (action->record.type == CORE_RECORD_STARTED) {
            note_started(sim, job_by_id(sim, action->record.job));
        }
    }
}

/* Now, by the clock of its core. */
static uint64_t core_time(struct sim *sim)
{
    const struct hold *hold = &sim->coordinator.hold;
    return hold->held && mutant_goes_on(sim, MUTANT_HELD_CLOCK) ? machine_now(sim) - hold->lag_us
                                                                : coordinator_now(sim);
}

void coordinator_open_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    if (!c->pending_update_open) {
        c->pending_update_open = true;
        schedule(sim, draw(sim, 1, sim->scenario.turn_us), ON_TURN_END, 0, c->incarnation, 0);
    }
}

void coordinator_step(struct sim *sim, struct core_event *event)
{
    struct coordinator *c = &sim->coordinator;
    event->now_us = core_time(sim);
    make_room(&c->turn);
    size_t before = c->turn.count;
    double start_s = sim->cost != NULL ? cost_now() : 0;
    core_step(c->core, event, &c->turn);
    if (sim->cost != NULL) {
        cost_event(sim->cost, event, cost_now() - start_s);
    }
    sim->core_events++;
    c->placements = grown(
        c->placements, &c->placement_capacity, (uint32_t)c->turn.count, sizeof(*c->placements));
    for (size_t i = before; i < c->turn.count; i++) {
        c->placements[i] = (struct placements){0};
        note_action(sim, i);
    }
    bool whole = sim->scenario.agents <= SIM_SWEEP_MAX || sim->core_events % SIM_SWEEP_EVERY == 0;
    check_cores(sim, SIM_NONE, whole);
    coordinator_open_turn(sim);
}

/* Ticks that are due at once, within the turn. */
static void tick_while_due(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    int ticks = 0;
    while (core_wake_us(c->core) <= core_time(sim) && sim->broken == NULL) {
        if (++ticks > TICKS_MAX) {
            broken(sim, "PROGRESS", "the coordinator's core asks for ticks without end");
        }
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_TICK});
    }
}

static bool has_records(const struct core_actions *turn)
{
    size_t i = 0;
    while (i < turn->count && turn->items[i].type != CORE_ACTION_RECORD) {
        i++;
    }
    return i < turn->count;
}

/* A half of a turn without room is on the disk nevertheless. */
static void write_half(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    size_t count = c->turn.count;
    bool unstored = c->term_unstored;
    c->turn.count = count / 2;
    write_turn(sim);
    c->turn.count = count;
    c->term_unstored = unstored;
}

static bool is_ignored(struct sim *sim, cadre_status status)
{
    return mutant_acts(
        sim, status == CADRE_RESOURCE_EXHAUSTED ? MUTANT_HELD_SENT : MUTANT_ERROR_IGNORED);
}

/* One transaction. false: nothing of the turn may be sent now. */
static bool commit_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    struct cadre_error error = {.code = CADRE_OK};
    bool writes = c->term_unstored || has_records(&c->turn) || ends_are_forgotten(sim);
    if (writes && store_can_write(sim, &error) != CADRE_OK) {
        if (is_ignored(sim, error.code)) {
            return true;
        }
        if (!hold_takes(&c->hold, machine_now(sim), SCENARIO_RETRY_US, c->turn.count, &error)) {
            fail(sim, &error);
            return false;
        }
        trace(sim, "a turn of %zu actions is held", c->turn.count);
        if (c->turn.count > 1 && mutant_acts(sim, MUTANT_HELD_HALF)) {
            write_half(sim);
        }
        if (mutant_acts(sim, MUTANT_HELD_FORGOTTEN)) {
            coordinator_drop_turn(sim);
        }
        schedule_message(sim, clock_when(&c->clock, c->hold.retry_at_us), ON_TURN_END, 0,
            c->incarnation, 0, NULL);
        return false;
    }
    write_turn(sim);
    if (c->hold.held && mutant_goes_on(sim, MUTANT_HELD_CLOCK)) {
        c->hold.held = false; /* and the core's clock did not stop */
    }
    hold_ends(&c->hold, machine_now(sim));
    return true;
}

/* Virtual time when its core is due for a tick. */
static uint64_t wakes_at(const struct sim *sim)
{
    const struct coordinator *c = &sim->coordinator;
    return clock_when(&c->clock, hold_real_time(&c->hold, core_wake_us(c->core)));
}

void coordinator_turn_end(struct sim *sim)
{
    tick_while_due(sim);
    if (sim->scenario.replicas > 0) {
        replica_turn_ends(sim);
        return;
    }
    if (!commit_turn(sim)) {
        return;
    }
    check_drains(sim);
    send_turn(sim, &sim->coordinator.turn);
    coordinator_turn_ended(sim);
}

void coordinator_turn_ended(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    coordinator_drop_turn(sim);
    c->pending_update_open = false;
    uint64_t wake_us = wakes_at(sim);
    if (wake_us < c->tick_at_us) {
        c->tick_at_us = wake_us;
        schedule_message(sim, wake_us, ON_COORDINATOR_TICK, 0, c->incarnation, 0, NULL);
    }
}

void coordinator_catches_up(struct sim *sim, uint64_t since_us)
{
    uint64_t now_us = sim->now_us;
    uint64_t wake_us = wakes_at(sim);
    coordinator_open_turn(sim);
    sim->now_us = since_us;
    while (sim->broken == NULL && !sim->coordinator.hold.held && wake_us < now_us) {
        sim->now_us = wake_us > sim->now_us ? wake_us : sim->now_us;
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_TICK});
        wake_us = wakes_at(sim);
    }
    sim->now_us = now_us;
}

void coordinator_tick(struct sim *sim)
{
    sim->coordinator.tick_at_us = UINT64_MAX;
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_TICK});
}
