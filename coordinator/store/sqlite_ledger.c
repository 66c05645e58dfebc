/* SPDX-License-Identifier: Apache-2.0
 * What is asked of one job: how its tasks ended, its ledger, its checkpoints. */
#include "coordinator/store/sqlite_statements.h"

#include <string.h>

#include "coordinator/store/sqlite_tables.h"

void column_checkpoint(sqlite3_stmt *statement, int column, struct core_checkpoint *ret_checkpoint)
{
    *ret_checkpoint = (struct core_checkpoint){.position = column_u64(statement, column),
        .generation = {.number = column_u64(statement, column + 1),
            .nonce = column_u64(statement, column + 2)},
        .shared = column_u64(statement, column + 3) != 0,
        .manifest_bytes = column_u64(statement, column + 5)};
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

/* The job is there, and so is what these tables say of it. */
static cadre_status find_whole(struct statements *statements, struct job_id job,
    const char *const *tables, struct cadre_error *error)
{
    CADRE_TRY(find_job(statements, job, error));
    return statements->loading ? CADRE_OK : check_job_rows(statements, job, tables, error);
}

/* The callbacks of the one call that is under way. */
struct visitors {
    void (*exit)(void *user, const struct store_task_exit *exit);
    void (*plan)(void *user, const struct store_plan *plan);
    void (*stream)(void *user, const struct store_stream *stream);
    void (*epoch)(void *user, const struct store_epoch *epoch);
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
    CADRE_TRY(find_whole(statements, job, tables, error));
    return statements_each(statements, "read how tasks ended",
        "SELECT slot, max(incarnation), state, code, signal, text FROM task_exit WHERE job = ?1"
        " GROUP BY slot ORDER BY slot",
        job, visit_exit, &visitors, error);
}

static cadre_status visit_plan(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    const struct visitors *visitors = user;
    visitors->plan(visitors->user,
        &(struct store_plan){
            .generation = {.number = column_u64(row, 0), .nonce = column_u64(row, 1)},
            .parent = {.number = column_u64(row, 2), .nonce = column_u64(row, 3)},
            .resume = column_u64(row, 4),
            .restarted = column_u64(row, 5) != 0,
            .members = column_u32(row, 6),
            .planned_us = column_u64(row, 7)});
    return CADRE_OK;
}

static cadre_status visit_stream(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    const struct visitors *visitors = user;
    visitors->stream(visitors->user, &(struct store_stream){.stream = column_u32(row, 0),
                                         .name = column_text(row, 1),
                                         .samples = column_u64(row, 2),
                                         .shares = column_u64(row, 3) != 0});
    return CADRE_OK;
}

static cadre_status visit_epoch(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    const struct visitors *visitors = user;
    visitors->epoch(
        visitors->user, &(struct store_epoch){.cursor = {.stream = column_u32(row, 0),
                                                  .epoch = column_u64(row, 1),
                                                  .begin = column_u64(row, 2),
                                                  .first = column_u64(row, 3),
                                                  .steps = column_u64(row, 4)},
                            .feed = {.steps = column_u64(row, 5),
                                .samples = column_u64(row, 6),
                                .fed = {column_u64(row, 7), column_u64(row, 8)},
                                .expected = {column_u64(row, 9), column_u64(row, 10)},
                                .provable = (column_u64(row, 11) & 1) != 0,
                                .files = (enum feed_files)(column_u64(row, 11) >> 1 & 3)}});
    return CADRE_OK;
}

cadre_status statements_ledger(struct statements *statements, struct job_id job,
    void (*plan)(void *user, const struct store_plan *plan),
    void (*stream)(void *user, const struct store_stream *stream),
    void (*epoch)(void *user, const struct store_epoch *epoch), void *user,
    struct cadre_error *error)
{
    struct visitors visitors = {.plan = plan, .stream = stream, .epoch = epoch, .user = user};
    static const char *const tables[] = {"plan", "stream", "feed", "end_of_data", NULL};
    CADRE_TRY(find_whole(statements, job, tables, error));
    if (plan != NULL) {
        CADRE_TRY(statements_each(statements, "read the generations of a job",
            "SELECT number, nonce, parent_number, parent_nonce, resume, restarted, members,"
            " planned_us FROM plan WHERE job = ?1 ORDER BY number",
            job, visit_plan, &visitors, error));
    }
    if (stream != NULL) {
        CADRE_TRY(statements_each(statements, "read the datasets of a job",
            "SELECT stream, name, samples, shares FROM stream WHERE job = ?1 ORDER BY stream", job,
            visit_stream, &visitors, error));
    }
    if (epoch != NULL) {
        CADRE_TRY(statements_each(statements, "read the epochs of a job",
            "SELECT f.stream, f.epoch, max(f.start), f.first, coalesce(e.steps, f.epoch_steps),"
            " f.steps, f.samples, fed_0, fed_1, expected_0, expected_1, provable FROM feed f"
            " LEFT JOIN end_of_data e ON e.job = f.job AND e.stream = f.stream"
            "  AND e.epoch = f.epoch"
            " WHERE f.job = ?1 GROUP BY f.stream, f.epoch ORDER BY f.stream, f.epoch",
            job, visit_epoch, &visitors, error));
    }
    return CADRE_OK;
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
    CADRE_TRY(find_whole(statements, job, tables, error));
    return statements_each(statements, "read the checkpoints of a job",
        "SELECT " CHECKPOINT_COLUMNS " FROM checkpoint WHERE job = ?1 ORDER BY position", job,
        visit_checkpoint, &visitors, error);
}

cadre_status statements_drop_checkpoint(
    struct statements *statements, struct job_id job, uint64_t position, struct cadre_error *error)
{
    bind_u64(statements->prepared[STATEMENT_DROP_CHECKPOINT], 1, job.n);
    bind_u64(statements->prepared[STATEMENT_DROP_CHECKPOINT], 2, position);
    CADRE_TRY(statements_run(statements, STATEMENT_DROP_CHECKPOINT, error));
    if (sqlite3_changes(statements->database) == 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "the store %s has no checkpoint of job %llu at step %llu", statements->path,
            (unsigned long long)job.n, (unsigned long long)position);
    }
    return CADRE_OK;
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
