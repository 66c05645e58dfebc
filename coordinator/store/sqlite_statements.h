/* SPDX-License-Identifier: Apache-2.0
 * The SQL of the SQLite store: schema, prepared statements, binding and reading. */
#ifndef CADRE_COORDINATOR_STORE_SQLITE_STATEMENTS_H
#define CADRE_COORDINATOR_STORE_SQLITE_STATEMENTS_H

#include <sqlite3.h>

#include "coordinator/store/log_copy.h"
#include "coordinator/store/store.h"

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_JOB,
    STATEMENT_JOB_IS_WHOLE,
    STATEMENT_JOB_SUM,
    STATEMENT_JOB_ID_MAX,
    STATEMENT_STARTS,
    STATEMENT_META_IS_WHOLE,
    STATEMENT_META_SUM,
    STATEMENT_ORIGIN,
    STATEMENT_STARTED,
    STATEMENT_QUEUED,
    STATEMENT_QUEUED_TASKS,
    STATEMENT_QUEUED_BACKED,
    STATEMENT_QUEUED_ROSTER,
    STATEMENT_QUEUED_CONTROL,
    STATEMENT_QUEUED_DONE,
    STATEMENT_INCARNATION,
    STATEMENT_TASK,
    STATEMENT_BACKED,
    STATEMENT_NOT_BACKED,
    STATEMENT_PLAN,
    STATEMENT_PLAN_ROSTER,
    STATEMENT_PLAN_RESTARTS,
    STATEMENT_PLAN_WATERMARK,
    STATEMENT_WATERMARK_IS_WHOLE,
    STATEMENT_WATERMARK_SUM,
    STATEMENT_PLAN_CONSUMED,
    STATEMENT_PLAN_ENDS,
    STATEMENT_CONTROL,
    STATEMENT_WATERMARK,
    STATEMENT_CONSUMED,
    STATEMENT_CONSUMED_REPLACED,
    STATEMENT_STREAM,
    STATEMENT_END_OF_DATA,
    STATEMENT_CHECKPOINT,
    STATEMENT_DROP_CHECKPOINT,
    STATEMENT_LOST,
    STATEMENT_VERIFIED,
    STATEMENT_PLAN_VERIFIED,
    STATEMENT_DONE,
    STATEMENT_TASK_EXIT,
    STATEMENT_ENDING,
    STATEMENT_ENDED,
    STATEMENT_FORGET,
    STATEMENT_PUBLISHED,
    STATEMENT_DIVERGED,
    STATEMENT_CULPRIT,
    STATEMENT_CULPRIT_FORGOTTEN,
    STATEMENT_DRAINED,
    STATEMENT_UNDRAINED,
    STATEMENT_EVENT,
    STATEMENT_EVENT_LAST,
    STATEMENT_EVENTS_DROPPED,
    STATEMENT_SHARED_LOG,
    STATEMENT_CLUSTER,
    STATEMENT_COUNT
};

/* Of statements_each: a start runs seventeen for each job, and making them again would take a third
 * of its time. */
#define QUERIES_KEPT 24

struct kept_query {
    const char *sql;
    sqlite3_stmt *rows; /* NULL: it is in use */
};

struct statements {
    sqlite3 *database;
    sqlite3_stmt *prepared[STATEMENT_COUNT];
    struct kept_query queries[QUERIES_KEPT];
    char *path;   /* for messages; a copy, freed by close */
    bool loading; /* all rows were checked, and nothing was written since */
};

/* Of one member in a roster's blob: slot and incarnation, little endian. */
#define ROSTER_ENTRY_BYTES 12

/* Opens the file for this process alone, in WAL mode and synchronous=FULL. Half-opened statements
 * must be closed too. */
cadre_status statements_open(
    struct statements *statements, const char *path, struct cadre_error *error);
/* After the schema is in place. */
cadre_status statements_prepare(struct statements *statements, struct cadre_error *error);
/* Closes the database; accepts half-opened ones. */
void statements_close(struct statements *statements);

/* SQLite's last error as a status and a sentence that names the file; returns the status. */
cadre_status statements_fail(
    struct statements *statements, const char *doing, struct cadre_error *error);

/* `doing` is for the message, as in "store <path>: <doing>: <reason>". */
cadre_status statements_execute(
    struct statements *statements, const char *doing, const char *sql, struct cadre_error *error);
