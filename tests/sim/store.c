/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"
#include "sim.h"

/* ---- what a record changes ---- */

static void stored_init(struct stored *stored, uint32_t tasks)
{
    memset(stored, 0, sizeof(*stored));
    stored->task_count = tasks;
    stored->tasks = calloc(tasks, sizeof(*stored->tasks));
    CADRE_ASSERT(stored->tasks != NULL);
    for (uint32_t i = 0; i < tasks; i++) {
        stored->tasks[i].rank = NOBODY;
    }
}

static void apply_plan(struct stored *stored, const struct entry *entry)
{
    const struct core_record *record = &entry->record;
    uint64_t resume = record->plan.resume;
    bool first = stored->generation.number == 0;
    if (first || (record->plan.restarted && resume < stored->first_step)) {
        stored->first_step = resume;
    }
    stored->generation = record->plan.generation;
    stored->resume = record->plan.resume;
    stored->watermark = record->plan.resume;
    stored->restarts = record->plan.restarts;
    stored->cursor = (struct cursor){0};
    if (stored->verified.position > resume) {
        stored->verified = (struct verified){0};
    }
    stored->has_control = false;
    stored->roster = 0;
    for (uint32_t i = 0; i < stored->task_count; i++) {
        stored->tasks[i].rank = entry->tasks[i].rank;
        stored->roster += entry->tasks[i].rank != NOBODY ? 1 : 0;
    }
}

static void apply_end(struct stored *stored, const struct cursor *end)
{
    struct stream_position *at = &stored->at[end->stream];
    if (end->stream == 0) {
        return;
    }
    if (at->stream == 0 || at->epoch < end->epoch) {
        *at = (struct stream_position){.stream = end->stream, .epoch = end->epoch};
    }
    if (at->epoch == end->epoch) {
        at->steps = end->steps;
    }
}

static void apply_feed(struct stored *stored, const struct cursor *cursor, const struct feed *feed)
{
    if (cursor->stream == 0) {
        return;
    }
    struct stream_position *at = &stored->at[cursor->stream];
    if (at->stream == 0 || at->epoch < cursor->epoch) {
        *at = (struct stream_position){.stream = cursor->stream, .epoch = cursor->epoch};
    }
    if (at->epoch == cursor->epoch) {
        at->applied = feed->steps;
        at->steps = cursor->steps != 0 ? cursor->steps : at->steps;
    }
    if (cursor->epoch >= stored->feed_epochs[cursor->stream]) {
        stored->feeds[cursor->stream] = *feed;
        stored->feed_epochs[cursor->stream] = cursor->epoch;
    }
}

static void apply_task(struct stored *stored, const struct core_record *record)
{
    struct stored_task *task = &stored->tasks[record->task.slot];
    task->incarnation = record->task.incarnation;
    task->gone = false;
    task->lost = false;
    task->rank = NOBODY;
    task->lives = record->task.lives;
    task->lives_in = record->task.lives_in;
    task->backed = (struct task_backed){.by = record->task.backed_by};
    struct text worker = text_begin(task->worker, sizeof(task->worker));
    text_add(&worker, record->task.worker);
    if (stored->incarnation_max < record->task.incarnation) {
        stored->incarnation_max = record->task.incarnation;
    }
}

static void apply_queued(struct stored *stored)
{
    stored->started = false;
    stored->done = false;
    stored->has_control = false;
    stored->roster = 0;
    for (uint32_t i = 0; i < stored->task_count; i++) {
        stored->tasks[i] = (struct stored_task){.rank = NOBODY};
    }
}

static void take_newest(struct stored *stored)
{
    uint32_t count = stored->checkpoint_count;
    stored->has_checkpoint = count > 0 || stored->restores;
    stored->checkpoint = count > 0 ? stored->checkpoints[count - 1] : stored->origin;
}

