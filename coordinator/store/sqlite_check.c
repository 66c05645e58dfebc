/* SPDX-License-Identifier: Apache-2.0
 * Whether the file still holds what was written into it. Damage to its pages or to the list of its
 * tables concerns all jobs: the file is refused. Damage to a row concerns its job, which is named.
 * sqlite.c and sqlite_load.c call it. */
#include "coordinator/store/sqlite_statements.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "coordinator/store/sqlite_tables.h"

const struct ledger_table ledger_tables[LEDGER_TABLE_COUNT] = {
    {"plan", PLAN_COLUMNS, "its generations", "'generation ' || number"},
    {"watermark", WATERMARK_COLUMNS, "which steps were released", NULL},
    {"end_of_data", END_OF_DATA_COLUMNS, "where its data end",
        "'dataset ' || stream || ', epoch ' || epoch"},
    {"done", DONE_COLUMNS, "at which step it was done", NULL},
    {"task_exit", TASK_EXIT_COLUMNS, "how its tasks ended", "'task ' || slot"},
    {"origin", CHECKPOINT_COLUMNS, "the checkpoint that it goes on from", NULL},
    {"checkpoint", CHECKPOINT_COLUMNS, "its checkpoints", "'step ' || position"},
    {"lost", LOST_COLUMNS, "which checkpoint of it was damaged", NULL},
    {"verified", VERIFIED_COLUMNS, "which of its states were found equal", "'step ' || position"},
    {"published", PUBLISHED_COLUMNS, "which checkpoints its tasks got notice of", NULL},
    {"diverged", DIVERGED_COLUMNS, "where its states differed last", NULL},
    {"task", TASK_COLUMNS, "where its tasks were placed", "'task ' || slot"},
    {"backed", BACKED_COLUMNS, "which copies of its parameter servers count", "'task ' || slot"},
    {"roster", ROSTER_COLUMNS, "who its members are", NULL},
    {"control", CONTROL_COLUMNS, "at which step it halts", NULL},
    {"stream", STREAM_COLUMNS, "its datasets", "'dataset ' || stream"},
    {"feed", CONSUMED_COLUMNS, "which samples it consumed",
        "'dataset ' || stream || ', epoch ' || epoch"},
    {"ending", ENDING_COLUMNS, "how it was being ended", NULL},
    {"event", EVENT_COLUMNS, "its history", "'event ' || number"}};

cadre_status statements_damaged(
    const struct statements *statements, const char *what, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "the store %s is damaged (%s): put a copy of the state directory back, or choose another "
        "--state-dir",
        statements->path, what);
}

/* ---- all of the file ---- */

/* The first of SQLite's findings in the pages of one table, or of all. */
static cadre_status check_pages_of(
    struct statements *statements, const char *table, bool *ret_good, struct cadre_error *error)
{
    char *sql = table != NULL ? sqlite3_mprintf("PRAGMA quick_check(%Q)", table)
                              : sqlite3_mprintf("PRAGMA quick_check(1)");
    sqlite3_stmt *row = NULL;
    *ret_good = false;
    if (sql == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to check the store %s", statements->path);
    }
    int result = sqlite3_prepare_v2(statements->database, sql, -1, &row, NULL);
    sqlite3_free(sql);
    result = result == SQLITE_OK ? sqlite3_step(row) : result;
    cadre_status status = CADRE_OK;
    if (result == SQLITE_ROW) {
        *ret_good = strcmp(column_text(row, 0), "ok") == 0;
    } else if ((result & 0xff) != SQLITE_CORRUPT) {
        status = statements_fail(statements, "check its pages", error);
    }
    sqlite3_finalize(row);
    return status;
}

/* Page damage is reported by the meaning of its tables. */
static cadre_status name_bad_pages(struct statements *statements, struct cadre_error *error)
{
    char what[LIMIT_TEXT_BYTES] = "";
    size_t length = 0;
    for (size_t i = 0; i < LEDGER_TABLE_COUNT; i++) {
        bool good = false;
        CADRE_TRY(check_pages_of(statements, ledger_tables[i].name, &good, error));
        if (!good && length < sizeof what) {
            length += (size_t)snprintf(what + length, sizeof what - length, "%s%s",
                length > 0 ? ", " : "pages that record of jobs ", ledger_tables[i].meaning);
        }
    }
    return statements_damaged(
        statements, length > 0 ? what : "pages that list its jobs, or its free pages", error);
}

cadre_status check_pages(struct statements *statements, struct cadre_error *error)
{
    bool good = false;
    CADRE_TRY(check_pages_of(statements, NULL, &good, error));
    return good ? CADRE_OK : name_bad_pages(statements, error);
}

/* ---- rows ---- */

void damages_free(struct damages *damages)
{
    free(damages->items);
    *damages = (struct damages){0};
}

const struct damage *damages_find(const struct damages *damages, struct job_id job)
{
    for (size_t i = 0; i < damages->count; i++) {
        if (damages->items[i].job.n == job.n) {
            return &damages->items[i];
        }
    }
    return NULL;
}

static cadre_status add_damage(
    struct damages *damages, uint64_t job, const char *what, struct cadre_error *error)
{
    struct damage *known = (struct damage *)(uintptr_t)damages_find(damages, (struct job_id){job});
    if (known != NULL) {
        size_t length = strlen(known->what);
        snprintf(known->what + length, sizeof known->what - length, "; %s", what);
        return CADRE_OK;
    }
    struct damage *grown =
        fault_point("store.allocate")
            ? NULL
            : realloc(damages->items, (damages->count + 1) * sizeof *damages->items);
    if (grown == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to name damaged jobs");
    }
    damages->items = grown;
    struct damage *item = &damages->items[damages->count++];
    *item = (struct damage){.job.n = job};
    snprintf(item->what, sizeof item->what, "%s", what);
    return CADRE_OK;
}

