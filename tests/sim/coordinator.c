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
    struct core_options options = {
        .limits = {.workers_max = 2 * sim->scenario.agents,
            .jobs_max = SCENARIO_JOBS_MAX,
            .tasks_max = SCENARIO_JOBS_MAX * sim->scenario.slots_total},
        .seed = prng_next(&sim->prng),
        .lease_us = SCENARIO_LEASE_US,
        .grace_us = SCENARIO_GRACE_US,
        .collect_us = SCENARIO_COLLECT_US,
        .form_us = SCENARIO_FORM_US,
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
    c->tick_at_us = UINT64_MAX;
    c->submitting = NOBODY;
}

/* The turn that was open is lost with it, records and all. */
void coordinator_crash(struct sim *sim)
{
    trace(sim, "coordinator crashes");
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct link *link = &sim->links[i];
        if (link->coordinator_open) {
            link_cut(sim, i, 500000);
            link->coordinator_open = false;
        }
    }
    coordinator_boot(sim);
    for (uint64_t id = 1; id <= sim->job_max; id++) {
        struct job *job = job_by_id(sim, (struct job_id){id});
        if (job == NULL || !job->stored.known || job->stored.ended) {
            continue;
        }
        job->touched |= job->stored.started;
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                                  .restore = {.job = job->id,
                                      .tasks = job->plan->tasks,
                                      .priority = job->plan->priority,
                                      .started = job->stored.started,
                                      .incarnation_max = job->stored.incarnation_max,
                                      .generation = job->stored.generation,
                                      .position = job->stored.watermark}});
    }
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE,
                              .restore_done = {.job_max = sim->job_max}});
    /* Who asked and was not answered asks again. */
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->call != 0 && !job->answered && !job->stored.known) {
            job->id.n = 0;
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
    if (record->job.n <= sim->job_max) {
        broken(sim, "IDS", "job id %llu is given out twice", (unsigned long long)record->job.n);
    }
}

void coordinator_step(struct sim *sim, struct core_event *event)
{
    struct coordinator *c = &sim->coordinator;
    event->now_us = sim->now_us;
    make_room(&c->turn);
    size_t before = c->turn.count;
    core_step(c->core, event, &c->turn);
    for (size_t i = before; i < c->turn.count; i++) {
        const struct core_action *action = &c->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && action->record.type == CORE_RECORD_JOB) {
            note_submitted(sim, &action->record);
        }
    }
    check_cores(sim, NOBODY, false);
    if (!c->turn_open) {
        c->turn_open = true;
        later(sim, draw(sim, 1, sim->scenario.turn_us), ON_TURN_END, 0, c->life, 0);
    }
}

static void store_end(struct sim *sim, struct job *job, const struct cursor *end)
{
    bool right = false;
    for (uint32_t i = 0; i < job->plan->epoch_count; i++) {
        const struct scenario_epoch *epoch = &job->plan->epochs[i];
        if (epoch->stream == end->stream && epoch->epoch == end->epoch) {
            job->stored.ends[i] = true;
            right = epoch->steps == end->steps;
        }
    }
    if (right || job->plan->short_data) {
        return;
    }
    broken(sim, "END", "job %llu: stream %u, epoch %llu is recorded to end after %llu steps",
        (unsigned long long)job->id.n, end->stream, (unsigned long long)end->epoch,
        (unsigned long long)end->steps);
}

static void store(struct sim *sim, const struct core_record *record)
{
    struct job *job = job_by_id(sim, record->job);
    CADRE_ASSERT(job != NULL);
    struct stored *stored = &job->stored;
    struct cursor end;
    switch (record->type) {
    case CORE_RECORD_JOB:
        stored->known = true;
        sim->job_max = record->job.n > sim->job_max ? record->job.n : sim->job_max;
        break;
    case CORE_RECORD_STARTED:
        stored->started = true;
        stored->incarnation_max = record->incarnation_max;
        break;
    case CORE_RECORD_PLAN:
        stored->generation = record->plan.generation;
        stored->resume = record->plan.resume;
        stored->watermark = record->plan.resume;
        break;
    case CORE_RECORD_WATERMARK:
        if (record->watermark.up_to <= stored->watermark) {
            broken(sim, "ADMIT", "job %llu: the watermark falls", (unsigned long long)job->id.n);
        }
        stored->watermark = record->watermark.up_to;
        break;
    case CORE_RECORD_END_OF_DATA:
        end = record->end_of_data;
        end.steps += mutant_acts(sim, MUTANT_END_MOVED) ? 1 : 0;
        store_end(sim, job, &end);
        break;
    case CORE_RECORD_CHECKPOINT:
    case CORE_RECORD_TASK_EXIT:
        break;
    case CORE_RECORD_DONE:
        stored->done = true;
        stored->done_position = record->done.position;
        break;
    case CORE_RECORD_ENDED:
        stored->ended = true;
        stored->state = record->ended.state;
        stored->code = record->ended.code;
        stored->exit_code = record->ended.exit_code;
        memcpy(stored->text, record->ended.text, sizeof(stored->text));
        sim->jobs_ended++;
        trace(sim, "job %llu ended: %s, %.120s", (unsigned long long)record->job.n,
            job_state_name(stored->state), stored->text);
        break;
    }
}

static bool is_lost(struct sim *sim, const struct core_record *record)
{
    return (record->type == CORE_RECORD_PLAN && mutant_acts(sim, MUTANT_PLAN_UNRECORDED)) ||
           (record->type == CORE_RECORD_WATERMARK &&
               mutant_acts(sim, MUTANT_WATERMARK_UNRECORDED)) ||
           (record->type == CORE_RECORD_JOB && mutant_acts(sim, MUTANT_ANSWER_UNRECORDED)) ||
           (record->type == CORE_RECORD_STARTED && mutant_acts(sim, MUTANT_START_UNRECORDED)) ||
           (record->type == CORE_RECORD_END_OF_DATA && mutant_acts(sim, MUTANT_END_LOST)) ||
           (record->type == CORE_RECORD_DONE && mutant_acts(sim, MUTANT_DONE_UNRECORDED));
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
    for (size_t i = 0; i < c->turn.count; i++) {
        const struct core_action *action = &c->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && !is_lost(sim, &action->record)) {
            store(sim, &action->record);
        }
    }
    for (size_t i = 0; i < c->turn.count && sim->broken == NULL; i++) {
        if (c->turn.items[i].type != CORE_ACTION_RECORD) {
            check_records(sim, &c->turn.items[i]);
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
