/* SPDX-License-Identifier: Apache-2.0
 * Records into rows, and rows back into what a start needs. 64-bit values are stored as SQLite's
 * signed integers. */
#include "coordinator/store/sqlite_statements.h"

#include "common/pure/assert.h"

static void bind_u64(sqlite3_stmt *statement, int column, uint64_t value)
{
    sqlite3_bind_int64(statement, column, (sqlite3_int64)value);
}

static void bind_blob(sqlite3_stmt *statement, int column, const void *bytes, size_t size)
{
    sqlite3_bind_blob64(statement, column, size > 0 ? bytes : "", size, SQLITE_STATIC);
}

static void bind_text(sqlite3_stmt *statement, int column, const char *text)
{
    sqlite3_bind_text(statement, column, text, -1, SQLITE_STATIC);
}

static cadre_status write_job(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_JOB];
    bind_u64(insert, 1, record->record->job.n);
    bind_blob(insert, 2, record->spec, record->spec_bytes);
    bind_u64(insert, 3, record->record->submitted.tasks);
    sqlite3_bind_int(insert, 4, record->record->submitted.priority);
    bind_u64(insert, 5, record->wall_us);
    CADRE_TRY(statements_run(statements, STATEMENT_JOB, error));
    bind_u64(statements->prepared[STATEMENT_JOB_ID_MAX], 1, record->record->job.n);
    return statements_run(statements, STATEMENT_JOB_ID_MAX, error);
}

static cadre_status write_plan(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_PLAN];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->plan.generation.number);
    bind_u64(insert, 3, core->plan.generation.nonce);
    bind_u64(insert, 4, core->plan.parent.number);
    bind_u64(insert, 5, core->plan.parent.nonce);
    bind_u64(insert, 6, core->plan.resume);
    bind_blob(insert, 7, record->roster, record->roster_bytes);
    CADRE_TRY(statements_run(statements, STATEMENT_PLAN, error));
    sqlite3_stmt *truncate = statements->prepared[STATEMENT_PLAN_RESUME];
    bind_u64(truncate, 1, core->job.n);
    bind_u64(truncate, 2, core->plan.generation.number);
    bind_u64(truncate, 3, core->plan.generation.nonce);
    bind_u64(truncate, 4, core->plan.resume);
    return statements_run(statements, STATEMENT_PLAN_RESUME, error);
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
    bind_u64(upsert, 8, core->watermark.cursor.steps);
    return statements_run(statements, STATEMENT_WATERMARK, error);
}

static cadre_status write_checkpoint(
    struct statements *statements, const struct core_record *core, struct cadre_error *error)
{
    sqlite3_stmt *insert = statements->prepared[STATEMENT_CHECKPOINT];
    bind_u64(insert, 1, core->job.n);
    bind_u64(insert, 2, core->checkpoint.position);
    bind_u64(insert, 3, core->checkpoint.generation.number);
    bind_u64(insert, 4, core->checkpoint.generation.nonce);
    bind_u64(insert, 5, core->checkpoint.slot);
    bind_text(insert, 6, core->checkpoint.path);
    bind_u64(insert, 7, core->checkpoint.size_bytes);
    bind_blob(insert, 8, core->checkpoint.sha256, LIMIT_SHA256_BYTES);
    return statements_run(statements, STATEMENT_CHECKPOINT, error);
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
    bind_u64(update, 1, core->job.n);
    bind_u64(update, 2, record->wall_us);
    sqlite3_bind_int(update, 3, (int)core->ended.state);
    sqlite3_bind_int(update, 4, (int)core->ended.code);
    sqlite3_bind_int(update, 5, core->ended.exit_code);
    bind_text(update, 6, core->ended.text);
    return statements_run_one(statements, STATEMENT_ENDED, core->job, error);
}

cadre_status statements_write(
    struct statements *statements, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    switch (core->type) {
    case CORE_RECORD_JOB:
        return write_job(statements, record, error);
    case CORE_RECORD_STARTED: {
        sqlite3_stmt *update = statements->prepared[STATEMENT_STARTED];
        bind_u64(update, 1, core->job.n);
        bind_u64(update, 2, record->wall_us);
        bind_u64(update, 3, core->incarnation_max);
        return statements_run_one(statements, STATEMENT_STARTED, core->job, error);
    }
    case CORE_RECORD_PLAN:
        return write_plan(statements, record, error);
    case CORE_RECORD_WATERMARK:
        return write_watermark(statements, core, error);
    case CORE_RECORD_END_OF_DATA: {
        sqlite3_stmt *insert = statements->prepared[STATEMENT_END_OF_DATA];
        bind_u64(insert, 1, core->job.n);
        bind_u64(insert, 2, core->end_of_data.stream);
        bind_u64(insert, 3, core->end_of_data.epoch);
        bind_u64(insert, 4, core->end_of_data.first);
        bind_u64(insert, 5, core->end_of_data.steps);
        return statements_run(statements, STATEMENT_END_OF_DATA, error);
    }
    case CORE_RECORD_CHECKPOINT:
        return write_checkpoint(statements, core, error);
    case CORE_RECORD_DONE: {
        sqlite3_stmt *insert = statements->prepared[STATEMENT_DONE];
        bind_u64(insert, 1, core->job.n);
        bind_u64(insert, 2, core->done.generation.number);
        bind_u64(insert, 3, core->done.generation.nonce);
        bind_u64(insert, 4, core->done.position);
        return statements_run(statements, STATEMENT_DONE, error);
    }
    case CORE_RECORD_TASK_EXIT:
        return write_task_exit(statements, core, error);
    case CORE_RECORD_ENDED:
        return write_ended(statements, record, error);
    }
    CADRE_ASSERT(false);
    return CADRE_INTERNAL;
}

