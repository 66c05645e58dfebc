/* SPDX-License-Identifier: Apache-2.0
 * Records into rows. 64-bit values are stored as SQLite's signed integers. */
#include "coordinator/store/sqlite_statements.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"

static void bind_checkpoint(sqlite3_stmt *statement, const struct core_checkpoint *checkpoint)
{
    bind_u64(statement, 2, checkpoint->position);
    bind_u64(statement, 3, checkpoint->generation.number);
    bind_u64(statement, 4, checkpoint->generation.nonce);
    bind_u64(statement, 5, checkpoint->shared);
    bind_text(statement, 6, checkpoint->path);
    bind_u64(statement, 7, checkpoint->manifest_bytes);
    bind_blob(statement, 8, checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
    bind_u64(statement, 9, checkpoint->digest);
}

static const char of_submission[] = "its submission and how it ended";

/* Changes some columns of the job's own row, which must be there and whole. */
static cadre_status update_job(struct statements *statements, enum statement which,
    struct job_id job, struct cadre_error *error)
{
    CADRE_TRY(
        statements_check_whole(statements, STATEMENT_JOB_IS_WHOLE, job, of_submission, error));
    bind_u64(statements->prepared[which], 1, job.n);
    CADRE_TRY(statements_run_one(statements, which, job, error));
    bind_u64(statements->prepared[STATEMENT_JOB_SUM], 1, job.n);
    return statements_run(statements, STATEMENT_JOB_SUM, error);
}

static cadre_status write_origin(struct statements *statements, struct job_id job,
    const struct core_checkpoint *origin, struct cadre_error *error)
{
    sqlite3_stmt *put = statements->prepared[STATEMENT_ORIGIN];
    bind_u64(put, 1, job.n);
    bind_checkpoint(put, origin);
    return statements_run(statements, STATEMENT_ORIGIN, error);
}

static cadre_status write_job(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    const struct core_job_spec *spec = &core->submitted.spec;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_JOB];
    bind_u64(insert, 1, core->job.n);
    bind_blob(insert, 2, record->spec, record->spec_bytes);
    bind_u64(insert, 3, spec->tasks);
    bind_u64(insert, 4, spec->tasks_min);
    sqlite3_bind_int(insert, 5, spec->priority);
    bind_u64(insert, 6, spec->max_restarts);
    bind_u64(insert, 7, spec->wait_us);
    bind_u64(insert, 8, spec->stall_us);
    bind_u64(insert, 9, record->wall_us);
    CADRE_TRY(statements_run(statements, STATEMENT_JOB, error));
    bind_u64(statements->prepared[STATEMENT_JOB_SUM], 1, core->job.n);
    CADRE_TRY(statements_run(statements, STATEMENT_JOB_SUM, error));
    if (core->submitted.restores) {
        CADRE_TRY(write_origin(statements, core->job, &core->submitted.checkpoint, error));
    }
    bind_u64(statements->prepared[STATEMENT_JOB_ID_MAX], 1, core->job.n);
    return statements_update_meta(statements, STATEMENT_JOB_ID_MAX, error);
}

static cadre_status write_placement(struct statements *statements, struct job_id job,
    const struct store_placement *placement, struct cadre_error *error)
{
    sqlite3_stmt *upsert = statements->prepared[STATEMENT_TASK];
    bind_u64(upsert, 1, job.n);
    bind_u64(upsert, 2, placement->slot);
    bind_u64(upsert, 3, placement->incarnation);
    bind_text(upsert, 4, placement->worker);
    bind_u64(upsert, 5, placement->attempts);
    bind_u64(upsert, 6, placement->attempts_generation);
    return statements_run(statements, STATEMENT_TASK, error);
}

static cadre_status write_started(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    sqlite3_stmt *update = statements->prepared[STATEMENT_STARTED];
    bind_u64(update, 2, record->wall_us);
    bind_u64(update, 3, core->incarnation_max);
    CADRE_TRY(update_job(statements, STATEMENT_STARTED, core->job, error));
    for (size_t i = 0; i < record->target_count; i++) {
        CADRE_TRY(write_placement(statements, core->job, &record->placements[i], error));
    }
    return CADRE_OK;
}