static void apply_checkpoint(struct stored *stored, const struct core_checkpoint *checkpoint)
{
    uint32_t *count = &stored->checkpoint_count;
    if (*count > 0 && stored->checkpoints[*count - 1].position == checkpoint->position) {
        --*count; /* said again */
    } else if (*count == STORED_CHECKPOINTS) {
        --*count;
        memmove(&stored->checkpoints[0], &stored->checkpoints[1],
            *count * sizeof(stored->checkpoints[0]));
    }
    stored->checkpoints[(*count)++] = *checkpoint;
    take_newest(stored);
}

static bool lost_counts(const struct stored *stored)
{
    return stored->lost_at > 0 &&
           (stored->lost_at <= stored->resume || stored->lost_in == stored->generation.number);
}

bool stored_was_published(const struct stored *stored, uint64_t position)
{
    return (stored->has_checkpoint && position <= stored->checkpoint.position) ||
           (lost_counts(stored) && position <= stored->lost_at);
}

static void note_lost(struct stored *stored, uint64_t position)
{
    if (!lost_counts(stored) || position > stored->lost_at) {
        stored->lost_at = position;
        stored->lost_in = stored->generation.number;
    }
}

static void note_forgettable(struct stored *stored, uint64_t position)
{
    if (position > stored->forgettable) {
        stored->forgettable = position;
    }
}

static void apply_lost(struct stored *stored, uint64_t position)
{
    note_lost(stored, position);
    if (position > stored->resume || position < stored->lost_most) {
        note_forgettable(stored, position);
    }
    stored->lost_most = position > stored->lost_most ? position : stored->lost_most;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stored->checkpoint_count; i++) {
        if (stored->checkpoints[i].position != position) {
            stored->checkpoints[kept++] = stored->checkpoints[i];
        }
    }
    stored->checkpoint_count = kept;
    take_newest(stored);
}

bool stored_previous(const struct stored *stored, struct core_checkpoint *ret_previous)
{
    uint32_t count = stored->checkpoint_count;
    if (count < 2 && !stored->restores) {
        return false;
    }
    *ret_previous = count > 1 ? stored->checkpoints[count - 2] : stored->origin;
    return true;
}

static void apply_exit(struct stored *stored, const struct core_record *record)
{
    struct stored_task *task = &stored->tasks[record->task_exit.slot];
    if (task->incarnation == record->task_exit.incarnation) {
        task->gone = true;
        task->lost = record->task_exit.state == TASK_LOST;
    }
}

static void apply_started(struct stored *stored, const struct entry *entry)
{
    stored->started = true;
    stored->first_us = stored->first_us == 0 ? entry->at_us : stored->first_us;
    stored->incarnation_max = entry->record.incarnation_max;
    memcpy(stored->tasks, entry->tasks, stored->task_count * sizeof(*stored->tasks));
    for (uint32_t slot = 0; slot < stored->task_count; slot++) {
        if (stored->tasks[slot].worker[0] == '\0') { /* not placed; of an earlier start */
            stored->tasks[slot].incarnation = 0;
        }
    }
}

