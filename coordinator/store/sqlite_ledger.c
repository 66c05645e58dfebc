/* SPDX-License-Identifier: Apache-2.0
 * Queries of one job: how its tasks ended, its ledger, its checkpoints. */
#include "coordinator/store/sqlite_statements.h"

#include <string.h>

#include "coordinator/store/sqlite_tables.h"

void column_checkpoint(sqlite3_stmt *statement, int column, struct core_checkpoint *ret_checkpoint)
{
    *ret_checkpoint = (struct core_checkpoint){.position = column_u64(statement, column),
        .generation = {.number = column_u64(statement, column + 1),
            .nonce = column_u64(statement, column + 2)},
        .shared = column_u64(statement, column + 3) != 0,
        .manifest_bytes = column_u64(statement, column + 5),
        .digest = column_u64(statement, column + 7)};
    column_text_into(statement, column + 4, ret_checkpoint->path, sizeof ret_checkpoint->path);
    const void *hash = sqlite3_column_blob(statement, column + 6);
    if (hash != NULL && sqlite3_column_bytes(statement, column + 6) == LIMIT_SHA256_BYTES) {
        memcpy(ret_checkpoint->manifest_sha256, hash, LIMIT_SHA256_BYTES);
    }
}

static cadre_status note_row(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)row;
    (void)error;
    *(bool *)user = true;
    return CADRE_OK;
}

static cadre_status find_job(
    struct statements *statements, struct job_id job, struct cadre_error *error)
{
    bool found = false;
    CADRE_TRY(statements_each(statements, "look for a job", "SELECT 1 FROM job WHERE id = ?1", job,
        note_row, &found, error));
    return found ? CADRE_OK
                 : cadre_error_set(error, CADRE_NOT_FOUND, "the store %s has no job %llu",
                       statements->path, (unsigned long long)job.n);
}

cadre_status statements_find_whole(struct statements *statements, struct job_id job,
    const char *const *tables, struct cadre_error *error)
{
    CADRE_TRY(find_job(statements, job, error));
    return statements->loading ? CADRE_OK : check_job_rows(statements, job, tables, error);
}

/* The callbacks of the one call that is under way. */
struct visitors {
    void (*exit)(void *user, const struct store_task_exit *exit);
    void (*checkpoint)(void *user, const struct core_checkpoint *checkpoint);
    void *user;
};

static cadre_status visit_exit(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    const struct visitors *visitors = user;
    struct store_task_exit exit = {.slot = column_u32(row, 0),
        .incarnation = column_u64(row, 1),
        .state = (enum task_state)sqlite3_column_int(row, 2),
        .exit = {.code = sqlite3_column_int(row, 3), .signal = sqlite3_column_int(row, 4)}};
    column_text_into(row, 5, exit.exit.text, sizeof exit.exit.text);
    visitors->exit(visitors->user, &exit);
    return CADRE_OK;
}

cadre_status statements_task_exits(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    struct visitors visitors = {.exit = visit, .user = user};
    static const char *const tables[] = {"task_exit", NULL};
    CADRE_TRY(statements_find_whole(statements, job, tables, error));
    return statements_each(statements, "read how tasks ended",
        "SELECT slot, max(incarnation), state, code, signal, text FROM task_exit WHERE job = ?1"
        " GROUP BY slot ORDER BY slot",
        job, visit_exit, &visitors, error);
}

/* ---- the rows that `cadre verify` walks ---- */

/* Rows are checked as they are read: the cost is that of the page, not of the job. */
struct ledger_reader {
    const struct store_walk *walk;
    void (*epoch_row)(void *user, const struct store_epoch *epoch);
    void (*verified_row)(void *user, const struct verified *verified);
    uint64_t damaged; /* damaged rows found so far; they are not visited */
};

static cadre_status visit_plan(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct ledger_reader *reader = user;
    reader->damaged += column_u64(row, 8);
    if (reader->damaged == 0) {
        reader->walk->plan_row(reader->walk->user,
            &(struct store_plan){
                .generation = {.number = column_u64(row, 0), .nonce = column_u64(row, 1)},
                .parent = {.number = column_u64(row, 2), .nonce = column_u64(row, 3)},
                .resume = column_u64(row, 4),
                .restarted = column_u64(row, 5) != 0,
                .members = column_u32(row, 6),
                .planned_us = column_u64(row, 7)});
    }
    return CADRE_OK;
}

