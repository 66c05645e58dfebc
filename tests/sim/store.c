/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"
#include "sim.h"

#define REPLACED_US 20000000

/* ---- changes of a record: the rows and the view are the production's ---- */

static void look_at_tasks(struct stored *stored, const struct core_restore_job *restore)
{
    for (uint32_t i = 0; i < stored->task_count; i++) {
        stored->tasks[i] = (struct core_restore_task){.slot = i, .rank = SIM_NONE};
    }
    for (size_t i = 0; i < restore->task_count; i++) {
        stored->tasks[restore->tasks[i].slot] = restore->tasks[i];
    }
}

/* What a start of the coordinator would read of it now, for the invariants. */
static void look(struct stored *stored)
{
    struct memory_view view;
    CADRE_ASSERT(memory_view_make(&stored->ledger, &view));
    const struct core_restore_job *restore = &view.row.restore;
    stored->started = restore->started;
    stored->first_us = view.row.first_us;
    stored->incarnation_max = restore->incarnation_max;
    stored->restarts = restore->restarts;
    stored->generation = restore->generation;
    stored->resume = restore->resume;
    stored->watermark = restore->released;
    stored->has_control = restore->has_control;
    stored->halt_at = restore->halt_at;
    stored->halt_kind = restore->halt_kind;
    stored->halt_stream = restore->halt_stream;
    stored->done = restore->done;
    stored->done_position = restore->done_position;
    stored->ending = restore->ending;
    stored->ended = view.row.ended_us != 0;
    stored->ended_as = (struct core_ending){
        .state = view.row.state, .code = view.row.code, .exit_code = view.row.exit_code};
    snprintf(stored->ended_as.text, sizeof(stored->ended_as.text), "%s", view.row.text);
    stored->has_checkpoint = restore->has_checkpoint;
    stored->checkpoint = restore->checkpoint;
    stored->checkpoint_count = (uint32_t)stored->ledger.tables[TABLE_CHECKPOINTS].count;
    stored->restores = view.row.restores;
    stored->origin = view.row.origin;
    memset(stored->at, 0, sizeof(stored->at));
    for (size_t i = 0; i < restore->stream_count; i++) {
        stored->at[restore->streams[i].stream] = restore->streams[i];
    }
    look_at_tasks(stored, restore);
    memory_view_free(&view);
}

/* Reads one task only, because a job may have thousands of them, each of which ends. A new
 * incarnation has no rank yet. */
static void look_at_task(struct stored *stored, uint32_t slot)
{
    struct core_restore_task *task = &stored->tasks[slot];
    const struct core_restore_task before = *task;
    if (memory_job_task(&stored->ledger, slot, task)) {
        task->rank = task->incarnation == before.incarnation ? before.rank : SIM_NONE;
    }
    stored->incarnation_max = stored->ledger.row.restore.incarnation_max;
}

static void look_at_record(struct stored *stored, const struct core_record *record)
{
    if (record->type == CORE_RECORD_TASK_EXIT) {
        look_at_task(stored, record->task_exit.slot);
    } else if (record->type == CORE_RECORD_TASK) {
        look_at_task(stored, record->task.slot);
    } else {
        look(stored);
    }
}

void stored_clear(struct stored *stored)
{
    const struct stored was = *stored;
    memory_job_free(&stored->ledger);
    memset(stored, 0, sizeof(*stored));
    stored->task_count = was.task_count;
    stored->tasks = was.tasks;
    memset(stored->tasks, 0, was.task_count * sizeof(*stored->tasks));
    for (uint32_t i = 0; i < was.task_count; i++) {
        stored->tasks[i].rank = SIM_NONE;
    }
}

struct stored *stored_new(uint32_t tasks)
{
    struct stored *stored = calloc(1, sizeof(*stored));
    CADRE_ASSERT(stored != NULL);
    stored->task_count = tasks;
    stored->tasks = calloc(tasks, sizeof(*stored->tasks));
    CADRE_ASSERT(stored->tasks != NULL);
    stored_clear(stored);
    return stored;
}

/* As the engine does with the turn that publishes one too many. */
static void drop_surplus(struct memory_job *ledger)
{
    const struct rows *checkpoints = &ledger->tables[TABLE_CHECKPOINTS];
    if (checkpoints->count > STORED_CHECKPOINTS) {
        const struct core_checkpoint *oldest = rows_at(checkpoints, 0);
        (void)memory_job_drop_checkpoint(ledger, oldest->position);
    }
}

/* ---- further state of the invariants ---- */