static uint64_t column_u64(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

static struct store_job job_of_row(sqlite3_stmt *row)
{
    return (struct store_job){.id.n = column_u64(row, 0),
        .spec = sqlite3_column_blob(row, 1),
        .spec_bytes = (size_t)sqlite3_column_bytes(row, 1),
        .tasks = (uint32_t)column_u64(row, 2),
        .priority = sqlite3_column_int(row, 3),
        .submitted_us = column_u64(row, 4),
        .started_us = column_u64(row, 5),
        .ended_us = column_u64(row, 6),
        .incarnation_max = column_u64(row, 7),
        .state = (enum job_state)sqlite3_column_int(row, 8),
        .code = (cadre_status)sqlite3_column_int(row, 9),
        .exit_code = sqlite3_column_int(row, 10),
        .text = column_text(row, 11),
        .generation = {.number = column_u64(row, 12), .nonce = column_u64(row, 13)},
        .position = column_u64(row, 14),
        .checkpoint = column_text(row, 15)};
}

/* Rows are ours, but a damaged file may hold anything. */
static cadre_status check_job(
    const struct statements *statements, const struct store_job *job, struct cadre_error *error)
{
    bool state_good = job->state == JOB_QUEUED || job->state == JOB_SUCCEEDED ||
                      job->state == JOB_FAILED || job->state == JOB_CANCELLED;
    bool code_good = (int)job->code >= 0 && job->code <= CADRE_UNAUTHENTICATED;
    bool tasks_good = job->tasks >= 1 && job->tasks <= LIMIT_TASKS_PER_JOB;
    if (state_good && code_good && tasks_good) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "store %s: job %llu has state %d, code %d and %u tasks, which cannot be: it is damaged",
        statements->path, (unsigned long long)job->id.n, (int)job->state, (int)job->code,
        job->tasks);
}

cadre_status statements_load(struct statements *statements,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    static const char select_jobs[] =
        "SELECT id, spec, tasks, priority, submitted_us, started_us, ended_us, incarnation_max, "
        "state, code,"
        " exit_code, text, coalesce(w.number, 0), coalesce(w.nonce, 0), coalesce(w.up_to, 0),"
        " coalesce((SELECT slot || '/' || path FROM checkpoint c WHERE c.job = id"
        "           ORDER BY position DESC LIMIT 1), '')"
        " FROM job LEFT JOIN watermark w ON w.job = id ORDER BY id";
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(statements->database, select_jobs, -1, &rows, NULL) != SQLITE_OK) {
        return statements_fail(statements, "read the jobs", error);
    }
    cadre_status status = CADRE_OK;
    int result = SQLITE_ROW;
    while (status == CADRE_OK && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_job job = job_of_row(rows);
        status = check_job(statements, &job, error);
        if (status == CADRE_OK) {
            status = visit(user, &job, error);
        }
    }
    if (status == CADRE_OK && result != SQLITE_DONE) {
        status = statements_fail(statements, "read the jobs", error);
    }
    sqlite3_finalize(rows);
    return status;
}

cadre_status statements_task_exits(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    static const char select_exits[] =
        "SELECT slot, max(incarnation), state, code, signal, text FROM "
        "task_exit WHERE job = ?1 GROUP BY slot"
        " ORDER BY slot";
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(statements->database, select_exits, -1, &rows, NULL) != SQLITE_OK) {
        return statements_fail(statements, "read how tasks ended", error);
    }
    bind_u64(rows, 1, job.n);
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_task_exit exit = {.slot = (uint32_t)column_u64(rows, 0),
            .incarnation = column_u64(rows, 1),
            .state = (enum task_state)sqlite3_column_int(rows, 2),
            .exit = {.code = sqlite3_column_int(rows, 3), .signal = sqlite3_column_int(rows, 4)}};
        sqlite3_snprintf(sizeof exit.exit.text, exit.exit.text, "%s", column_text(rows, 5));
        visit(user, &exit);
    }
    cadre_status status = result == SQLITE_DONE
                              ? CADRE_OK
                              : statements_fail(statements, "read how tasks ended", error);
    sqlite3_finalize(rows);
    return status;
}

cadre_status statements_forget(
    struct statements *statements, struct job_id job, struct cadre_error *error)
{
    bind_u64(statements->prepared[STATEMENT_FORGET], 1, job.n);
    CADRE_TRY(statements_run(statements, STATEMENT_FORGET, error)); /* its records go with it */
    if (sqlite3_changes(statements->database) == 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "the store %s has no job %llu",
            statements->path, (unsigned long long)job.n);
    }
    return CADRE_OK;
}

cadre_status statements_job_id_max(
    struct statements *statements, uint64_t *ret_max, struct cadre_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(statements->database, "SELECT job_id_max FROM meta", -1, &row, NULL) !=
            SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW) {
        cadre_status status = statements_fail(statements, "read the highest job id", error);
        sqlite3_finalize(row);
        return status;
    }
    *ret_max = column_u64(row, 0);
    sqlite3_finalize(row);
    return CADRE_OK;
}