struct row_check {
    const struct ledger_table *table;
    struct damages *damages;
};

/* The columns of select_damaged. */
static cadre_status take_damaged(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    const struct row_check *check = user;
    char what[DAMAGE_BYTES];
    const char *which = column_text(row, 2);
    snprintf(what, sizeof what, "%s%s%s%s", check->table->meaning, which[0] != '\0' ? " (" : "",
        which, which[0] != '\0' ? ")" : "");
    CADRE_TRY(add_damage(check->damages, column_u64(row, 0), what, error));
    if (sqlite3_column_type(row, 1) != SQLITE_NULL && column_u64(row, 1) != column_u64(row, 0)) {
        return add_damage(check->damages, column_u64(row, 1), what, error);
    }
    return CADRE_OK;
}

/* If a row's checksum fits another job, the damage is in the row's key: both jobs are named. */
static char *select_damaged(const struct ledger_table *table, const char *condition)
{
    return sqlite3_mprintf("SELECT job, (SELECT owner FROM (SELECT id AS owner FROM job)"
                           "  WHERE row_sum(%Q, owner, %s) = t.sum), %s"
                           " FROM %s t WHERE sum IS NOT row_sum(%Q, job, %s)%s",
        table->name, table->columns, table->which != NULL ? table->which : "''", table->name,
        table->name, table->columns, condition);
}

static cadre_status check_table(struct statements *statements, const struct ledger_table *table,
    const char *condition, struct job_id job, struct damages *damages, struct cadre_error *error)
{
    struct row_check check = {.table = table, .damages = damages};
    char *sql = select_damaged(table, condition);
    if (sql == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to check the store %s", statements->path);
    }
    cadre_status status =
        statements_each_once(statements, "check its rows", sql, job, take_damaged, &check, error);
    sqlite3_free(sql);
    return status;
}

static cadre_status take_damaged_job(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    return add_damage(user, column_u64(row, 0), "its submission and how it ended", error);
}

static cadre_status refuse_moved_job(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    char what[DAMAGE_BYTES];
    snprintf(what, sizeof what, "job %" PRIu64 " is recorded as job %" PRIu64, column_u64(row, 1),
        column_u64(row, 0));
    return statements_damaged(user, what, error);
}

/* Rows of a job whose number is damaged look like rows of no job. */
static const char select_moved_jobs[] =
    "WITH RECURSIVE bits(bit) AS (SELECT 1 UNION ALL SELECT bit * 2 FROM bits LIMIT 63)"
    " SELECT id, (id | bit) - (id & bit) FROM job, bits WHERE sum IS NOT " JOB_SUM
    " AND sum = row_sum('job', (id | bit) - (id & bit), " JOB_COLUMNS ")";

/* A row whose damaged key is out of order hides whole rows from look-ups. */
static cadre_status refuse_disorder(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    const char *finding = column_text(row, 0);
    return strstr(finding, "order") != NULL ? statements_damaged(user, finding, error) : CADRE_OK;
}

static cadre_status check_order(struct statements *statements, struct cadre_error *error)
{
    return statements_each_once(statements, "check the order of its rows",
        "PRAGMA integrity_check(1000000)", (struct job_id){0}, refuse_disorder, statements, error);
}

static cadre_status find_damages(
    struct statements *statements, struct damages *damages, struct cadre_error *error)
{
    const struct job_id none = {0};
    CADRE_TRY(statements_each(statements, "check the numbers of jobs", select_moved_jobs, none,
        refuse_moved_job, statements, error));
    CADRE_TRY(statements_each(statements, "check the jobs",
        "SELECT id FROM job WHERE sum IS NOT " JOB_SUM, none, take_damaged_job, damages, error));
    for (size_t i = 0; i < LEDGER_TABLE_COUNT; i++) {
        CADRE_TRY(check_table(statements, &ledger_tables[i], "", none, damages, error));
    }
    return damages->count > 0 ? check_order(statements, error) : CADRE_OK;
}

cadre_status check_rows(
    struct statements *statements, struct damages *damages, struct cadre_error *error)
{
    cadre_status status = find_damages(statements, damages, error);
    if (status != CADRE_OK) {
        damages_free(damages);
    }
    return status;
}

cadre_status check_job_rows(struct statements *statements, struct job_id job,
    const char *const *tables, struct cadre_error *error)
{
    struct damages damages = {0};
    cadre_status status = statements_each(statements, "check a job",
        "SELECT id FROM job WHERE id = ?1 AND sum IS NOT " JOB_SUM, job, take_damaged_job, &damages,
        error);
    for (size_t i = 0; i < LEDGER_TABLE_COUNT && status == CADRE_OK; i++) {
        bool wanted = false;
        for (const char *const *name = tables; *name != NULL; name++) {
            wanted = wanted || strcmp(*name, ledger_tables[i].name) == 0;
        }
        if (wanted) {
            status =
                check_table(statements, &ledger_tables[i], " AND job = ?1", job, &damages, error);
        }
    }
    if (status == CADRE_OK && damages.count > 0) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "the ledger's record of job %" PRIu64 " is damaged: it lost %s", job.n,
            damages.items[0].what);
    }
    damages_free(&damages);
    return status;
}
