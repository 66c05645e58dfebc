/* SPDX-License-Identifier: Apache-2.0
 * Opening, versioning and preparing. This process is the only one that has the database open:
 * nobody can lock it away from a coordinator that runs, and no second one can start on it. */
#include "coordinator/store/sqlite_statements.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"

/* Of every table but its own: records of a job that is not there are refused, and they go with it.
 */
#define JOB_COLUMN "job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE, "
#define JOB_KEY    "job INTEGER PRIMARY KEY REFERENCES job(id) ON DELETE CASCADE, "

static const char SCHEMA[] =
    "CREATE TABLE meta("
    "  version INTEGER NOT NULL, secret BLOB NOT NULL, job_id_max INTEGER NOT NULL);"
    "CREATE TABLE job("
    "  id INTEGER PRIMARY KEY, spec BLOB NOT NULL, tasks INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL, submitted_us INTEGER NOT NULL,"
    "  started_us INTEGER NOT NULL DEFAULT 0, ended_us INTEGER NOT NULL DEFAULT 0,"
    "  incarnation_max INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL DEFAULT 1,"
    "  code INTEGER NOT NULL DEFAULT 0, exit_code INTEGER NOT NULL DEFAULT 0,"
    "  text TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE plan(" JOB_COLUMN
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, parent_number INTEGER NOT NULL,"
    "  parent_nonce INTEGER NOT NULL, resume INTEGER NOT NULL, roster BLOB NOT NULL,"
    "  PRIMARY KEY(job, number)) WITHOUT ROWID;"
    "CREATE TABLE watermark(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, up_to INTEGER NOT NULL,"
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL);"
    "CREATE TABLE end_of_data(" JOB_COLUMN
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL, PRIMARY KEY(job, stream, epoch)) WITHOUT ROWID;"
    "CREATE TABLE checkpoint(" JOB_COLUMN
    "  position INTEGER NOT NULL, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"
    "  slot INTEGER NOT NULL, path TEXT NOT NULL, size_bytes INTEGER NOT NULL,"
    "  sha256 BLOB NOT NULL, PRIMARY KEY(job, position)) WITHOUT ROWID;"
    "CREATE TABLE done(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, position INTEGER NOT NULL);"
    "CREATE TABLE task_exit(" JOB_COLUMN
    "  slot INTEGER NOT NULL, incarnation INTEGER NOT NULL, state INTEGER NOT NULL,"
    "  code INTEGER NOT NULL, signal INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot, incarnation)) WITHOUT ROWID;";

static const char *const SQL[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_JOB] =
        "INSERT INTO job(id, spec, tasks, priority, submitted_us) VALUES(?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_JOB_ID_MAX] = "UPDATE meta SET job_id_max = max(job_id_max, ?1)",
    [STATEMENT_STARTED] = "UPDATE job SET started_us = ?2, incarnation_max = ?3 WHERE id = ?1",
    [STATEMENT_PLAN] = "INSERT INTO plan VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    /* The plan truncates the ledger at its resume position, in the same transaction. */
    [STATEMENT_PLAN_RESUME] =
        "INSERT INTO watermark VALUES(?1, ?2, ?3, ?4, 0, 0, ?4, 0) ON CONFLICT(job)"
        " DO UPDATE SET number = ?2, nonce = ?3, up_to = ?4",
    [STATEMENT_WATERMARK] =
        "INSERT INTO watermark VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(job)"
        " DO UPDATE SET number = ?2, nonce = ?3, up_to = ?4, stream = ?5, epoch = ?6,"
        " first = ?7, steps = ?8",
    [STATEMENT_END_OF_DATA] = "INSERT OR REPLACE INTO end_of_data VALUES(?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_CHECKPOINT] =
        "INSERT OR REPLACE INTO checkpoint VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [STATEMENT_DONE] = "INSERT OR REPLACE INTO done VALUES(?1, ?2, ?3, ?4)",
    [STATEMENT_TASK_EXIT] = "INSERT OR REPLACE INTO task_exit VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [STATEMENT_ENDED] =
        "UPDATE job SET ended_us = ?2, state = ?3, code = ?4, exit_code = ?5, text = ?6"
        " WHERE id = ?1",
    [STATEMENT_FORGET] = "DELETE FROM job WHERE id = ?1",
};

/* What the code means for us, and the next step as the end of the sentence. */
static cadre_status translate(int code, const char **ret_hint)
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
        return CADRE_DATA_LOSS;
    case SQLITE_CONSTRAINT:
        return CADRE_INTERNAL; /* a record of a job that is not there, or one said twice */
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
    cadre_status status = translate(code, &hint);
    return cadre_error_set(error, status, "store %s: %s: %s%s", statements->path, doing,
        sqlite3_errmsg(statements->database), hint);
}