static void apply(struct stored *stored, const struct entry *entry)
{
    const struct core_record *record = &entry->record;
    switch (record->type) {
    case CORE_RECORD_JOB:
        stored->known = true;
        stored->spec = record->submitted.spec;
        if (record->submitted.restores) {
            stored->restores = true;
            stored->origin = record->submitted.checkpoint;
            take_newest(stored);
        }
        break;
    case CORE_RECORD_STARTED:
        apply_started(stored, entry);
        break;
    case CORE_RECORD_QUEUED:
        apply_queued(stored);
        break;
    case CORE_RECORD_TASK:
        apply_task(stored, record);
        break;
    case CORE_RECORD_PLAN:
        apply_plan(stored, entry);
        break;
    case CORE_RECORD_BACKED:
        if (stored->tasks[record->backed.slot].incarnation == record->backed.incarnation) {
            stored->tasks[record->backed.slot].backed = record->backed.backed;
        }
        break;
    case CORE_RECORD_CONTROL:
        stored->has_control = record->control.halt_kind != HALT_NONE;
        stored->halt_at = record->control.halt_at;
        stored->halt_kind = record->control.halt_kind;
        stored->halt_stream = record->control.halt_stream;
        break;
    case CORE_RECORD_WATERMARK:
        stored->watermark = record->watermark.up_to;
        stored->cursor = record->watermark.cursor;
        break;
    case CORE_RECORD_FEED:
        apply_feed(stored, &record->feed.cursor, &record->feed.feed);
        break;
    case CORE_RECORD_STREAM:
        stored->streams[record->stream.stream] = true;
        break;
    case CORE_RECORD_END_OF_DATA:
        apply_end(stored, &record->end_of_data);
        break;
    case CORE_RECORD_CHECKPOINT:
        apply_checkpoint(stored, &record->checkpoint);
        break;
    case CORE_RECORD_VERIFIED:
        stored->verified = record->verified;
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        apply_lost(stored, record->lost.position);
        break;
    case CORE_RECORD_ORIGIN:
        note_lost(stored, stored->origin.position);
        note_forgettable(stored, stored->origin.position);
        stored->origin = record->checkpoint;
        take_newest(stored);
        break;
    case CORE_RECORD_DONE:
        stored->done = true;
        stored->done_position = record->done.position;
        break;
    case CORE_RECORD_TASK_EXIT:
        apply_exit(stored, record);
        break;
    case CORE_RECORD_ENDING:
        stored->ending = true;
        stored->ending_as = record->ended;
        break;
    case CORE_RECORD_ENDED:
        stored->ended = true;
        stored->ended_as = record->ended;
        break;
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
        break;
    }
}

/* ---- transactions ---- */

struct stored_task *store_places(struct sim *sim, const struct job *job)
{
    struct core *core = sim->coordinator.core;
    uint32_t count = job->plan->tasks;
    struct stored_task *tasks = calloc(count, sizeof(*tasks));
    CADRE_ASSERT(tasks != NULL);
    struct core_job_view job_view;
    if (!core_job(core, job->id, &job_view)) {
        memcpy(tasks, job->stored->tasks, count * sizeof(*tasks));
        return tasks; /* it has ended within the step */
    }
    for (uint32_t slot = 0; slot < count; slot++) {
        struct core_task_view view;
        core_job_task(core, job->id, slot, &view);
        struct stored_task *task = &tasks[slot];
        task->incarnation = view.incarnation;
        task->rank = view.rank;
        task->lives = view.lives;
        task->lives_in = view.lives_in;
        task->backed = view.backed;
        if (view.worker.n != 0) {
            uint32_t agent = sim->worker_agents[view.worker.n];
            snprintf(task->worker, sizeof(task->worker), "%s", sim->agents[agent].name);
        }
    }
    return tasks;
}

/* It is synced, so it is there as soon as it is written. */
static void add_drain(struct sim *sim, const struct core_record *record)
{
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        if (strcmp(sim->agents[i].name, record->drained.worker) == 0) {
            sim->agents[i].drain_stored = record->type == CORE_RECORD_DRAINED;
        }
    }
}

cadre_status store_can_write(struct sim *sim, struct cadre_error *error)
{
    struct store *store = &sim->store;
    error->code = store->fails                         ? CADRE_UNAVAILABLE
                  : sim->now_us < store->full_until_us ? CADRE_RESOURCE_EXHAUSTED
                                                       : CADRE_OK;
    snprintf(error->text, sizeof(error->text), "%s",
        store->fails ? "the disk of the ledger has an error" : "no room for the ledger");
    store->fails = false;
    return error->code;
}

