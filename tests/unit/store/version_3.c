/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/version_3.h"

#include <sqlite3.h>
#include <stdio.h>

#include "tests/lib/test.h"

#define JOB_COLUMN "job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE, "
#define JOB_KEY    "job INTEGER PRIMARY KEY REFERENCES job(id) ON DELETE CASCADE, "

#define CHECKPOINT_DEFINITIONS                                                                     \
    "  position INTEGER NOT NULL, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"                \
    "  shared INTEGER NOT NULL, path TEXT NOT NULL, manifest_bytes INTEGER NOT NULL,"              \
    "  manifest_sha256 BLOB NOT NULL"

/* As version 3 wrote it, to the letter; in two parts, for compilers' limit of a string. */
static const char version_3_jobs[] =
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

static const char version_3_placements[] =
    "CREATE TABLE origin(" JOB_KEY CHECKPOINT_DEFINITIONS ");"
    "CREATE TABLE checkpoint(" JOB_COLUMN CHECKPOINT_DEFINITIONS
    ", PRIMARY KEY(job, position)) WITHOUT ROWID;"
    "CREATE TABLE task(" JOB_COLUMN
    "  slot INTEGER NOT NULL, incarnation INTEGER NOT NULL, worker TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot)) WITHOUT ROWID;"
    /* Of the newest plan: rank after rank, slot (4 bytes) and incarnation (8), little end first. */
    "CREATE TABLE roster(" JOB_KEY "members BLOB NOT NULL);"
    "CREATE TABLE control(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, halt_at INTEGER NOT NULL,"
    "  halt_kind INTEGER NOT NULL, halt_stream INTEGER NOT NULL);"
    "CREATE TABLE stream(" JOB_COLUMN
    "  stream INTEGER NOT NULL, name TEXT NOT NULL, samples INTEGER NOT NULL,"
    "  shares INTEGER NOT NULL, PRIMARY KEY(job, stream)) WITHOUT ROWID;"
    /* Each run of an epoch: a plan may cut the newest one off. `provable`: 1 or 0, and above that
     * bit what its files say (enum consumed_files). */
    "CREATE TABLE feed(" JOB_COLUMN
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER NOT NULL,"
    "  first INTEGER NOT NULL, epoch_steps INTEGER NOT NULL, steps INTEGER NOT NULL,"
    "  samples INTEGER NOT NULL, fed_0 INTEGER NOT NULL, fed_1 INTEGER NOT NULL,"
    "  expected_0 INTEGER NOT NULL, expected_1 INTEGER NOT NULL, provable INTEGER NOT NULL,"
    "  PRIMARY KEY(job, stream, epoch, start)) WITHOUT ROWID;"
    "CREATE TABLE ending(" JOB_KEY
    "  state INTEGER NOT NULL, code INTEGER NOT NULL, exit_code INTEGER NOT NULL,"
    "  text TEXT NOT NULL, committed INTEGER NOT NULL);"
    "ALTER TABLE task ADD COLUMN lives INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE task ADD COLUMN lives_in INTEGER NOT NULL DEFAULT 1;";

/* What came later is left out. */
#define COPY(table, columns) "INSERT INTO " table " SELECT job, " columns " FROM newer." table ";"

#define SAVED_COLUMNS "position, number, nonce, shared, path, manifest_bytes, manifest_sha256"
static const char copy[] =
    "INSERT INTO meta SELECT 3, secret, job_id_max FROM newer.meta;"
    "INSERT INTO job SELECT id, spec, tasks, priority, submitted_us, started_us, ended_us,"
    " incarnation_max, state, code, exit_code, text, tasks_min, max_restarts, wait_us, stall_us,"
    " restarts FROM newer.job;" COPY("plan",
        "number, nonce, parent_number, parent_nonce, resume, restarted, members, planned_us")
        COPY("watermark", "number, nonce, up_to, stream, epoch, first, steps, start")
            COPY("end_of_data", "stream, epoch, first, steps, start")
                COPY("done", "number, nonce, position")
                    COPY("task_exit", "slot, incarnation, state, code, signal, text")
                        COPY("origin", SAVED_COLUMNS) COPY("checkpoint", SAVED_COLUMNS) COPY("task",
                            "slot, incarnation, worker, lives, lives_in") COPY("roster", "members")
                            COPY("control", "number, nonce, halt_at, halt_kind, halt_stream")
                                COPY("stream", "stream, name, samples, shares")
                                    COPY("feed", "stream, epoch, start, first, epoch_steps, steps,"
                                                 " samples, fed_0, fed_1, expected_0, expected_1,"
                                                 " provable")
                                        COPY("ending", "state, code, exit_code, text, committed");

static void execute(sqlite3 *database, const char *sql)
{
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

void version_3_make(const char *path, const char *newer)
{
    char attach[TEST_PATH_BYTES + 32];
    sqlite3 *database = NULL;
    snprintf(attach, sizeof attach, "ATTACH '%s' AS newer", newer);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    execute(database, version_3_jobs);
    execute(database, version_3_placements);
    execute(database, attach);
    execute(database, copy);
    sqlite3_close(database);
}
