/* SPDX-License-Identifier: Apache-2.0
 * Opening, preparing and running. Only this process has the database open: no other process can
 * lock it while a coordinator runs, and no second coordinator can start on it. */
#include "coordinator/store/sqlite_statements.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "coordinator/store/sqlite_tables.h"

/* A row of these columns, with its checksum; the values go in by number. */
#define INSERT(table, columns, values)                                                             \
    "INTO " table "(job, " columns ", sum) VALUES(" values ", row_sum('" table "', " values "))"
#define PUT(table, columns, values) "INSERT OR REPLACE " INSERT(table, columns, values)
#define FIRST_6                     "?1, ?2, ?3, ?4, ?5, ?6"
#define FIRST_8                     FIRST_6 ", ?7, ?8"
#define FIRST_9                     FIRST_8 ", ?9"

static const char *const SQL[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_JOB] = "INSERT INTO job(id, spec, tasks, tasks_min, priority, max_restarts, wait_us,"
                      " stall_us, submitted_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [STATEMENT_JOB_IS_WHOLE] = "SELECT sum IS " JOB_SUM " FROM job WHERE id = ?1",
    [STATEMENT_JOB_SUM] = "UPDATE job SET sum = " JOB_SUM " WHERE id = ?1",
    [STATEMENT_JOB_ID_MAX] = "UPDATE meta SET job_id_max = max(job_id_max, ?1)",
    [STATEMENT_STARTS] = "UPDATE meta SET starts = ?1",
    [STATEMENT_META_IS_WHOLE] = "SELECT sum IS " META_SUM " FROM meta",
    [STATEMENT_META_SUM] = "UPDATE meta SET sum = " META_SUM,
    [STATEMENT_ORIGIN] = PUT("origin", CHECKPOINT_COLUMNS, FIRST_9),
    [STATEMENT_STARTED] =
        "UPDATE job SET started_us = ?2, incarnation_max = ?3,"
        " first_us = CASE first_us WHEN 0 THEN ?2 ELSE first_us END WHERE id = ?1",
    [STATEMENT_QUEUED] = "UPDATE job SET started_us = 0 WHERE id = ?1",
    [STATEMENT_QUEUED_TASKS] = "DELETE FROM task WHERE job = ?1",
    [STATEMENT_QUEUED_BACKED] = "DELETE FROM backed WHERE job = ?1",
    [STATEMENT_QUEUED_ROSTER] = "DELETE FROM roster WHERE job = ?1",
    [STATEMENT_QUEUED_CONTROL] = "DELETE FROM control WHERE job = ?1",
    [STATEMENT_QUEUED_DONE] = "DELETE FROM done WHERE job = ?1",
    [STATEMENT_INCARNATION] =
        "UPDATE job SET incarnation_max = max(incarnation_max, ?2) WHERE id = ?1",
    [STATEMENT_TASK] = "INSERT " INSERT("task", TASK_COLUMNS,
        FIRST_6) " ON CONFLICT(job, slot) DO UPDATE"
                 " SET incarnation = ?3, worker = ?4, lives = ?5, lives_in = ?6, sum = excluded.sum"
                 " WHERE incarnation < ?3 OR sum IS NOT " SUM_OF("task", TASK_COLUMNS),
    [STATEMENT_BACKED] = PUT("backed", BACKED_COLUMNS, "?1, ?2, ?3, ?4"),
    [STATEMENT_NOT_BACKED] = "DELETE FROM backed WHERE job = ?1 AND slot = ?2",
    [STATEMENT_PLAN] = "INSERT " INSERT("plan", PLAN_COLUMNS, FIRST_9),
    [STATEMENT_PLAN_ROSTER] = PUT("roster", ROSTER_COLUMNS, "?1, ?2"),
    [STATEMENT_PLAN_RESTARTS] = "UPDATE job SET restarts = ?2 WHERE id = ?1",
    /* The plan cuts the ledger at its resume position, in the same transaction (protocol, section
     * 4). What is left of the watermark still gives the run of position resume - 1, or nothing. */
    [STATEMENT_PLAN_WATERMARK] =
        "INSERT INTO watermark(job, number, nonce, up_to, stream, epoch, first, start, steps)"
        " VALUES(?1, ?2, ?3, ?4, 0, 0, ?4, ?4, 0) ON CONFLICT(job) DO UPDATE SET"
        " stream = iif(start < ?4 AND ?4 <= up_to, stream, 0),"
        " epoch = iif(start < ?4 AND ?4 <= up_to, epoch, 0),"
        " first = iif(start < ?4 AND ?4 <= up_to, first, ?4),"
        " steps = iif(start < ?4 AND ?4 <= up_to, steps, 0),"
        " start = iif(start < ?4 AND ?4 <= up_to, start, ?4),"
        " number = ?2, nonce = ?3, up_to = ?4",
    [STATEMENT_WATERMARK_IS_WHOLE] =
        "SELECT sum IS " SUM_OF("watermark", WATERMARK_COLUMNS) " FROM watermark WHERE job = ?1",
    [STATEMENT_WATERMARK_SUM] =
        "UPDATE watermark SET sum = " SUM_OF("watermark", WATERMARK_COLUMNS) " WHERE job = ?1",
    [STATEMENT_PLAN_CONSUMED] = "DELETE FROM feed WHERE job = ?1 AND start >= ?2",
    [STATEMENT_PLAN_ENDS] = "DELETE FROM end_of_data WHERE job = ?1 AND start >= ?2",
    [STATEMENT_CONTROL] = PUT("control", CONTROL_COLUMNS, FIRST_6),
    [STATEMENT_WATERMARK] = "INSERT " INSERT("watermark", WATERMARK_COLUMNS,
        FIRST_9) " ON CONFLICT(job)"
                 " DO UPDATE SET number = ?2, nonce = ?3, up_to = ?4, stream = ?5, epoch = ?6,"
                 " first = ?7, start = ?8, steps = ?9, sum = excluded.sum",
    [STATEMENT_CONSUMED] = PUT("feed", CONSUMED_COLUMNS, FIRST_9 ", ?10, ?11, ?12, ?13"),
    /* Runs that a newer one of the same epoch replaces, and to which no plan can go back, because
     * it would resume at the newest checkpoint at the earliest. */
    [STATEMENT_CONSUMED_REPLACED] =
        "DELETE FROM feed WHERE job = ?1 AND stream = ?2 AND epoch = ?3 AND start <"
        " (SELECT max(start) FROM feed WHERE job = ?1 AND stream = ?2 AND epoch = ?3 AND start <"
        "  (SELECT min(position) FROM checkpoint WHERE job = ?1))",
    [STATEMENT_STREAM] = PUT("stream", STREAM_COLUMNS, "?1, ?2, ?3, ?4, ?5"),
    [STATEMENT_END_OF_DATA] = PUT("end_of_data", END_OF_DATA_COLUMNS, FIRST_6),
    [STATEMENT_CHECKPOINT] = PUT("checkpoint", CHECKPOINT_COLUMNS, FIRST_9),
    [STATEMENT_DROP_CHECKPOINT] = "DELETE FROM checkpoint WHERE job = ?1 AND position = ?2",
    [STATEMENT_LOST] = "INSERT " INSERT("lost", LOST_COLUMNS,
        "?1, ?2, ?3") " ON CONFLICT(job) DO UPDATE SET position = ?2, why = ?3, sum = excluded.sum"
                      " WHERE position <= ?2 OR sum IS NOT " SUM_OF("lost", LOST_COLUMNS),
    [STATEMENT_VERIFIED] = PUT("verified", VERIFIED_COLUMNS, "?1, ?2, ?3"),
    [STATEMENT_PLAN_VERIFIED] = "DELETE FROM verified WHERE job = ?1 AND position > ?2",
    [STATEMENT_DONE] = PUT("done", DONE_COLUMNS, "?1, ?2, ?3, ?4"),
    [STATEMENT_TASK_EXIT] = PUT("task_exit", TASK_EXIT_COLUMNS, FIRST_6 ", ?7"),
    [STATEMENT_ENDING] = PUT("ending", ENDING_COLUMNS, FIRST_6),
    [STATEMENT_ENDED] =
        "UPDATE job SET ended_us = ?2, state = ?3, code = ?4, exit_code = ?5, text = ?6"
        " WHERE id = ?1",
    [STATEMENT_FORGET] = "DELETE FROM job WHERE id = ?1",
    [STATEMENT_PUBLISHED] = PUT("published", PUBLISHED_COLUMNS, "?1, ?2, ?3"),
    [STATEMENT_DIVERGED] = PUT("diverged", DIVERGED_COLUMNS, "?1, ?2, ?3"),
    [STATEMENT_CULPRIT] = "INSERT OR REPLACE INTO culprit(" CULPRIT_COLUMNS ", sum)"
                          " VALUES(?1, ?2, row_sum('culprit', ?1, ?2))",
    [STATEMENT_CULPRIT_FORGOTTEN] = "DELETE FROM culprit WHERE worker = ?1",
    [STATEMENT_DRAINED] = "INSERT OR REPLACE INTO drain(" DRAIN_COLUMNS ", sum)"
                          " VALUES(?1, ?2, ?3, row_sum('drain', ?1, ?2, ?3))",
    [STATEMENT_EVENT] = "INSERT " INSERT(
        "event", EVENT_COLUMNS, FIRST_9 ", ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19"),
    [STATEMENT_EVENT_LAST] = "SELECT coalesce(max(number), 0) FROM event WHERE job = ?1",
    [STATEMENT_EVENTS_DROPPED] =
        "DELETE FROM event WHERE job = ?1 AND number > ?2 AND number <= ?3",
    [STATEMENT_UNDRAINED] = "DELETE FROM drain WHERE worker = ?1",
    [STATEMENT_SHARED_LOG] = "INSERT OR REPLACE INTO shared_log(" SHARED_LOG_COLUMNS ", sum)"
                             " VALUES(1, " FIRST_8 ", row_sum('shared_log', 1, " FIRST_8 "))",
    [STATEMENT_CLUSTER] = "UPDATE meta SET cluster = ?1, secret = ?2",
};