static cadre_status visit_stream(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct ledger_reader *reader = user;
    reader->damaged += column_u64(row, 4);
    if (reader->damaged == 0) {
        reader->walk->stream_row(
            reader->walk->user, &(struct store_stream){.stream = column_u32(row, 0),
                                    .name = column_text(row, 1),
                                    .samples = column_u64(row, 2),
                                    .shares = column_u64(row, 3) != 0});
    }
    return CADRE_OK;
}

static cadre_status visit_epoch(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct ledger_reader *reader = user;
    reader->damaged += column_u64(row, 12);
    if (reader->damaged == 0) {
        reader->epoch_row(reader->walk->user,
            &(struct store_epoch){.cursor = {.stream = column_u32(row, 0),
                                      .epoch = column_u64(row, 1),
                                      .begin = column_u64(row, 2),
                                      .first = column_u64(row, 3),
                                      .steps = column_u64(row, 4)},
                .consumption = {.steps = column_u64(row, 5),
                    .samples = column_u64(row, 6),
                    .consumed = {column_u64(row, 7), column_u64(row, 8)},
                    .expected = {column_u64(row, 9), column_u64(row, 10)},
                    .provable = (column_u64(row, 11) & 1) != 0,
                    .files = (enum consumed_files)(column_u64(row, 11) >> 1 & 3)}});
    }
    return CADRE_OK;
}

#define IS_DAMAGED(name, columns) "sum IS NOT " SUM_OF(name, columns)

/* Of an epoch the run with the highest begin, and how many rows of it are damaged. */
#define EPOCH_ROW                                                                                  \
    "f.stream, f.epoch, max(f.start), f.first, coalesce(e.steps, f.epoch_steps), f.steps,"         \
    " f.samples, fed_0, fed_1, expected_0, expected_1, provable,"                                  \
    " sum(f.damaged) + coalesce(e.damaged, 0)"
#define CONSUMED_ROWS                                                                              \
    "(SELECT *, " IS_DAMAGED("feed", CONSUMED_COLUMNS) " AS damaged FROM feed WHERE job = ?1"
#define ENDS                                                                                       \
    " LEFT JOIN (SELECT *, " IS_DAMAGED(                                                           \
        "end_of_data", END_OF_DATA_COLUMNS) " AS damaged"                                          \
                                            "  FROM end_of_data WHERE job = ?1) e ON e.stream = "  \
                                            "f.stream AND e.epoch = f.epoch"

static cadre_status read_epochs(struct statements *statements, struct job_id job,
    struct ledger_reader *reader, struct cadre_error *error)
{
    const struct store_walk *walk = reader->walk;
    const uint64_t from[] = {
        job.n, walk->stream, walk->epoch, walk->epochs_max != 0 ? walk->epochs_max : UINT64_MAX};
    reader->epoch_row = walk->epoch_row;
    return statements_each_of(statements, "read the epochs of a job",
        "SELECT " EPOCH_ROW " FROM " CONSUMED_ROWS " AND (stream, epoch) >= (?2, ?3)) f" ENDS
        " GROUP BY f.stream, f.epoch ORDER BY f.stream, f.epoch LIMIT ?4",
        from, visit_epoch, reader, error);
}

/* One look-up for each possible stream, because there may be far more epochs. */
static cadre_status read_newest(struct statements *statements, struct job_id job,
    struct ledger_reader *reader, struct cadre_error *error)
{
    const uint64_t values[] = {job.n, LIMIT_STREAMS};
    reader->epoch_row = reader->walk->newest_row;
    return statements_each_of(statements, "read the newest epochs of a job",
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT ?2)"
        " SELECT " EPOCH_ROW " FROM numbers CROSS JOIN " CONSUMED_ROWS ") f" ENDS
        " WHERE f.stream = n"
        "  AND f.epoch = (SELECT max(epoch) FROM feed WHERE job = ?1 AND stream = n)"
        " GROUP BY f.stream, f.epoch ORDER BY f.stream",
        values, visit_epoch, reader, error);
}

/* ---- verified positions ---- */

#define VERIFIED_ROWS                                                                              \
    "SELECT position, digest, " IS_DAMAGED("verified", VERIFIED_COLUMNS) " FROM verified"          \
                                                                         " WHERE job = ?1"