static cadre_status write_queued(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    static const enum statement forget[] = {STATEMENT_QUEUED_TASKS, STATEMENT_QUEUED_BACKED,
        STATEMENT_QUEUED_ROSTER, STATEMENT_QUEUED_CONTROL, STATEMENT_QUEUED_DONE};
    CADRE_TRY(update_job(statements, STATEMENT_QUEUED, core->job, error));
    for (size_t i = 0; i < sizeof forget / sizeof forget[0]; i++) {
        bind_u64(statements->prepared[forget[i]], 1, core->job.n);
        CADRE_TRY(statements_run(statements, forget[i], error));
    }
    return CADRE_OK;
}

static cadre_status write_backed(struct statements *statements, struct job_id job, uint32_t slot,
    const struct task_backed *backed, struct cadre_error *error)
{
    enum statement which =
        backed->by == 0 && backed->number == 0 ? STATEMENT_NOT_BACKED : STATEMENT_BACKED;
    bind_u64(statements->prepared[which], 1, job.n);
    bind_u64(statements->prepared[which], 2, slot);
    if (which == STATEMENT_BACKED) {
        bind_u64(statements->prepared[which], 3, backed->number);
        bind_u64(statements->prepared[which], 4, backed->by);
    }
    return statements_run(statements, which, error);
}

static cadre_status write_task(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    bind_u64(statements->prepared[STATEMENT_INCARNATION], 2, core->task.incarnation);
    CADRE_TRY(update_job(statements, STATEMENT_INCARNATION, core->job, error));
    CADRE_TRY(write_placement(statements, core->job,
        &(struct store_placement){.slot = core->task.slot,
            .incarnation = core->task.incarnation,
            .attempts = core->task.attempts,
            .attempts_generation = core->task.attempts_generation,
            .worker = core->task.worker},
        error));
    const struct task_backed backed = {.by = core->task.backed_by};
    bool newer = sqlite3_changes(statements->database) > 0;
    return newer ? write_backed(statements, core->job, core->task.slot, &backed, error) : CADRE_OK;
}

static void put_le(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static cadre_status write_roster(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint8_t *blob = fault_point("store.allocate")
                                           ? NULL
                                           : malloc(record->target_count * ROSTER_ENTRY_BYTES + 1);
    if (blob == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "store %s: no memory for a roster of %zu", statements->path, record->target_count);
    }
    for (size_t rank = 0; rank < record->target_count; rank++) {
        uint8_t *at = blob + rank * ROSTER_ENTRY_BYTES;
        put_le(at, record->placements[rank].slot, 4);
        put_le(at + 4, record->placements[rank].incarnation, 8);
    }
    sqlite3_stmt *insert = statements->prepared[STATEMENT_PLAN_ROSTER];
    bind_u64(insert, 1, record->record->job.n);
    bind_blob(insert, 2, blob, record->target_count * ROSTER_ENTRY_BYTES);
    cadre_status status = statements_run(statements, STATEMENT_PLAN_ROSTER, error);
    sqlite3_clear_bindings(insert);
    return status;
}

/* A statement that concerns a job and its plan's resume. */
static cadre_status run_for_job(struct statements *statements, enum statement which,
    struct job_id job, uint64_t value, struct cadre_error *error)
{
    bind_u64(statements->prepared[which], 1, job.n);
    bind_u64(statements->prepared[which], 2, value);
    return statements_run(statements, which, error);
}

static cadre_status cut_watermark(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *cut = statements->prepared[STATEMENT_PLAN_WATERMARK];
    CADRE_TRY(statements_check_whole(
        statements, STATEMENT_WATERMARK_IS_WHOLE, core->job, "which steps were released", error));
    bind_u64(cut, 1, core->job.n);
    bind_u64(cut, 2, core->plan.generation.number);
    bind_u64(cut, 3, core->plan.generation.nonce);
    bind_u64(cut, 4, core->plan.resume);
    CADRE_TRY(statements_run(statements, STATEMENT_PLAN_WATERMARK, error));
    bind_u64(statements->prepared[STATEMENT_WATERMARK_SUM], 1, core->job.n);
    return statements_run(statements, STATEMENT_WATERMARK_SUM, error);
}