/* The status for SQLite's code, and the next step as the end of the sentence. */
static cadre_status sqlite_statements_translate(int code, const char **ret_hint)
{
    *ret_hint = "";
    switch (code & 0xff) {
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        *ret_hint = ": it and its folder must be writable";
        return CADRE_PERMISSION_DENIED;
    case SQLITE_FULL:
        *ret_hint = ": free space on its disk";
        return CADRE_RESOURCE_EXHAUSTED;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        return CADRE_RESOURCE_EXHAUSTED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        *ret_hint = ": another process has it open";
        return CADRE_UNAVAILABLE;
    case SQLITE_NOTADB:
        *ret_hint = ": move it away, or choose another --state-dir";
        return CADRE_DATA_LOSS;
    case SQLITE_CORRUPT:
        *ret_hint = ": put a copy back, or choose another --state-dir";
        return CADRE_DATA_LOSS;
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_WRITE) { /* the cause is not reported; nothing was lost */
            *ret_hint = ": its disk takes no more: free space on it, or raise the quota";
            return CADRE_RESOURCE_EXHAUSTED;
        }
        return CADRE_DATA_LOSS;
    case SQLITE_CONSTRAINT:
        return CADRE_INTERNAL; /* a record of an unknown job, or a duplicate */
    default:
        return CADRE_UNKNOWN;
    }
}