void store_add(struct sim *sim, const struct core_record *record, struct stored_task *places)
{
    struct store *store = &sim->store;
    if (record->type == CORE_RECORD_DRAINED || record->type == CORE_RECORD_UNDRAINED) {
        add_drain(sim, record);
        return;
    }
    struct job *job = job_by_id(sim, record->job);
    CADRE_ASSERT(job != NULL);
    check_record(sim, job, record);
    store->log = grown(store->log, &store->capacity, store->count + 1, sizeof(*store->log));
    struct entry *entry = &store->log[store->count++];
    *entry = (struct entry){.job = (uint32_t)(job - sim->jobs),
        .record = *record,
        .at_us = sim->now_us,
        .tasks = places};
    if (record->type == CORE_RECORD_QUEUED) {
        job->saved_at =
            job->stored->done && !job->damaged ? job->stored->done_position : POSITION_NONE;
    } else if (record->type == CORE_RECORD_CHECKPOINT && job->stored->has_control &&
               job->stored->halt_kind == HALT_STOP && mutant_acts(sim, MUTANT_SAVED_ELSEWHERE)) {
        entry->record.checkpoint.position--;
    } else if (record->type == CORE_RECORD_PLAN) {
        job->saved_at = POSITION_NONE;
    }
    apply(job->stored, entry);
    if (record->type == CORE_RECORD_STARTED) {
        check_started(sim, job);
    }
    if (record->type == CORE_RECORD_JOB && record->job.n > store->job_max) {
        store->job_max = record->job.n;
    }
    if (record->type == CORE_RECORD_ENDED) {
        sim->jobs_ended++;
        job->ended_us = sim->now_us;
        trace(sim, "job %llu ended: %s, %.120s", (unsigned long long)record->job.n,
            job_state_name(record->ended.state), record->ended.text);
    }
}

void store_commit(struct sim *sim, bool sync)
{
    struct store *store = &sim->store;
    uint32_t last = store->transactions == 0 ? 0 : store->ends[store->transactions - 1];
    if (store->count > last) {
        store->ends = grown(store->ends, &store->transaction_capacity, store->transactions + 1,
            sizeof(*store->ends));
        store->ends[store->transactions++] = store->count;
    }
    if (sync) {
        store_sync(sim);
    }
}

static void entry_drop(struct entry *entry)
{
    free(entry->tasks);
    entry->tasks = NULL;
}

void store_sync(struct sim *sim)
{
    struct store *store = &sim->store;
    for (uint32_t i = 0; i < store->count; i++) {
        apply(sim->jobs[store->log[i].job].durable, &store->log[i]);
        entry_drop(&store->log[i]);
    }
    store->count = 0;
    store->transactions = 0;
    store->job_max_durable = store->job_max;
}

static void copy(struct stored *to, const struct stored *from)
{
    struct stored_task *tasks = to->tasks;
    memcpy(tasks, from->tasks, from->task_count * sizeof(*tasks));
    *to = *from;
    to->tasks = tasks;
}

void store_crash(struct sim *sim)
{
    struct store *store = &sim->store;
    uint32_t kept = (uint32_t)draw(sim, 0, store->transactions);
    uint32_t end = kept == 0 ? 0 : store->ends[kept - 1];
    trace(sim, "the store keeps %u of %u transactions that were not fsynced", kept,
        store->transactions);
    for (uint32_t i = 0; i < end; i++) {
        apply(sim->jobs[store->log[i].job].durable, &store->log[i]);
    }
    for (uint32_t i = 0; i < store->count; i++) {
        entry_drop(&store->log[i]);
    }
    store->count = 0;
    store->transactions = 0;
    store->job_max = store->job_max_durable;
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        bool ended = job->stored->ended;
        copy(job->stored, job->durable);
        if (job->stored->known && job->id.n > store->job_max) {
            store->job_max = job->id.n;
        }
        sim->jobs_ended -= ended && !job->stored->ended ? 1 : 0;
    }
    store->job_max_durable = store->job_max;
}

/* ---- a start ---- */