static bool lost_counts(const struct stored *stored)
{
    return stored->lost_in > 0 &&
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

/* Before the record changes anything. */
static void note_record(struct stored *stored, const struct core_record *record)
{
    if (record->type == CORE_RECORD_PLAN) {
        uint64_t resume = record->plan.resume;
        bool first = stored->generation.number == 0;
        bool begins = first || (record->plan.restarted && resume < stored->first_step);
        stored->first_step = begins ? resume : stored->first_step;
    } else if (record->type == CORE_RECORD_CHECKPOINT_LOST) {
        note_lost(stored, record->lost.position);
    } else if (record->type == CORE_RECORD_ORIGIN) {
        note_lost(stored, stored->origin.position);
    }
}

void stored_apply(struct stored *stored, const struct entry *entry)
{
    const struct core_record *record = &entry->record;
    struct store_record given = {.record = record, .wall_us = entry->at_us};
    struct cadre_error error;
    placements_fill(&entry->placements, &given);
    if (record->type == CORE_RECORD_JOB) {
        memory_job_free(&stored->ledger);
        memory_job_init(&stored->ledger, &given);
        stored->known = true;
    } else if (!stored->known) {
        return; /* the store refuses it */
    }
    note_record(stored, record);
    cadre_status status = memory_job_prepare(&stored->ledger, &given, &error);
    CADRE_ASSERT(status == CADRE_OK);
    memory_job_apply(&stored->ledger, &given);
    memory_job_settle(&stored->ledger);
    drop_surplus(&stored->ledger);
    look_at_record(stored, record);
}

bool stored_previous(const struct stored *stored, struct core_checkpoint *ret_previous)
{
    const struct rows *checkpoints = &stored->ledger.tables[TABLE_CHECKPOINTS];
    bool own = checkpoints->count > 1;
    if (!own && !stored->restores) {
        return false;
    }
    *ret_previous =
        own ? *(const struct core_checkpoint *)rows_at(checkpoints, checkpoints->count - 2)
            : stored->origin;
    return true;
}

static void take_epoch(void *user, const struct store_epoch *epoch)
{
    *(struct store_epoch *)user = *epoch;
}

bool stored_epoch(
    const struct stored *stored, uint32_t stream, uint64_t epoch, struct store_epoch *ret_epoch)
{
    *ret_epoch = (struct store_epoch){.cursor = {0}};
    memory_job_walk(&stored->ledger, &(struct store_walk){.epoch_row = take_epoch,
                                         .stream = stream,
                                         .epoch = epoch,
                                         .epochs_max = 1,
                                         .user = ret_epoch});
    if (ret_epoch->cursor.stream != stream || ret_epoch->cursor.epoch != epoch) {
        *ret_epoch = (struct store_epoch){.cursor = {0}}; /* a later one */
    }
    return ret_epoch->cursor.stream != 0;
}

/* ---- transactions ---- */

/* It is synced, so it is there as soon as it is written. A client that drains a worker by hand ends
 * that too; when the coordinator does, its memory is replaced after a while. */
static void add_drain(struct sim *sim, const struct core_record *record)
{
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        if (strcmp(sim->agents[i].name, record->drained.worker) != 0) {
            continue;
        }
        sim->agents[i].drain_stored = record->type == CORE_RECORD_DRAINED;
        if (sim->agents[i].drain_stored && strcmp(record->drained.who, "operator") != 0) {
            schedule(sim, REPLACED_US, ON_UNDRAIN, i, 0, 0);
        }
    }
}

static void add_culprit(struct sim *sim, const struct core_culprit *culprit)
{
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        if (strcmp(sim->agents[i].name, culprit->worker) == 0) {
            sim->agents[i].culprit_stored = culprit->times;
        }
    }
}

cadre_status store_can_write(struct sim *sim, struct cadre_error *error)
{
    struct disk *disk = &sim->disk;
    error->code = disk->fails                         ? CADRE_UNAVAILABLE
                  : sim->now_us < disk->full_until_us ? CADRE_RESOURCE_EXHAUSTED
                                                      : CADRE_OK;
    snprintf(error->text, sizeof(error->text), "%s",
        disk->fails ? "the disk of the ledger has an error" : "no room for the ledger");
    disk->fails = false;
    return error->code;
}

void store_note_worker(struct sim *sim, const struct core_record *record)
{
    if (record->type == CORE_RECORD_CULPRIT) {
        add_culprit(sim, &record->culprit);
    } else {
        add_drain(sim, record);
    }
}