/* Where tests make any write fail. */
static bool is_refused(struct statements *statements, const char *doing, struct cadre_error *error)
{
    if (!fault_point("store.run")) {
        return false;
    }
    cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "store %s: %s: refused", statements->path, doing);
    return true;
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
    /* Exclusive before anything reads it: then WAL needs no memory that others share. */
    return statements_execute(statements, "open it",
        "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        " PRAGMA foreign_keys=ON; BEGIN IMMEDIATE; COMMIT",
        error);
}

static cadre_status create(struct statements *statements, const uint8_t fresh[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    CADRE_TRY(statements_execute(statements, "make its tables", "BEGIN IMMEDIATE", error));
    CADRE_TRY(statements_execute(statements, "make its tables", SCHEMA, error));
    sqlite3_stmt *insert = NULL;
    if (sqlite3_prepare_v2(statements->database, "INSERT INTO meta VALUES(?1, ?2, 0)", -1, &insert,
            NULL) != SQLITE_OK) {
        return statements_fail(statements, "make its tables", error);
    }
    sqlite3_bind_int(insert, 1, STORE_VERSION);
    sqlite3_bind_blob(insert, 2, fresh, STORE_SECRET_BYTES, SQLITE_STATIC);
    int result = sqlite3_step(insert);
    sqlite3_finalize(insert);
    if (result != SQLITE_DONE) {
        return statements_fail(statements, "make its tables", error);
    }
    return statements_execute(statements, "make its tables", "COMMIT", error);
}

static cadre_status check_meta(struct statements *statements, sqlite3_stmt *row,
    uint8_t ret_secret[STORE_SECRET_BYTES], struct cadre_error *error)
{
    int version = sqlite3_column_int(row, 0);
    if (version != STORE_VERSION) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the store %s has version %d and this program reads version %d: use the program that "
            "made it, or another --state-dir",
            statements->path, version, STORE_VERSION);
    }
    if (sqlite3_column_bytes(row, 1) != STORE_SECRET_BYTES) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the store %s has a secret of %d bytes, not %d: it is damaged", statements->path,
            sqlite3_column_bytes(row, 1), STORE_SECRET_BYTES);
    }
    memcpy(ret_secret, sqlite3_column_blob(row, 1), STORE_SECRET_BYTES);
    return CADRE_OK;
}

/* How many tables there are, and whether ours is one of them. */
static cadre_status count_tables(
    struct statements *statements, int *ret_all, int *ret_meta, struct cadre_error *error)
{
    sqlite3_stmt *select = NULL;
    const char *sql = "SELECT count(*), coalesce(sum(name = 'meta'), 0) FROM sqlite_master";
    if (sqlite3_prepare_v2(statements->database, sql, -1, &select, NULL) != SQLITE_OK ||
        sqlite3_step(select) != SQLITE_ROW) {
        cadre_status status = statements_fail(statements, "read the list of its tables", error);
        sqlite3_finalize(select);
        return status;
    }
    *ret_all = sqlite3_column_int(select, 0);
    *ret_meta = sqlite3_column_int(select, 1);
    sqlite3_finalize(select);
    return CADRE_OK;
}

static cadre_status read_meta(struct statements *statements, uint8_t ret_secret[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    sqlite3_stmt *row = NULL;
    const char *sql = "SELECT version, secret FROM meta";
    cadre_status status;
    if (sqlite3_prepare_v2(statements->database, sql, -1, &row, NULL) != SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "the store %s does not tell its version (%s): it is damaged, or no ledger of Cadre",
            statements->path, sqlite3_errmsg(statements->database));
    } else {
        status = check_meta(statements, row, ret_secret, error);
    }
    sqlite3_finalize(row);
    return status;
}

cadre_status statements_schema(struct statements *statements,
    const uint8_t fresh[STORE_SECRET_BYTES], uint8_t ret_secret[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    int tables = 0;
    int meta = 0;
    CADRE_TRY(count_tables(statements, &tables, &meta, error));
    if (tables == 0) {
        CADRE_TRY(create(statements, fresh, error));
        memcpy(ret_secret, fresh, STORE_SECRET_BYTES);
    } else if (meta == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is a database of another program: choose another --state-dir", statements->path);
    } else {
        CADRE_TRY(read_meta(statements, ret_secret, error));
    }
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
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(statements->prepared[i]);
    }
    sqlite3_close(statements->database);
    free(statements->path);
    *statements = (struct statements){0};
}