static void restore_one(struct sim *sim, const struct job *job)
{
    const struct stored *stored = job->stored;
    struct core_restore_task *tasks = calloc(stored->task_count, sizeof(*tasks));
    CADRE_ASSERT(tasks != NULL);
    uint32_t task_count = 0;
    for (uint32_t slot = 0; slot < stored->task_count; slot++) {
        const struct stored_task *task = &stored->tasks[slot];
        if (task->incarnation == 0) {
            continue;
        }
        struct core_restore_task *given = &tasks[task_count++];
        *given = (struct core_restore_task){.slot = slot,
            .incarnation = task->incarnation,
            .rank = task->rank,
            .gone = task->gone,
            .lost = task->lost,
            .lives = task->lives,
            .lives_in = task->lives_in,
            .backed = task->backed};
        snprintf(given->worker, sizeof(given->worker), "%s", task->worker);
    }
    struct stream_position streams[STORED_STREAMS];
    size_t stream_count = 0;
    for (uint32_t i = 1; i < STORED_STREAMS; i++) {
        if (stored->at[i].stream != 0) {
            streams[stream_count++] = stored->at[i];
        }
    }
    struct core_event event = {.type = CORE_EVENT_RESTORE_JOB,
        .restore = {.job = job->id,
            .spec = stored->spec,
            .started = stored->started,
            .ran_us = stored->first_us == 0 ? 0 : sim->now_us - stored->first_us,
            .incarnation_max = stored->incarnation_max,
            .restarts = stored->restarts,
            .generation = stored->generation,
            .roster = stored->roster,
            .resume = stored->resume,
            .released = stored->watermark,
            .cursor = stored->cursor,
            .has_control = stored->has_control,
            .halt_at = stored->halt_at,
            .halt_kind = stored->halt_kind,
            .halt_stream = stored->halt_stream,
            .done = stored->done,
            .done_position = stored->done_position,
            .ending = stored->ending,
            .ending_as = stored->ending_as,
            .has_checkpoint = stored->has_checkpoint,
            .checkpoint = stored->checkpoint,
            .lost = stored->lost_most,
            .verified = stored->verified,
            .tasks = tasks,
            .task_count = task_count,
            .streams = streams,
            .stream_count = stream_count}};
    coordinator_step(sim, &event);
    free(tasks);
}

void store_restore(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        struct core_event event = {.type = CORE_EVENT_RESTORE_DRAIN};
        memcpy(event.restore_drain.worker, sim->agents[i].name, sizeof(sim->agents[i].name));
        if (sim->agents[i].drain_stored) {
            coordinator_step(sim, &event);
        }
    }
    for (uint64_t id = 1; id <= sim->store.job_max; id++) {
        const struct job *job = job_by_id(sim, (struct job_id){id});
        if (job != NULL && job->stored->known && !job->stored->ended) {
            restore_one(sim, job);
        }
    }
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE,
                              .restore_done = {.job_max = sim->store.job_max}});
}

/* ---- a run ---- */

void store_open(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->stored = malloc(sizeof(*job->stored));
        job->durable = malloc(sizeof(*job->durable));
        CADRE_ASSERT(job->stored != NULL && job->durable != NULL);
        stored_init(job->stored, job->plan->tasks);
        stored_init(job->durable, job->plan->tasks);
    }
    sim->store.job_max = 0;
    sim->store.job_max_durable = 0;
    sim->store.term_start = 0;
    sim->store.full_until_us = 0;
    sim->store.fails = false;
}

void store_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->store.count; i++) {
        entry_drop(&sim->store.log[i]);
    }
    sim->store.count = 0;
    sim->store.transactions = 0;
    for (uint32_t i = 0; i < SCENARIO_JOBS_MAX; i++) {
        struct job *job = &sim->jobs[i];
        if (job->stored != NULL) {
            free(job->stored->tasks);
            free(job->durable->tasks);
            free(job->stored);
            free(job->durable);
        }
    }
}

void store_free(struct sim *sim)
{
    free(sim->store.log);
    free(sim->store.ends);
    sim->store = (struct store){0};
}