void store_keep_worker(struct sim *sim, const struct core_record *record)
{
    if (record->type == CORE_RECORD_CULPRIT) {
        add_culprit(sim, &record->culprit);
        return;
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        if (strcmp(sim->agents[i].name, record->drained.worker) == 0) {
            sim->agents[i].drain_stored = record->type == CORE_RECORD_DRAINED;
        }
    }
}

static void note_ended(struct sim *sim, struct job *job, const struct core_record *record)
{
    sim->jobs_ended++;
    job->ended_us = sim->now_us;
    trace(sim, "job %llu ended: %s, %.120s", (unsigned long long)record->job.n,
        job_state_name(record->ended.state), record->ended.text);
}

void store_note(struct sim *sim, struct job *job, struct entry *entry)
{
    const struct core_record *record = &entry->record;
    check_record(sim, job, record);
    if (record->type == CORE_RECORD_QUEUED) {
        job->saved_at =
            job->stored->done && !job->damaged ? job->stored->done_position : POSITION_NONE;
    } else if (record->type == CORE_RECORD_CHECKPOINT && job->stored->has_control &&
               job->stored->halt_kind == HALT_STOP && mutant_acts(sim, MUTANT_SAVED_ELSEWHERE)) {
        entry->record.checkpoint.position--;
    } else if (record->type == CORE_RECORD_PLAN) {
        job->saved_at = POSITION_NONE;
    }
    stored_apply(job->stored, entry);
    if (sim->scenario.replicas > 0) {
        stored_apply(job->durable, entry);
    }
    if (record->type == CORE_RECORD_STARTED && job->stored->known) {
        check_started(sim, job);
    }
    if (record->type == CORE_RECORD_PLAN) {
        check_consumed_before(sim, job, record->plan.resume);
    } else if (record->type == CORE_RECORD_CHECKPOINT) {
        check_consumed_before(sim, job, record->checkpoint.position);
    }
    if (record->type == CORE_RECORD_JOB && record->job.n > sim->disk.job_max) {
        sim->disk.job_max = record->job.n;
    }
    if (record->type == CORE_RECORD_ENDED) {
        note_ended(sim, job, record);
    }
}

void store_add(struct sim *sim, const struct core_record *record, struct placements *placements)
{
    struct disk *disk = &sim->disk;
    disk->written++;
    if (record->type == CORE_RECORD_DRAINED || record->type == CORE_RECORD_UNDRAINED ||
        record->type == CORE_RECORD_CULPRIT) {
        store_note_worker(sim, record);
        return;
    }
    struct job *job = job_by_id(sim, record->job);
    CADRE_ASSERT(job != NULL);
    disk->log = grown(disk->log, &disk->capacity, disk->count + 1, sizeof(*disk->log));
    struct entry *entry = &disk->log[disk->count++];
    *entry = (struct entry){.job = (uint32_t)(job - sim->jobs),
        .record = *record,
        .at_us = sim->now_us,
        .placements = *placements};
    *placements = (struct placements){0};
    store_note(sim, job, entry);
}

void store_commit(struct sim *sim, bool sync)
{
    struct disk *disk = &sim->disk;
    uint32_t last = disk->transactions == 0 ? 0 : disk->ends[disk->transactions - 1];
    if (disk->count > last) {
        disk->ends = grown(
            disk->ends, &disk->transaction_capacity, disk->transactions + 1, sizeof(*disk->ends));
        disk->ends[disk->transactions++] = disk->count;
    }
    if (sync) {
        store_sync(sim);
    }
}

static void entry_drop(struct entry *entry)
{
    placements_drop(&entry->placements);
}

void store_sync(struct sim *sim)
{
    struct disk *disk = &sim->disk;
    for (uint32_t i = 0; i < disk->count; i++) {
        stored_apply(sim->jobs[disk->log[i].job].durable, &disk->log[i]);
        entry_drop(&disk->log[i]);
    }
    disk->count = 0;
    disk->transactions = 0;
    disk->job_max_durable = disk->job_max;
}

void stored_copy(struct stored *to, const struct stored *from)
{
    struct core_restore_task *tasks = to->tasks;
    memcpy(tasks, from->tasks, from->task_count * sizeof(*tasks));
    memory_job_free(&to->ledger);
    *to = *from;
    to->tasks = tasks;
    to->ledger = (struct memory_job){0};
    if (from->known) {
        CADRE_ASSERT(memory_job_copy(&from->ledger, &to->ledger));
    }
}