cadre_status statements_fail(
    struct statements *statements, const char *doing, struct cadre_error *error)
{
    int code = sqlite3_errcode(statements->database);
    int primary = code & 0xff;
    int cause = sqlite3_system_errno(statements->database);
    if (cause != 0 && (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)) {
        return cadre_error_errno(error, cause, "store %s: %s: %s", statements->path, doing,
            sqlite3_errmsg(statements->database));
    }
    const char *hint;
    cadre_status status = sqlite_statements_translate(code, &hint);
    return cadre_error_set(error, status, "store %s: %s: %s%s", statements->path, doing,
        sqlite3_errmsg(statements->database), hint);
}

/* The point where tests make any write fail, or a read. */
static bool is_refused_at(
    const char *point, struct statements *statements, const char *doing, struct cadre_error *error)
{
    if (!fault_point(point)) {
        return false;
    }
    cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "store %s: %s: refused", statements->path, doing);
    return true;
}

static bool is_refused(struct statements *statements, const char *doing, struct cadre_error *error)
{
    return is_refused_at("store.run", statements, doing, error);
}

cadre_status statements_execute(
    struct statements *statements, const char *doing, const char *sql, struct cadre_error *error)
{
    if (is_refused(statements, doing, error)) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    if (sqlite3_exec(statements->database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return statements_fail(statements, doing, error);
    }
    return CADRE_OK;
}

cadre_status statements_run(
    struct statements *statements, enum statement which, struct cadre_error *error)
{
    if (which != STATEMENT_ROLLBACK && is_refused(statements, SQL[which], error)) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    sqlite3_stmt *prepared = statements->prepared[which];
    int result = sqlite3_step(prepared);
    cadre_status status = CADRE_OK;
    if (result != SQLITE_DONE) {
        status = statements_fail(statements, SQL[which], error);
    }
    sqlite3_reset(prepared);
    return status;
}

cadre_status statements_run_one(struct statements *statements, enum statement which,
    struct job_id job, struct cadre_error *error)
{
    CADRE_TRY(statements_run(statements, which, error));
    if (sqlite3_changes(statements->database) != 1) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "a record names job %llu, which the store %s does not have", (unsigned long long)job.n,
            statements->path);
    }
    return CADRE_OK;
}

cadre_status statements_check_whole(struct statements *statements, enum statement which,
    struct job_id job, const char *what, struct cadre_error *error)
{
    sqlite3_stmt *prepared = statements->prepared[which];
    bind_u64(prepared, 1, job.n);
    int result = sqlite3_step(prepared);
    cadre_status status = CADRE_OK;
    if (result == SQLITE_ROW && sqlite3_column_int(prepared, 0) == 0) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "store %s: the record of job %llu is damaged: it lost %s", statements->path,
            (unsigned long long)job.n, what);
    } else if (result != SQLITE_ROW && result != SQLITE_DONE) {
        status = statements_fail(statements, SQL[which], error);
    }
    sqlite3_reset(prepared);
    return status;
}

