/* SPDX-License-Identifier: Apache-2.0
 * The SQL of the SQLite store: schema, prepared statements, binding and reading. One home for every
 * table and column. */
#ifndef CADRE_COORDINATOR_STORE_SQLITE_STATEMENTS_H
#define CADRE_COORDINATOR_STORE_SQLITE_STATEMENTS_H

#include <sqlite3.h>

#include "coordinator/store/store.h"

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_JOB,
    STATEMENT_JOB_ID_MAX,
    STATEMENT_STARTED,
    STATEMENT_PLAN,
    STATEMENT_PLAN_RESUME,
    STATEMENT_WATERMARK,
    STATEMENT_END_OF_DATA,
    STATEMENT_CHECKPOINT,
    STATEMENT_DONE,
    STATEMENT_TASK_EXIT,
    STATEMENT_ENDED,
    STATEMENT_FORGET,
    STATEMENT_COUNT
};

struct statements {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENT_COUNT];
    char *path; /* for messages; a copy, freed by close */
};

/* Opens the file for this process alone, in WAL mode and synchronous=FULL. Half-opened statements
 * must be closed too. */
cadre_status statements_open(
    struct statements *statements, const char *path, struct cadre_error *error);
void statements_close(struct statements *statements);

/* Makes the tables in a new file (with `fresh` as its secret), checks the version of an old one,
 * prepares everything. */
cadre_status statements_schema(struct statements *statements,
    const uint8_t fresh[STORE_SECRET_BYTES], uint8_t ret_secret[STORE_SECRET_BYTES],
    struct cadre_error *error);

/* What SQLite says went wrong, as our code and a sentence that names the file; returns the code. */
cadre_status statements_fail(
    struct statements *statements, const char *doing, struct cadre_error *error);

/* `doing` is for the message, as in "store <path>: <doing>: <reason>". */
cadre_status statements_execute(
    struct statements *statements, const char *doing, const char *sql, struct cadre_error *error);
/* What was bound stays bound; both reset it for the next time. */
cadre_status statements_run(
    struct statements *statements, enum statement which, struct cadre_error *error);
/* One that must have changed exactly one row, of this job. */
cadre_status statements_run_one(struct statements *statements, enum statement which,
    struct job_id job, struct cadre_error *error);

/* One record, inside the caller's transaction. */
cadre_status statements_write(
    struct statements *statements, const struct store_record *record, struct cadre_error *error);

cadre_status statements_load(struct statements *statements,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error);
cadre_status statements_task_exits(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error);
cadre_status statements_forget(
    struct statements *statements, struct job_id job, struct cadre_error *error);
cadre_status statements_job_id_max(
    struct statements *statements, uint64_t *ret_max, struct cadre_error *error);

#endif