void store_freeze(struct job *job)
{
    if (job->frozen == NULL) {
        job->frozen = stored_new(job->plan->tasks);
        stored_copy(job->frozen, job->durable);
    }
}

void stored_free(struct stored *stored)
{
    if (stored != NULL) {
        memory_job_free(&stored->ledger);
        free(stored->tasks);
        free(stored);
    }
}

/* What a disk that lied has of the jobs that have not ended. */
static void thaw(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->frozen != NULL && !job->durable->ended) {
            trace(sim, "the disk lied: of job %u generation %llu is left, said was %llu", i,
                (unsigned long long)job->frozen->generation.number,
                (unsigned long long)job->durable->generation.number);
            stored_copy(job->durable, job->frozen);
            sim->lied = true;
            schedule(sim, draw(sim, 30000000, 60000000), ON_LIE, LIE_CANCELS, i, 0);
        }
        stored_free(job->frozen);
        job->frozen = NULL;
    }
}

void store_crash(struct sim *sim)
{
    struct disk *disk = &sim->disk;
    thaw(sim);
    uint32_t kept = (uint32_t)draw(sim, 0, sim->lied ? 0 : disk->transactions);
    uint32_t end = kept == 0 ? 0 : disk->ends[kept - 1];
    trace(sim, "the store keeps %u of %u transactions that were not fsynced", kept,
        disk->transactions);
    for (uint32_t i = 0; i < end; i++) {
        stored_apply(sim->jobs[disk->log[i].job].durable, &disk->log[i]);
    }
    for (uint32_t i = 0; i < disk->count; i++) {
        entry_drop(&disk->log[i]);
    }
    disk->count = 0;
    disk->transactions = 0;
    disk->job_max = disk->job_max_durable;
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        bool ended = job->stored->ended;
        stored_copy(job->stored, job->durable);
        if (job->stored->known && job->id.n > disk->job_max) {
            disk->job_max = job->id.n;
        }
        sim->jobs_ended -= ended && !job->stored->ended ? 1 : 0;
    }
    disk->job_max_durable = disk->job_max;
}

/* ---- a start ---- */

static void restore_one(struct sim *sim, const struct job *job)
{
    struct memory_view view;
    CADRE_ASSERT(memory_view_make(&job->stored->ledger, &view));
    struct core_event event = {.type = CORE_EVENT_RESTORE_JOB, .restore = view.row.restore};
    uint64_t first_us = view.row.first_us;
    event.restore.ran_us = first_us == 0 ? 0 : sim->now_us - first_us;
    coordinator_step(sim, &event);
    memory_view_free(&view);
}

void store_restore(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        struct core_event event = {.type = CORE_EVENT_RESTORE_DRAIN};
        memcpy(event.restore_drain.worker, sim->agents[i].name, sizeof(sim->agents[i].name));
        if (sim->agents[i].drain_stored) {
            coordinator_step(sim, &event);
        }
        struct core_event counted = {.type = CORE_EVENT_RESTORE_CULPRIT,
            .restore_culprit.times = sim->agents[i].culprit_stored};
        memcpy(counted.restore_culprit.worker, sim->agents[i].name, sizeof(sim->agents[i].name));
        if (counted.restore_culprit.times > 0) {
            coordinator_step(sim, &counted);
        }
    }
    for (uint64_t id = 1; id <= sim->disk.job_max; id++) {
        const struct job *job = job_by_id(sim, (struct job_id){id});
        if (job != NULL && job->stored->known && !job->stored->ended) {
            restore_one(sim, job);
        }
    }
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE,
                              .restore_done = {.job_max = sim->disk.job_max}});
}

/* ---- a run ---- */

void store_open(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->stored = stored_new(job->plan->tasks);
        job->durable = stored_new(job->plan->tasks);
    }
    sim->disk.job_max = 0;
    sim->disk.job_max_durable = 0;
    sim->disk.term_start = 0;
    sim->disk.full_until_us = 0;
    sim->disk.fails = false;
}

void store_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->disk.count; i++) {
        entry_drop(&sim->disk.log[i]);
    }
    sim->disk.count = 0;
    sim->disk.transactions = 0;
    for (uint32_t i = 0; i < SCENARIO_JOBS_MAX; i++) {
        struct job *job = &sim->jobs[i];
        if (job->stored != NULL) {
            stored_free(job->stored);
            stored_free(job->durable);
            stored_free(job->frozen);
        }
    }
}

void store_free(struct sim *sim)
{
    free(sim->disk.log);
    free(sim->disk.ends);
    sim->disk = (struct disk){0};
}
