/* SPDX-License-Identifier: Apache-2.0
 * Opening, versioning and preparing. Foreign keys are not needed: one process writes, in
 * transactions. */
#include "coordinator/store/sqlite_statements.h"

#include <stdlib.h>
#include <string.h>

static const char SCHEMA[] =
    "CREATE TABLE meta(version INTEGER NOT NULL, secret BLOB NOT NULL, job_id_max INTEGER NOT "
    "NULL);"
    "CREATE TABLE job(id INTEGER PRIMARY KEY, spec BLOB NOT NULL, tasks INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL, submitted_us INTEGER NOT NULL, started_us INTEGER NOT NULL "
    "DEFAULT 0,"
    "  ended_us INTEGER NOT NULL DEFAULT 0, incarnation_max INTEGER NOT NULL DEFAULT 0,"
    "  state INTEGER NOT NULL DEFAULT 1, code INTEGER NOT NULL DEFAULT 0,"
    "  exit_code INTEGER NOT NULL DEFAULT 0, text TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE plan(job INTEGER NOT NULL, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"
    "  parent_number INTEGER NOT NULL, parent_nonce INTEGER NOT NULL, resume INTEGER NOT NULL,"
    "  roster BLOB NOT NULL, PRIMARY KEY(job, number)) WITHOUT ROWID;"
    "CREATE TABLE watermark(job INTEGER PRIMARY KEY, number INTEGER NOT NULL, nonce INTEGER NOT "
    "NULL,"
    "  up_to INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT "
    "NULL,"
    "  steps INTEGER NOT NULL);"
    "CREATE TABLE end_of_data(job INTEGER NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT "
    "NULL,"
    "  first INTEGER NOT NULL, steps INTEGER NOT NULL, PRIMARY KEY(job, stream, epoch)) WITHOUT "
    "ROWID;"
    "CREATE TABLE checkpoint(job INTEGER NOT NULL, position INTEGER NOT NULL, number INTEGER NOT "
    "NULL,"
    "  nonce INTEGER NOT NULL, slot INTEGER NOT NULL, path TEXT NOT NULL, size_bytes INTEGER NOT "
    "NULL,"
    "  sha256 BLOB NOT NULL, PRIMARY KEY(job, position)) WITHOUT ROWID;"
    "CREATE TABLE done(job INTEGER PRIMARY KEY, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"
    "  position INTEGER NOT NULL);"
    "CREATE TABLE task_exit(job INTEGER NOT NULL, slot INTEGER NOT NULL, incarnation INTEGER NOT "
    "NULL,"
    "  state INTEGER NOT NULL, code INTEGER NOT NULL, signal INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot, incarnation)) WITHOUT ROWID;";

static const char *const SQL[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_JOB] =
        "INSERT INTO job(id, spec, tasks, priority, submitted_us) VALUES(?1, ?2, ?3, ?4, ?5)",
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
};

cadre_status statements_fail(
    struct statements *statements, const char *doing, struct cadre_error *error)
{
    int code = sqlite3_errcode(statements->database);
    cadre_status status = CADRE_UNKNOWN;
    switch (code & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        status = CADRE_PERMISSION_DENIED;
        break;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        status = CADRE_RESOURCE_EXHAUSTED;
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        status = CADRE_UNAVAILABLE;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
        status = CADRE_DATA_LOSS;
        break;
    default:
        break;
    }
    return cadre_error_set(error, status, "store %s: %s: %s", statements->path, doing,
        sqlite3_errmsg(statements->database));
}

cadre_status statements_execute(
    struct statements *statements, const char *sql, struct cadre_error *error)
{
    if (sqlite3_exec(statements->database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return statements_fail(statements, sql, error);
    }
    return CADRE_OK;
}

cadre_status statements_run(
    struct statements *statements, enum statement which, struct cadre_error *error)
{
    sqlite3_stmt *prepared = statements->prepared[which];
    int result = sqlite3_step(prepared);
    cadre_status status = CADRE_OK;
    if (result != SQLITE_DONE) {
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
        return statements_fail(statements, "open", error);
    }
    sqlite3_busy_timeout(statements->database, 1000);
    CADRE_TRY(statements_execute(statements, "PRAGMA journal_mode=WAL", error));
    return statements_execute(statements, "PRAGMA synchronous=FULL", error);
}

static cadre_status create(struct statements *statements, const uint8_t fresh[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    CADRE_TRY(statements_execute(statements, "BEGIN IMMEDIATE", error));
    CADRE_TRY(statements_execute(statements, SCHEMA, error));
    sqlite3_stmt *insert = NULL;
    if (sqlite3_prepare_v2(statements->database, "INSERT INTO meta VALUES(?1, ?2, 0)", -1, &insert,
            NULL) != SQLITE_OK) {
        return statements_fail(statements, "insert meta", error);
    }
    sqlite3_bind_int(insert, 1, STORE_VERSION);
    sqlite3_bind_blob(insert, 2, fresh, STORE_SECRET_BYTES, SQLITE_STATIC);
    int result = sqlite3_step(insert);
    sqlite3_finalize(insert);
    if (result != SQLITE_DONE) {
        return statements_fail(statements, "insert meta", error);
    }
    return statements_execute(statements, "COMMIT", error);
}

/* CADRE_NOT_FOUND without a message: the file is new. */
static cadre_status read_meta(struct statements *statements, uint8_t ret_secret[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    sqlite3_stmt *select = NULL;
    const char *exists = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'";
    if (sqlite3_prepare_v2(statements->database, exists, -1, &select, NULL) != SQLITE_OK ||
        sqlite3_step(select) != SQLITE_ROW) {
        sqlite3_finalize(select);
        return statements_fail(statements, "read the list of tables", error);
    }
    bool present = sqlite3_column_int(select, 0) == 1;
    sqlite3_finalize(select);
    if (!present) {
        return CADRE_NOT_FOUND;
    }
    if (sqlite3_prepare_v2(statements->database, "SELECT version, secret FROM meta", -1, &select,
            NULL) != SQLITE_OK ||
        sqlite3_step(select) != SQLITE_ROW) {
        sqlite3_finalize(select);
        return statements_fail(statements, "read its version", error);
    }
    int version = sqlite3_column_int(select, 0);
    cadre_status status = CADRE_OK;
    if (version != STORE_VERSION) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the store %s has version %d and this program reads version %d: use the program that "
            "made it,"
            " or another --state-dir",
            statements->path, version, STORE_VERSION);
    } else if (sqlite3_column_bytes(select, 1) != STORE_SECRET_BYTES) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "the store %s has a secret of %d bytes, not %d: it is damaged", statements->path,
            sqlite3_column_bytes(select, 1), STORE_SECRET_BYTES);
    } else {
        memcpy(ret_secret, sqlite3_column_blob(select, 1), STORE_SECRET_BYTES);
    }
    sqlite3_finalize(select);
    return status;
}

cadre_status statements_schema(struct statements *statements,
    const uint8_t fresh[STORE_SECRET_BYTES], uint8_t ret_secret[STORE_SECRET_BYTES],
    struct cadre_error *error)
{
    cadre_status status = read_meta(statements, ret_secret, error);
    if (status == CADRE_NOT_FOUND) {
        status = create(statements, fresh, error);
        memcpy(ret_secret, fresh, STORE_SECRET_BYTES);
    }
    CADRE_TRY(status);
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