cadre_status statements_open(
    struct statements *statements, const char *path, struct cadre_error *error)
{
    statements->path = strdup(path);
    if (statements->path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the store %s", path);
    }
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &statements->database, flags, NULL) != SQLITE_OK) {
        return statements_fail(statements, "open it", error);
    }
    if (checksum_register(statements->database) != SQLITE_OK) {
        return statements_fail(statements, "give it checksums", error);
    }
    /* Exclusive before the first read, so that WAL uses no shared memory. */
    return statements_execute(statements, "open it",
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        " PRAGMA foreign_keys=ON; BEGIN IMMEDIATE; COMMIT",
        error);
}

cadre_status statements_prepare(struct statements *statements, struct cadre_error *error)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(statements->database, SQL[i], -1, SQLITE_PREPARE_PERSISTENT,
                &statements->prepared[i], NULL) != SQLITE_OK) {
            return statements_fail(statements, SQL[i], error);
        }
    }
    return CADRE_OK;
}

void statements_close(struct statements *statements)
{
    for (int i = 0; i < QUERIES_KEPT; i++) {
        sqlite3_finalize(statements->queries[i].rows);
    }
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(statements->prepared[i]);
    }
    sqlite3_close(statements->database);
    free(statements->path);
    *statements = (struct statements){0};
}

cadre_status statements_sync(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "sync it to the disk";
    if (is_refused(statements, doing, error)) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    sqlite3_file *wal = NULL;
    int result =
        sqlite3_file_control(statements->database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    /* No file yet: nothing was written since the database was opened. */
    if (result == SQLITE_OK && wal != NULL && wal->pMethods != NULL) {
        result = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
    }
    if (result == SQLITE_OK) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS, "store %s: %s: %s: its disk fails",
        statements->path, doing, sqlite3_errstr(result));
}

/* NULL: it cannot be prepared. */
static sqlite3_stmt *take_query(struct statements *statements, const char *sql)
{
    sqlite3_stmt *rows = NULL;
    for (size_t i = 0; i < QUERIES_KEPT; i++) {
        struct kept_query *query = &statements->queries[i];
        if (query->sql == sql && query->rows != NULL) {
            rows = query->rows;
            query->rows = NULL;
            return rows;
        }
    }
    return sqlite3_prepare_v2(statements->database, sql, -1, &rows, NULL) == SQLITE_OK ? rows
                                                                                       : NULL;
}

static void keep_query(struct statements *statements, const char *sql, sqlite3_stmt *rows)
{
    sqlite3_reset(rows);
    for (size_t i = 0; i < QUERIES_KEPT; i++) {
        struct kept_query *query = &statements->queries[i];
        if (query->rows == NULL && (query->sql == NULL || query->sql == sql)) {
            *query = (struct kept_query){.sql = sql, .rows = rows};
            return;
        }
    }
    sqlite3_finalize(rows);
}

static cadre_status sqlite_statements_each(struct statements *statements, const char *doing,
    sqlite3_stmt *rows, const uint64_t *values,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error)
{
    for (int i = 0; i < sqlite3_bind_parameter_count(rows); i++) {
        bind_u64(rows, i + 1, values[i]);
    }
    cadre_status status = CADRE_OK;
    int result = SQLITE_ROW;
    while (status == CADRE_OK && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        status = is_refused_at("store.read", statements, doing, error) ? CADRE_RESOURCE_EXHAUSTED
                                                                       : visit(user, rows, error);
    }
    if (status == CADRE_OK && result != SQLITE_DONE) {
        status = statements_fail(statements, doing, error);
    }
    return status;
}

cadre_status statements_each_of(struct statements *statements, const char *doing, const char *sql,
    const uint64_t *values,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error)
{
    sqlite3_stmt *rows = take_query(statements, sql);
    if (rows == NULL) {
        return statements_fail(statements, doing, error);
    }
    cadre_status status =
        sqlite_statements_each(statements, doing, rows, values, visit, user, error);
    keep_query(statements, sql, rows);
    return status;
}

cadre_status statements_each(struct statements *statements, const char *doing, const char *sql,
    struct job_id job,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error)
{
    return statements_each_of(statements, doing, sql, &job.n, visit, user, error);
}

cadre_status statements_each_once(struct statements *statements, const char *doing, const char *sql,
    struct job_id job,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(statements->database, sql, -1, &rows, NULL) != SQLITE_OK) {
        return statements_fail(statements, doing, error);
    }
    cadre_status status =
        sqlite_statements_each(statements, doing, rows, &job.n, visit, user, error);
    sqlite3_finalize(rows);
    return status;
}