static cadre_status write_plan(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    uint64_t resume = core->plan.resume;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_PLAN];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->plan.generation.number);
    bind_u64(insert, 3, core->plan.generation.nonce);
    bind_u64(insert, 4, core->plan.parent.number);
    bind_u64(insert, 5, core->plan.parent.nonce);
    bind_u64(insert, 6, resume);
    bind_u64(insert, 7, core->plan.restarted);
    bind_u64(insert, 8, record->target_count);
    bind_u64(insert, 9, record->wall_us);
    CADRE_TRY(statements_run(statements, STATEMENT_PLAN, error));
    CADRE_TRY(write_roster(statements, record, error));
    CADRE_TRY(cut_watermark(statements, core, error));
    bind_u64(statements->prepared[STATEMENT_PLAN_RESTARTS], 2, core->plan.restarts);
    CADRE_TRY(update_job(statements, STATEMENT_PLAN_RESTARTS, core->job, error));
    CADRE_TRY(run_for_job(statements, STATEMENT_PLAN_VERIFIED, core->job, resume, error));
    CADRE_TRY(run_for_job(statements, STATEMENT_PLAN_CONSUMED, core->job, resume, error));
    return run_for_job(statements, STATEMENT_PLAN_ENDS, core->job, resume, error);
}

static cadre_status write_control(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_CONTROL];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->control.generation.number);
    bind_u64(insert, 3, core->control.generation.nonce);
    bind_u64(insert, 4, core->control.halt_at);
    sqlite3_bind_int(insert, 5, (int)core->control.halt_kind);
    bind_u64(insert, 6, core->control.halt_stream);
    return statements_run(statements, STATEMENT_CONTROL, error);
}

static cadre_status write_watermark(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *upsert = statements->prepared[STATEMENT_WATERMARK];
    bind_u64(upsert, 1, core->job.n);
    bind_u64(upsert, 2, core->watermark.generation.number);
    bind_u64(upsert, 3, core->watermark.generation.nonce);
    bind_u64(upsert, 4, core->watermark.up_to);
    bind_u64(upsert, 5, core->watermark.cursor.stream);
    bind_u64(upsert, 6, core->watermark.cursor.epoch);
    bind_u64(upsert, 7, core->watermark.cursor.first);
    bind_u64(upsert, 8, core->watermark.cursor.begin);
    bind_u64(upsert, 9, core->watermark.cursor.steps);
    return statements_run(statements, STATEMENT_WATERMARK, error);
}

static cadre_status write_consumed(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    const struct cursor *cursor = &core->consumption.cursor;
    const struct consumption *consumption = &core->consumption.consumption;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_CONSUMED];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, cursor->stream);
    bind_u64(insert, 3, cursor->epoch);
    bind_u64(insert, 4, cursor->begin);
    bind_u64(insert, 5, cursor->first);
    bind_u64(insert, 6, cursor->steps);
    bind_u64(insert, 7, consumption->steps);
    bind_u64(insert, 8, consumption->samples);
    bind_u64(insert, 9, consumption->consumed[0]);
    bind_u64(insert, 10, consumption->consumed[1]);
    bind_u64(insert, 11, consumption->expected[0]);
    bind_u64(insert, 12, consumption->expected[1]);
    bind_u64(insert, 13, (uint64_t)consumption->files << 1 | (consumption->provable ? 1 : 0));
    CADRE_TRY(statements_run(statements, STATEMENT_CONSUMED, error));
    sqlite3_stmt *replaced = statements->prepared[STATEMENT_CONSUMED_REPLACED];
    bind_u64(replaced, 1, core->job.n);
    bind_u64(replaced, 2, cursor->stream);
    bind_u64(replaced, 3, cursor->epoch);
    return statements_run(statements, STATEMENT_CONSUMED_REPLACED, error);
}

