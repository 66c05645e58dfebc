/* SPDX-License-Identifier: Apache-2.0
 * The tables, their version, and what other files are recognised. The names and types are fixed:
 * the checksum of the list of tables covers them. */
#include "coordinator/store/sqlite_statements.h"
#include "coordinator/store/sqlite_tables.h"

#include <string.h>

/* Of every table except the job's own: records of an unknown job are refused, and they are removed
 * with the job. */
#define JOB_COLUMN "job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE, "
#define JOB_KEY    "job INTEGER PRIMARY KEY REFERENCES job(id) ON DELETE CASCADE, "

#define CHECKPOINT_DEFINITIONS                                                                     \
    "  position INTEGER NOT NULL, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"                \
    "  shared INTEGER NOT NULL, path TEXT NOT NULL, manifest_bytes INTEGER NOT NULL,"              \
    "  manifest_sha256 BLOB NOT NULL"

static const char schema[] =
    "CREATE TABLE meta("
    "  version INTEGER NOT NULL, secret BLOB NOT NULL, job_id_max INTEGER NOT NULL);"
    "CREATE TABLE job("
    "  id INTEGER PRIMARY KEY, spec BLOB NOT NULL, tasks INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL, submitted_us INTEGER NOT NULL,"
    "  started_us INTEGER NOT NULL DEFAULT 0, ended_us INTEGER NOT NULL DEFAULT 0,"
    "  incarnation_max INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL DEFAULT 1,"
    "  code INTEGER NOT NULL DEFAULT 0, exit_code INTEGER NOT NULL DEFAULT 0,"
    "  text TEXT NOT NULL DEFAULT '', tasks_min INTEGER NOT NULL DEFAULT 1,"
    "  max_restarts INTEGER NOT NULL DEFAULT 0, wait_us INTEGER NOT NULL DEFAULT 0,"
    "  stall_us INTEGER NOT NULL DEFAULT 0, restarts INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE plan(" JOB_COLUMN
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, parent_number INTEGER NOT NULL,"
    "  parent_nonce INTEGER NOT NULL, resume INTEGER NOT NULL,"
    "  restarted INTEGER NOT NULL DEFAULT 0, members INTEGER NOT NULL DEFAULT 0,"
    "  planned_us INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(job, number)) WITHOUT ROWID;"
    /* `start` is where the run begins: its name in the model is a word of SQL. */
    "CREATE TABLE watermark(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, up_to INTEGER NOT NULL,"
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL, start INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE end_of_data(" JOB_COLUMN
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL, start INTEGER NOT NULL DEFAULT 0,"
    "  PRIMARY KEY(job, stream, epoch)) WITHOUT ROWID;"
    "CREATE TABLE done(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, position INTEGER NOT NULL);"
    "CREATE TABLE task_exit(" JOB_COLUMN
    "  slot INTEGER NOT NULL, incarnation INTEGER NOT NULL, state INTEGER NOT NULL,"
    "  code INTEGER NOT NULL, signal INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot, incarnation)) WITHOUT ROWID;";

const char schema_of_version_2[] =
    "CREATE TABLE origin(" JOB_KEY CHECKPOINT_DEFINITIONS ");"
    "CREATE TABLE checkpoint(" JOB_COLUMN CHECKPOINT_DEFINITIONS
    ", PRIMARY KEY(job, position)) WITHOUT ROWID;"
    "CREATE TABLE task(" JOB_COLUMN
    "  slot INTEGER NOT NULL, incarnation INTEGER NOT NULL, worker TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot)) WITHOUT ROWID;"
    /* Of the newest plan: rank after rank, slot (4 bytes) and incarnation (8), little endian. */
    "CREATE TABLE roster(" JOB_KEY "members BLOB NOT NULL);"
    "CREATE TABLE control(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, halt_at INTEGER NOT NULL,"
    "  halt_kind INTEGER NOT NULL, halt_stream INTEGER NOT NULL);"
    "CREATE TABLE stream(" JOB_COLUMN
    "  stream INTEGER NOT NULL, name TEXT NOT NULL, samples INTEGER NOT NULL,"
    "  shares INTEGER NOT NULL, PRIMARY KEY(job, stream)) WITHOUT ROWID;"
    /* Each run of an epoch: a plan may cut the newest one off. `provable`: 1 or 0, and above that
     * bit enum consumed_files. */
    "CREATE TABLE feed(" JOB_COLUMN
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER NOT NULL,"
    "  first INTEGER NOT NULL, epoch_steps INTEGER NOT NULL, steps INTEGER NOT NULL,"
    "  samples INTEGER NOT NULL, fed_0 INTEGER NOT NULL, fed_1 INTEGER NOT NULL,"
    "  expected_0 INTEGER NOT NULL, expected_1 INTEGER NOT NULL, provable INTEGER NOT NULL,"
    "  PRIMARY KEY(job, stream, epoch, start)) WITHOUT ROWID;"
    "CREATE TABLE ending(" JOB_KEY
    "  state INTEGER NOT NULL, code INTEGER NOT NULL, exit_code INTEGER NOT NULL,"
    "  text TEXT NOT NULL, committed INTEGER NOT NULL);";

const char schema_of_version_3[] =
    "ALTER TABLE task ADD COLUMN lives INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE task ADD COLUMN lives_in INTEGER NOT NULL DEFAULT 1;";

const char schema_of_version_4[] =
    "ALTER TABLE job ADD COLUMN first_us INTEGER NOT NULL DEFAULT 0;";

/* The cluster's number and how many coordinators were started on the ledger. The workers that
 * clients have drained. Checksums: of each row, and, in `meta`, of the list of the tables. */
#define ADD_SUM(table) "ALTER TABLE " table " ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;"
const char schema_of_version_5[] =
    /* From which copy a parameter server's variables may be taken; no row: from none. */
    "CREATE TABLE backed(" JOB_COLUMN
    "  slot INTEGER NOT NULL, number INTEGER NOT NULL, backed_by INTEGER NOT NULL,"
    "  sum INTEGER NOT NULL, PRIMARY KEY(job, slot)) WITHOUT ROWID;"
    /* The newest of a job's checkpoints that was found damaged, and is not kept any more. */
    "CREATE TABLE lost(" JOB_KEY
    "  position INTEGER NOT NULL, why TEXT NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE drain("
    "  worker TEXT PRIMARY KEY NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL,"
    "  sum INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
    "ALTER TABLE meta ADD COLUMN schema_sum INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE meta ADD COLUMN cluster INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE meta ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;" ADD_SUM("meta") ADD_SUM("job")
        ADD_SUM("plan") ADD_SUM("watermark") ADD_SUM("end_of_data") ADD_SUM("done")
            ADD_SUM("task_exit") ADD_SUM("origin") ADD_SUM("checkpoint") ADD_SUM("task")
                ADD_SUM("roster") ADD_SUM("control") ADD_SUM("stream") ADD_SUM("feed")
                    ADD_SUM("ending");

/* The states that were found equal: with each checkpoint, and each position of a job. */
const char schema_of_version_6[] =
    "ALTER TABLE origin ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE checkpoint ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE verified(" JOB_COLUMN
    "  position INTEGER NOT NULL, digest INTEGER NOT NULL, sum INTEGER NOT NULL,"
    "  PRIMARY KEY(job, position)) WITHOUT ROWID;"
    /* Which checkpoint members of a generation were notified of, as of the newest that was lost. */
    "CREATE TABLE published(" JOB_KEY
    "  number INTEGER NOT NULL, position INTEGER NOT NULL, sum INTEGER NOT NULL);"
    /* Where they differed last; and on which workers, how often. */
    "CREATE TABLE diverged(" JOB_KEY
    "  number INTEGER NOT NULL, position INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE culprit("
    "  worker TEXT PRIMARY KEY NOT NULL, times INTEGER NOT NULL, sum INTEGER NOT NULL)"
    "  WITHOUT ROWID;";

/* The history of each job. `task` is -1 where the event is of no task. */
const char schema_of_version_7[] =
    "CREATE TABLE event(" JOB_COLUMN
    "  number INTEGER NOT NULL, time_us INTEGER NOT NULL, kind INTEGER NOT NULL,"
    "  generation INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0,"
    "  task INTEGER NOT NULL DEFAULT -1, incarnation INTEGER NOT NULL DEFAULT 0,"
    "  tasks INTEGER NOT NULL DEFAULT 0, undone INTEGER NOT NULL DEFAULT 0,"
    "  restarted INTEGER NOT NULL DEFAULT 0, waited_us INTEGER NOT NULL DEFAULT 0,"
    "  exit_code INTEGER NOT NULL DEFAULT 0, exit_signal INTEGER NOT NULL DEFAULT 0,"
    "  state INTEGER NOT NULL DEFAULT 0, code INTEGER NOT NULL DEFAULT 0,"
    "  worker TEXT NOT NULL DEFAULT '', roster TEXT NOT NULL DEFAULT '',"
    "  text TEXT NOT NULL DEFAULT '', sum INTEGER NOT NULL DEFAULT 0,"
    "  PRIMARY KEY(job, number)) WITHOUT ROWID;";

/* One row: what the store remembers of the log that coordinators share, of which it is a copy. */
const char schema_of_version_8[] =
    "CREATE TABLE shared_log("
    "  one INTEGER PRIMARY KEY, id_high INTEGER NOT NULL, id_low INTEGER NOT NULL,"
    "  etcd_id INTEGER NOT NULL, term_seen INTEGER NOT NULL, hash BLOB NOT NULL,"
    "  applied INTEGER NOT NULL, applied_term INTEGER NOT NULL, applied_hash BLOB NOT NULL,"
    "  sum INTEGER NOT NULL DEFAULT 0);"
    "INSERT INTO shared_log VALUES(1, 0, 0, 0, 0, zeroblob(32), 0, 0, zeroblob(32), 0);";

#define SCHEMA_SUM                                                                                 \
    "(SELECT row_sum(group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || sql))"          \
    " FROM (SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name))"
#define FILL_META_SUMS                                                                             \
    "UPDATE meta SET schema_sum = " SCHEMA_SUM "; UPDATE meta SET sum = " META_SUM

cadre_status schema_fill_sums(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "fill in its checksums";
    for (size_t i = 0; i < LEDGER_TABLE_COUNT; i++) {
        const struct ledger_table *table = &ledger_tables[i];
        char *sql = sqlite3_mprintf(
            "UPDATE %s SET sum = row_sum(%Q, job, %s)", table->name, table->name, table->columns);
        if (sql == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the checksums of the store %s", statements->path);
        }
        cadre_status status = statements_execute(statements, doing, sql, error);
        sqlite3_free(sql);
        CADRE_TRY(status);
    }
    return statements_execute(statements, doing,
        "UPDATE job SET sum = " JOB_SUM ";"
        "UPDATE shared_log SET sum = " SHARED_LOG_SUM ";"
        "UPDATE meta SET cluster = random() | 1; " FILL_META_SUMS,
        error);
}

/* A row that is damaged stays so. */
#define CHECKPOINT_COLUMNS_OF_5                                                                    \
    "position, number, nonce, shared, path, manifest_bytes, manifest_sha256"
#define FILL_CHECKPOINT_SUMS(table)                                                                \
    "UPDATE " table " SET sum = " SUM_OF(table, CHECKPOINT_COLUMNS) " WHERE sum IS " SUM_OF(       \
        table, CHECKPOINT_COLUMNS_OF_5) ";"

cadre_status schema_fill_version_6(struct statements *statements, struct cadre_error *error)
{
    return statements_execute(statements, "fill in its checksums",
        FILL_CHECKPOINT_SUMS("origin") FILL_CHECKPOINT_SUMS("checkpoint"), error);
}

cadre_status schema_fill_version_7(struct statements *statements, struct cadre_error *error)
{
    return statements_execute(statements, "fill in its checksums",
        "UPDATE event SET sum = " SUM_OF("event", EVENT_COLUMNS) ";", error);
}

cadre_status schema_fill_version_8(struct statements *statements, struct cadre_error *error)
{
    return statements_execute(statements, "fill in its checksums",
        "UPDATE shared_log SET sum = " SHARED_LOG_SUM ";" FILL_META_SUMS, error);
}

cadre_status statements_update_meta(
    struct statements *statements, enum statement which, struct cadre_error *error)
{
    sqlite3_stmt *is_whole = statements->prepared[STATEMENT_META_IS_WHOLE];
    bool whole = sqlite3_step(is_whole) == SQLITE_ROW && sqlite3_column_int(is_whole, 0) != 0;
    sqlite3_reset(is_whole);
    if (!whole) {
        return statements_damaged(statements, "its secret and the numbers of its jobs", error);
    }
    CADRE_TRY(statements_run(statements, which, error));
    return statements_run(statements, STATEMENT_META_SUM, error);
}

static cadre_status sqlite_schema_create(struct statements *statements,
    const uint8_t fresh[STORE_SECRET_BYTES], struct cadre_error *error)
{
    CADRE_TRY(statements_execute(statements, "make its tables", "BEGIN IMMEDIATE", error));
    static const char *const schemas[] = {schema, schema_of_version_2, schema_of_version_3,
        schema_of_version_4, schema_of_version_5, schema_of_version_6, schema_of_version_7,
        schema_of_version_8};
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        CADRE_TRY(statements_execute(statements, "make its tables", schemas[i], error));
    }
    sqlite3_stmt *insert = NULL;
    if (sqlite3_prepare_v2(statements->database,
            "INSERT INTO meta(version, secret, job_id_max) VALUES(?1, ?2, 0)", -1, &insert,
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
    CADRE_TRY(schema_fill_sums(statements, error));
    return statements_execute(statements, "make its tables", "COMMIT", error);
}

#define VERSION_OF_SUMS 5

static cadre_status check_meta(struct statements *statements, sqlite3_stmt *row, int *ret_version,
    uint8_t ret_secret[STORE_SECRET_BYTES], struct cadre_error *error)
{
    *ret_version = sqlite3_column_int(row, 0);
    if (*ret_version < 1 || *ret_version > STORE_VERSION) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the store %s has version %d and this program reads versions 1 to %d: use the program "
            "that made it, or another --state-dir",
            statements->path, *ret_version, STORE_VERSION);
    }
    bool summed = sqlite3_column_count(row) > 2;
    if (summed != (*ret_version >= VERSION_OF_SUMS) ||
        (summed && sqlite3_column_int(row, 2) == 0)) {
        return statements_damaged(statements,
            "its version, its secret, the numbers of its jobs or the list of its tables", error);
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

static cadre_status read_meta(struct statements *statements, int *ret_version,
    uint8_t ret_secret[STORE_SECRET_BYTES], struct cadre_error *error)
{
    static const char summed[] =
        "SELECT version, secret, sum IS " META_SUM " AND schema_sum IS " SCHEMA_SUM " FROM meta";
    static const char older[] = "SELECT version, secret FROM meta";
    sqlite3_stmt *row = NULL;
    sqlite3 *database = statements->database;
    cadre_status status;
    bool known = sqlite3_prepare_v2(database, summed, -1, &row, NULL) == SQLITE_OK ||
                 sqlite3_prepare_v2(database, older, -1, &row, NULL) == SQLITE_OK;
    if (!known || sqlite3_step(row) != SQLITE_ROW) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "the store %s does not give its version (%s): it is damaged, or no ledger of Cadre",
            statements->path, sqlite3_errmsg(statements->database));
    } else {
        status = check_meta(statements, row, ret_version, ret_secret, error);
    }
    sqlite3_finalize(row);
    return status;
}

cadre_status schema_open(struct statements *statements, const uint8_t fresh[STORE_SECRET_BYTES],
    uint8_t ret_secret[STORE_SECRET_BYTES], struct cadre_error *error)
{
    int tables = 0;
    int meta = 0;
    int version = 0;
    CADRE_TRY(count_tables(statements, &tables, &meta, error));
    if (tables == 0) {
        CADRE_TRY(sqlite_schema_create(statements, fresh, error));
        memcpy(ret_secret, fresh, STORE_SECRET_BYTES);
        return CADRE_OK;
    }
    if (meta == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is a database of another program: choose another --state-dir", statements->path);
    }
    CADRE_TRY(read_meta(statements, &version, ret_secret, error));
    CADRE_TRY(check_pages(statements, error));
    return version < STORE_VERSION ? migrate(statements, version, error) : CADRE_OK;
}