/* What was bound stays bound; both reset it for the next run. */
cadre_status statements_run(
    struct statements *statements, enum statement which, struct cadre_error *error);
/* One that must have changed exactly one row, of this job. */
cadre_status statements_run_one(struct statements *statements, enum statement which,
    struct job_id job, struct cadre_error *error);

/* Runs one of STATEMENT_*_IS_WHOLE before a row is changed in part, because its new checksum would
 * hide the damage. No row is fine. DATA_LOSS: `what` of the job is damaged. */
cadre_status statements_check_whole(struct statements *statements, enum statement which,
    struct job_id job, const char *what, struct cadre_error *error);

/* One that changes some columns of the ledger's own row. DATA_LOSS: it is damaged. */
cadre_status statements_update_meta(
    struct statements *statements, enum statement which, struct cadre_error *error);

/* Syncs everything that was committed to the disk. */
cadre_status statements_sync(struct statements *statements, struct cadre_error *error);

/* Each row of a query whose one parameter is a job; the visitor's failure ends it. `sql` is a
 * literal. */
cadre_status statements_each(struct statements *statements, const char *doing, const char *sql,
    struct job_id job,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error);

/* The same for one with these values as its parameters, as many as it has; the first is a job. */
cadre_status statements_each_of(struct statements *statements, const char *doing, const char *sql,
    const uint64_t *values,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error);

/* The same as statements_each() for a query that runs once; `sql` is borrowed. */
cadre_status statements_each_once(struct statements *statements, const char *doing, const char *sql,
    struct job_id job,
    cadre_status (*visit)(void *user, sqlite3_stmt *row, struct cadre_error *error), void *user,
    struct cadre_error *error);

/* ---- checksums ---- */

/* Registers row_sum() for SQL; returns SQLite's code. */
int checksum_register(sqlite3 *database);

#define DAMAGE_BYTES 256

/* Of one job: what its damaged rows recorded. */
struct damage {
    struct job_id job;
    char what[DAMAGE_BYTES];
};

struct damages {
    struct damage *items;
    size_t count;
};

/* DATA_LOSS, of the whole file. */
cadre_status statements_damaged(
    const struct statements *statements, const char *what, struct cadre_error *error);
/* Every page of the file. DATA_LOSS. */
cadre_status check_pages(struct statements *statements, struct cadre_error *error);
/* Every row: jobs with damaged ones are added to `damages`. */
cadre_status check_rows(
    struct statements *statements, struct damages *damages, struct cadre_error *error);
/* The rows of a job in these tables (ended by NULL), and its own. DATA_LOSS. */
cadre_status check_job_rows(struct statements *statements, struct job_id job,
    const char *const *tables, struct cadre_error *error);
/* The items; the struct is the caller's. */
void damages_free(struct damages *damages);
/* NULL: the job's rows are whole. */
const struct damage *damages_find(const struct damages *damages, struct job_id job);

/* ---- binding and reading ---- */

static inline void bind_u64(sqlite3_stmt *statement, int column, uint64_t value)
{
    sqlite3_bind_int64(statement, column, (sqlite3_int64)value);
}

static inline void bind_blob(sqlite3_stmt *statement, int column, const void *bytes, size_t size)
{
    sqlite3_bind_blob64(statement, column, size > 0 ? bytes : "", size, SQLITE_STATIC);
}

static inline void bind_text(sqlite3_stmt *statement, int column, const char *text)
{
    sqlite3_bind_text(statement, column, text, -1, SQLITE_STATIC);
}