static cadre_status visit_verified(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct ledger_reader *reader = user;
    reader->damaged += column_u64(row, 2);
    if (reader->damaged == 0) {
        reader->verified_row(reader->walk->user,
            &(struct verified){.position = column_u64(row, 0), .digest = column_u64(row, 1)});
    }
    return CADRE_OK;
}

static cadre_status read_verified(struct statements *statements, struct job_id job,
    struct ledger_reader *reader, struct cadre_error *error)
{
    const struct store_walk *walk = reader->walk;
    const uint64_t from[] = {
        job.n, walk->position, walk->verified_max != 0 ? walk->verified_max : UINT64_MAX};
    static const char doing[] = "read which states of a job were found equal";
    if (walk->verified_row != NULL) {
        reader->verified_row = walk->verified_row;
        CADRE_TRY(statements_each_of(statements, doing,
            VERIFIED_ROWS " AND position >= ?2 ORDER BY position LIMIT ?3", from, visit_verified,
            reader, error));
    }
    if (walk->newest_verified_row == NULL) {
        return CADRE_OK;
    }
    reader->verified_row = walk->newest_verified_row;
    return statements_each(statements, doing, VERIFIED_ROWS " ORDER BY position DESC LIMIT 1", job,
        visit_verified, reader, error);
}

/* ---- all ---- */

static cadre_status read_rows(struct statements *statements, struct job_id job,
    struct ledger_reader *reader, struct cadre_error *error)
{
    const struct store_walk *walk = reader->walk;
    const uint64_t from[] = {
        job.n, walk->generation, walk->plans_max != 0 ? walk->plans_max : UINT64_MAX};
    if (walk->plan_row != NULL) {
        CADRE_TRY(statements_each_of(statements, "read the generations of a job",
            "SELECT number, nonce, parent_number, parent_nonce, resume, restarted, members,"
            " planned_us, " IS_DAMAGED(
                "plan", PLAN_COLUMNS) " FROM plan"
                                      " WHERE job = ?1 AND number >= ?2 ORDER BY number LIMIT ?3",
            from, visit_plan, reader, error));
    }
    if (walk->stream_row != NULL) {
        CADRE_TRY(statements_each(statements, "read the datasets of a job",
            "SELECT stream, name, samples, shares, " IS_DAMAGED(
                "stream", STREAM_COLUMNS) " FROM stream WHERE job = ?1 ORDER BY stream",
            job, visit_stream, reader, error));
    }
    if (walk->epoch_row != NULL) {
        CADRE_TRY(read_epochs(statements, job, reader, error));
    }
    if (walk->newest_row != NULL) {
        CADRE_TRY(read_newest(statements, job, reader, error));
    }
    return read_verified(statements, job, reader, error);
}

cadre_status statements_ledger(struct statements *statements, struct job_id job,
    const struct store_walk *walk, struct cadre_error *error)
{
    static const char *const own[] = {NULL};
    static const char *const tables[] = {"plan", "stream", "feed", "end_of_data", "verified", NULL};
    struct ledger_reader reader = {.walk = walk};
    CADRE_TRY(statements_find_whole(statements, job, own, error));
    CADRE_TRY(read_rows(statements, job, &reader, error));
    if (reader.damaged == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(check_job_rows(statements, job, tables, error)); /* names what was lost */
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "the ledger's record of job %llu is damaged: a row of it was not as it was written",
        (unsigned long long)job.n);
}

static cadre_status visit_checkpoint(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    const struct visitors *visitors = user;
    struct core_checkpoint checkpoint;
    column_checkpoint(row, 0, &checkpoint);
    visitors->checkpoint(visitors->user, &checkpoint);
    return CADRE_OK;
}

cadre_status statements_checkpoints(struct statements *statements, struct job_id job,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error)
{
    struct visitors visitors = {.checkpoint = visit, .user = user};
    static const char *const tables[] = {"checkpoint", NULL};
    CADRE_TRY(statements_find_whole(statements, job, tables, error));
    return statements_each(statements, "read the checkpoints of a job",
        "SELECT " CHECKPOINT_COLUMNS " FROM checkpoint WHERE job = ?1 ORDER BY position", job,
        visit_checkpoint, &visitors, error);
}