static cadre_status write_stream(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_STREAM];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->stream.stream);
    bind_text(insert, 3, core->stream.name);
    bind_u64(insert, 4, core->stream.samples);
    bind_u64(insert, 5, core->stream.shares);
    return statements_run(statements, STATEMENT_STREAM, error);
}

static cadre_status write_end_of_data(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_END_OF_DATA];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->end_of_data.stream);
    bind_u64(insert, 3, core->end_of_data.epoch);
    bind_u64(insert, 4, core->end_of_data.first);
    bind_u64(insert, 5, core->end_of_data.begin);
    bind_u64(insert, 6, core->end_of_data.steps);
    return statements_run(statements, STATEMENT_END_OF_DATA, error);
}

/* A row of the job and two numbers: a position and its digest, or a generation and a position. */
static cadre_status write_pair(struct statements *statements, enum statement which,
    struct job_id job, uint64_t first, uint64_t second, struct cadre_error *error)
{
    sqlite3_stmt *put = statements->prepared[which];
    bind_u64(put, 1, job.n);
    bind_u64(put, 2, first);
    bind_u64(put, 3, second);
    return statements_run(statements, which, error);
}

static cadre_status write_checkpoint(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    const struct core_checkpoint *saved = &core->checkpoint;
    bind_u64(statements->prepared[STATEMENT_CHECKPOINT], 1, core->job.n);
    bind_checkpoint(statements->prepared[STATEMENT_CHECKPOINT], saved);
    CADRE_TRY(statements_run(statements, STATEMENT_CHECKPOINT, error));
    return saved->digest == 0 ? CADRE_OK
                              : write_pair(statements, STATEMENT_VERIFIED, core->job,
                                    saved->position, saved->digest, error);
}

static cadre_status write_lost(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *put = statements->prepared[STATEMENT_LOST];
    bind_u64(put, 1, core->job.n);
    bind_u64(put, 2, core->lost.position);
    bind_text(put, 3, core->lost.why);
    CADRE_TRY(statements_run(statements, STATEMENT_LOST, error));
    return run_for_job(
        statements, STATEMENT_DROP_CHECKPOINT, core->job, core->lost.position, error);
}

static cadre_status write_done(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_DONE];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->done.generation.number);
    bind_u64(insert, 3, core->done.generation.nonce);
    bind_u64(insert, 4, core->done.position);
    return statements_run(statements, STATEMENT_DONE, error);
}

static cadre_status write_ending(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_ENDING];
    bind_u64(insert, 1, core->job.n);
    sqlite3_bind_int(insert, 2, (int)core->ended.state);
    sqlite3_bind_int(insert, 3, (int)core->ended.code);
    sqlite3_bind_int(insert, 4, core->ended.exit_code);
    bind_text(insert, 5, core->ended.text);
    bind_u64(insert, 6, record->committed);
    return statements_run(statements, STATEMENT_ENDING, error);
}

static cadre_status write_task_exit(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_TASK_EXIT];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->task_exit.slot);
    bind_u64(insert, 3, core->task_exit.incarnation);
    sqlite3_bind_int(insert, 4, (int)core->task_exit.state);
    sqlite3_bind_int(insert, 5, core->task_exit.exit.code);
    sqlite3_bind_int(insert, 6, core->task_exit.exit.signal);
    bind_text(insert, 7, core->task_exit.exit.text);
    return statements_run(statements, STATEMENT_TASK_EXIT, error);
}

static cadre_status write_ended(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    sqlite3_stmt *update = statements->prepared[STATEMENT_ENDED];
    bind_u64(update, 2, record->wall_us);
    sqlite3_bind_int(update, 3, (int)core->ended.state);
    sqlite3_bind_int(update, 4, (int)core->ended.code);
    sqlite3_bind_int(update, 5, core->ended.exit_code);
    bind_text(update, 6, core->ended.text);
    return update_job(statements, STATEMENT_ENDED, core->job, error);
}

static cadre_status write_drain(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    bool ends = core->type == CORE_RECORD_UNDRAINED;
    enum statement which = ends ? STATEMENT_UNDRAINED : STATEMENT_DRAINED;
    bind_text(statements->prepared[which], 1, core->drained.worker);
    if (!ends) {
        bind_text(statements->prepared[which], 2, core->drained.who);
        bind_text(statements->prepared[which], 3, core->drained.why);
    }
    return statements_run(statements, which, error);
}