static inline uint64_t column_u64(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static inline uint32_t column_u32(sqlite3_stmt *statement, int column)
{
    return (uint32_t)sqlite3_column_int64(statement, column);
}

static inline const char *column_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

static inline void column_text_into(
    sqlite3_stmt *statement, int column, char *ret_text, size_t size)
{
    sqlite3_snprintf((int)size, ret_text, "%s", column_text(statement, column));
}

/* ---- schema ---- */

/* Makes the tables in a new file (with `fresh` as its secret), checks the version of an old one and
 * brings it to this one. */
cadre_status schema_open(struct statements *statements, const uint8_t fresh[STORE_SECRET_BYTES],
    uint8_t ret_secret[STORE_SECRET_BYTES], struct cadre_error *error);

/* Tables that are new in version 2: a new file and the migration from version 1 make the same. */
extern const char schema_of_version_2[];
extern const char schema_of_version_3[];
extern const char schema_of_version_4[];
extern const char schema_of_version_5[];
extern const char schema_of_version_6[];
extern const char schema_of_version_7[];
extern const char schema_of_version_8[];

/* The cluster's number and every checksum, of a ledger that has none yet. */
cadre_status schema_fill_sums(struct statements *statements, struct cadre_error *error);
/* Those that changed in version 6, of a ledger whose own are whole; version 7 is next. */
cadre_status schema_fill_version_6(struct statements *statements, struct cadre_error *error);
/* Those of the events; version 8 is next. */
cadre_status schema_fill_version_7(struct statements *statements, struct cadre_error *error);
/* Those of the row about the shared log, and of the ledger's own row. */
cadre_status schema_fill_version_8(struct statements *statements, struct cadre_error *error);

/* One transaction; `version` is lower than STORE_VERSION. */
cadre_status migrate(struct statements *statements, int version, struct cadre_error *error);

/* ---- records and rows ---- */

/* One record, inside the caller's transaction. */
cadre_status statements_write(
    struct statements *statements, const struct store_record *record, struct cadre_error *error);

/* Damage of a job goes to `visit`; DATA_LOSS: the whole file is damaged. */
cadre_status statements_check(struct statements *statements,
    void (*visit)(void *user, struct job_id job, const char *what), void *user,
    struct cadre_error *error);

/* sqlite_history.c: an event of a job, likewise. */
cadre_status statements_write_event(struct statements *statements, struct job_id job,
    const struct history_event *event, struct cadre_error *error);
/* As store_ops.history. */
cadre_status statements_history(struct statements *statements, struct job_id job, uint64_t after,
    size_t max, void (*visit)(void *user, const struct history_event *event), void *user,
    uint64_t *ret_last, struct cadre_error *error);
/* The job exists, and its rows in these tables (ended by NULL) are whole. NOT_FOUND, DATA_LOSS. */
cadre_status statements_find_whole(struct statements *statements, struct job_id job,
    const char *const *tables, struct cadre_error *error);

/* As store_ops.load. */
cadre_status statements_load(struct statements *statements,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error);
/* As store_ops.task_exits. */
cadre_status statements_task_exits(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error);
/* As store_ops.ledger. */
cadre_status statements_ledger(struct statements *statements, struct job_id job,
    const struct store_walk *walk, struct cadre_error *error);
/* As store_ops.checkpoints. */
cadre_status statements_checkpoints(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error);
/* The ledger's own row. */
struct ledger_facts {
    uint64_t job_id_max;
    uint64_t cluster;
    uint64_t starts;
};
/* As store_ops.culprits. */
cadre_status statements_culprits(struct statements *statements,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error);
/* As store_ops.drains. */
cadre_status statements_drains(struct statements *statements,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error);
/* Reads the ledger's own row. */
cadre_status statements_facts(
    struct statements *statements, struct ledger_facts *ret_facts, struct cadre_error *error);

/* ---- a shared log: sqlite_log.c, sqlite_copy.c ---- */

/* The row about the log, without the secret. DATA_LOSS: it is damaged. */
cadre_status statements_read_log(
    struct statements *statements, struct log_copy *ret_copy, struct cadre_error *error);
/* Replaces it, inside the caller's transaction. */
cadre_status statements_write_log(
    struct statements *statements, const struct log_copy *copy, struct cadre_error *error);
/* The ledger's own row gets the cluster's number and secret, inside the caller's transaction. */
cadre_status statements_write_cluster(
    struct statements *statements, const struct store_cluster *cluster, struct cadre_error *error);
/* As store_sqlite_copy(). */
cadre_status statements_copy(
    struct statements *statements, const char *path, struct cadre_error *error);
/* As store_sqlite_copy_begin(). */
cadre_status statements_copy_begin(struct statements *statements, const char *path,
    struct store_copy **ret_copy, struct cadre_error *error);

/* A checkpoint in the columns from `column` on: CHECKPOINT_COLUMNS. */
void column_checkpoint(sqlite3_stmt *statement, int column, struct core_checkpoint *ret_checkpoint);

#endif