static cadre_status write_culprit(
    struct statements *statements, const struct core_culprit *culprit, struct cadre_error *error)
{
    bool counts = culprit->times > 0;
    enum statement which = counts ? STATEMENT_CULPRIT : STATEMENT_CULPRIT_FORGOTTEN;
    bind_text(statements->prepared[which], 1, culprit->worker);
    if (counts) {
        bind_u64(statements->prepared[which], 2, culprit->times);
    }
    return statements_run(statements, which, error);
}

static cadre_status write_term(
    struct statements *statements, uint64_t start, struct cadre_error *error)
{
    bind_u64(statements->prepared[STATEMENT_STARTS], 1, start);
    return statements_update_meta(statements, STATEMENT_STARTS, error);
}

/* All records of the job go with its row. */
static cadre_status write_forgotten(
    struct statements *statements, struct job_id job, struct cadre_error *error)
{
    bind_u64(statements->prepared[STATEMENT_FORGET], 1, job.n);
    return statements_run_one(statements, STATEMENT_FORGET, job, error);
}

cadre_status statements_write(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    if (core == NULL) {
        return statements_write_event(statements, record->job, record->event, error);
    }
    switch (core->type) {
    case CORE_RECORD_JOB:
        return write_job(statements, record, error);
    case CORE_RECORD_STARTED:
        return write_started(statements, record, error);
    case CORE_RECORD_QUEUED:
        return write_queued(statements, core, error);
    case CORE_RECORD_TASK:
        return write_task(statements, core, error);
    case CORE_RECORD_BACKED:
        return write_backed(statements, core->job, core->backed.slot, &core->backed.backed, error);
    case CORE_RECORD_PLAN:
        return write_plan(statements, record, error);
    case CORE_RECORD_CONTROL:
        return write_control(statements, core, error);
    case CORE_RECORD_WATERMARK:
        return write_watermark(statements, core, error);
    case CORE_RECORD_CONSUMED:
        return write_consumed(statements, core, error);
    case CORE_RECORD_STREAM:
        return write_stream(statements, core, error);
    case CORE_RECORD_END_OF_DATA:
        return write_end_of_data(statements, core, error);
    case CORE_RECORD_CHECKPOINT:
        return write_checkpoint(statements, core, error);
    case CORE_RECORD_CHECKPOINT_LOST:
        return write_lost(statements, core, error);
    case CORE_RECORD_ORIGIN:
        return write_origin(statements, core->job, &core->checkpoint, error);
    case CORE_RECORD_VERIFIED:
        return write_pair(statements, STATEMENT_VERIFIED, core->job, core->verified.position,
            core->verified.digest, error);
    case CORE_RECORD_DONE:
        return write_done(statements, core, error);
    case CORE_RECORD_TASK_EXIT:
        return write_task_exit(statements, core, error);
    case CORE_RECORD_ENDING:
        return write_ending(statements, record, error);
    case CORE_RECORD_ENDED:
        return write_ended(statements, record, error);
    case CORE_RECORD_DIVERGED:
        return write_pair(statements, STATEMENT_DIVERGED, core->job, core->diverged.number,
            core->diverged.position, error);
    case CORE_RECORD_PUBLISHED:
        return write_pair(statements, STATEMENT_PUBLISHED, core->job, core->published.number,
            core->published.position, error);
    case CORE_RECORD_CULPRIT:
        return write_culprit(statements, &core->culprit, error);
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
        return write_drain(statements, core, error);
    case CORE_RECORD_CHECKPOINT_DROPPED:
        return run_for_job(statements, STATEMENT_DROP_CHECKPOINT, core->job, core->dropped, error);
    case CORE_RECORD_FORGOTTEN:
        return write_forgotten(statements, core->job, error);
    case CORE_RECORD_TERM:
        return write_term(statements, core->start, error);
    }
    CADRE_ASSERT(false);
    return CADRE_INTERNAL;
}
