/* SPDX-License-Identifier: Apache-2.0
 * Rows into what a start of the coordinator reads. */
#include "coordinator/store/sqlite_statements.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "coordinator/store/restore.h"
#include "coordinator/store/sqlite_tables.h"

struct loader {
    struct statements *statements;
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error);
    void *user;
    struct damages damages;
    struct core_restore_job *restore; /* the present job */
    struct core_restore_task *tasks;  /* of it */
    size_t task_count;
    size_t task_capacity;
    uint32_t roster;
    struct restore_streams streams;
    uint64_t consumed; /* the highest position that a feed records */
    uint64_t ending;   /* committed when it was being ended */
};

static cadre_status sqlite_load_damaged(const struct loader *loader, struct job_id job,
    const char *what, long long value, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "store %s: job %llu has %s %lld, which cannot be: it is damaged", loader->statements->path,
        (unsigned long long)job.n, what, value);
}

static cadre_status take_task(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    struct loader *loader = user;
    if (loader->task_count == loader->task_capacity) {
        size_t capacity = loader->task_capacity > 0 ? loader->task_capacity * 2 : 64;
        struct core_restore_task *grown =
            fault_point("store.allocate") ? NULL : realloc(loader->tasks, capacity * sizeof *grown);
        if (grown == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "store %s: no memory for %zu tasks", loader->statements->path, capacity);
        }
        loader->tasks = grown;
        loader->task_capacity = capacity;
    }
    struct core_restore_task *task = &loader->tasks[loader->task_count++];
    *task = (struct core_restore_task){.slot = column_u32(row, 0),
        .incarnation = column_u64(row, 1),
        .rank = UINT32_MAX,
        .gone = sqlite3_column_type(row, 3) != SQLITE_NULL,
        .lost = sqlite3_column_int(row, 3) == (int)TASK_LOST,
        .attempts = column_u32(row, 4),
        .attempts_generation = column_u64(row, 5),
        .backed = {.number = column_u64(row, 6), .by = column_u64(row, 7)}};
    column_text_into(row, 2, task->worker, sizeof task->worker);
    return CADRE_OK;
}

static uint64_t take_le(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static cadre_status take_roster(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct loader *loader = user;
    const uint8_t *blob = sqlite3_column_blob(row, 0);
    size_t members = (size_t)sqlite3_column_bytes(row, 0) / ROSTER_ENTRY_BYTES;
    loader->roster = (uint32_t)members;
    for (size_t rank = 0; rank < members; rank++) {
        const uint8_t *at = blob + rank * ROSTER_ENTRY_BYTES;
        restore_note_rank(loader->tasks, loader->task_count, (uint32_t)take_le(at, 4),
            take_le(at + 4, 8), (uint32_t)rank);
    }
    return CADRE_OK;
}

static cadre_status take_stream(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct loader *loader = user;
    uint64_t applied = column_u64(row, 3);
    struct cursor cursor = {.stream = column_u32(row, 0),
        .epoch = column_u64(row, 1),
        .steps = column_u64(row, 2),
        .first = column_u64(row, 4),
        .begin = column_u64(row, 5)};
    restore_note_stream(&loader->streams, &cursor, applied);
    restore_note_consumed(loader->restore, &cursor, applied, &loader->consumed);
    return CADRE_OK;
}

static cadre_status take_checkpoint(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct core_restore_job *restore = user;
    restore->has_checkpoint = true;
    column_checkpoint(row, 0, &restore->checkpoint);
    return CADRE_OK;
}

static cadre_status take_origin(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct store_job *job = user;
    job->restores = true;
    column_checkpoint(row, 0, &job->origin);
    return CADRE_OK;
}

static cadre_status take_lost(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct store_job *job = user;
    job->lost.position = column_u64(row, 0);
    column_text_into(row, 1, job->lost.why, sizeof job->lost.why);
    return CADRE_OK;
}

static cadre_status take_verified(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct core_restore_job *restore = user;
    restore->verified =
        (struct verified){.position = column_u64(row, 0), .digest = column_u64(row, 1)};
    return CADRE_OK;
}

static cadre_status take_published(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct core_restore_job *restore = user;
    restore->published =
        (struct core_position){.number = column_u64(row, 0), .position = column_u64(row, 1)};
    return CADRE_OK;
}

static cadre_status take_diverged(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct core_restore_job *restore = user;
    restore->diverged =
        (struct core_position){.number = column_u64(row, 0), .position = column_u64(row, 1)};
    return CADRE_OK;
}

static cadre_status take_ending(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct loader *loader = user;
    struct core_restore_job *restore = loader->restore;
    loader->ending = column_u64(row, 4);
    restore->ending = true;
    restore->ending_as = (struct core_ending){.state = (enum job_state)sqlite3_column_int(row, 0),
        .code = (cadre_status)sqlite3_column_int(row, 1),
        .exit_code = sqlite3_column_int(row, 2)};
    column_text_into(row, 3, restore->ending_as.text, sizeof restore->ending_as.text);
    return CADRE_OK;
}

static cadre_status take_control(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct core_restore_job *restore = user;
    struct generation generation = {.number = column_u64(row, 0), .nonce = column_u64(row, 1)};
    restore->halt_at = column_u64(row, 2);
    restore->halt_kind = (enum halt_kind)sqlite3_column_int(row, 3);
    restore->halt_stream = column_u32(row, 4);
    restore->has_control =
        restore->halt_kind != HALT_NONE && generation_equal(generation, restore->generation);
    return CADRE_OK;
}

/* Everything of the job that is not in its own row. */
static cadre_status load_details(
    struct loader *loader, struct store_job *job, struct cadre_error *error)
{
    struct statements *statements = loader->statements;
    struct core_restore_job *restore = &job->restore;
    struct job_id id = restore->job;
    loader->task_count = 0;
    loader->roster = 0;
    loader->streams.count = 0;
    loader->restore = restore;
    loader->consumed = 0;
    loader->ending = 0;
    CADRE_TRY(statements_each(statements, "read the tasks of a job",
        "SELECT slot, incarnation, worker, (SELECT state FROM task_exit x WHERE x.job = t.job"
        " AND x.slot = t.slot AND x.incarnation >= t.incarnation ORDER BY incarnation DESC LIMIT "
        "1),"
        " lives, lives_in, (SELECT number FROM backed b WHERE b.job = t.job AND b.slot = t.slot),"
        " (SELECT backed_by FROM backed b WHERE b.job = t.job AND b.slot = t.slot)"
        " FROM task t WHERE job = ?1 ORDER BY slot",
        id, take_task, loader, error));
    CADRE_TRY(statements_each(statements, "read the roster of a job",
        "SELECT members FROM roster WHERE job = ?1", id, take_roster, loader, error));
    CADRE_TRY(statements_each(statements, "read the epochs of a job",
        "SELECT stream, epoch, epoch_steps, steps, first, start FROM feed WHERE job = ?1"
        " UNION ALL SELECT stream, epoch, steps, 0, 0, 0 FROM end_of_data WHERE job = ?1",
        id, take_stream, loader, error));
    restore_note_stream(&loader->streams, &restore->cursor, 0);
    CADRE_TRY(statements_each(statements, "read where a job goes on from",
        "SELECT " CHECKPOINT_COLUMNS " FROM origin WHERE job = ?1", id, take_origin, job, error));
    CADRE_TRY(statements_each(statements, "read which checkpoint of a job was damaged",
        "SELECT " LOST_COLUMNS " FROM lost WHERE job = ?1", id, take_lost, job, error));
    CADRE_TRY(statements_each(statements, "read which checkpoints the tasks of a job got notice of",
        "SELECT " PUBLISHED_COLUMNS " FROM published WHERE job = ?1", id, take_published, restore,
        error));
    restore->has_checkpoint = job->restores;
    restore->checkpoint = job->origin;
    CADRE_TRY(statements_each(statements, "read the newest checkpoint of a job",
        "SELECT " CHECKPOINT_COLUMNS
        " FROM checkpoint WHERE job = ?1 ORDER BY position DESC LIMIT 1",
        id, take_checkpoint, restore, error));
    CADRE_TRY(statements_each(statements, "read which states of a job were found equal",
        "SELECT " VERIFIED_COLUMNS " FROM verified WHERE job = ?1 ORDER BY position DESC LIMIT 1",
        id, take_verified, restore, error));
    restore_note_verified(restore);
    CADRE_TRY(statements_each(statements, "read where the states of a job differed",
        "SELECT " DIVERGED_COLUMNS " FROM diverged WHERE job = ?1", id, take_diverged, restore,
        error));
    CADRE_TRY(statements_each(statements, "read how a job was being ended",
        "SELECT state, code, exit_code, text, committed FROM ending WHERE job = ?1", id,
        take_ending, loader, error));
    CADRE_TRY(statements_each(statements, "read the halt of a job",
        "SELECT number, nonce, halt_at, halt_kind, halt_stream FROM control WHERE job = ?1", id,
        take_control, restore, error));
    restore->roster = loader->roster;
    restore->tasks = loader->tasks;
    restore->task_count = loader->task_count;
    restore->streams = loader->streams.items;
    restore->stream_count = loader->streams.count;
    job->position = restore_committed(restore, loader->consumed, loader->ending);
    return CADRE_OK;
}

/* The columns of `select_jobs`. */
static void job_of_row(sqlite3_stmt *row, struct store_job *ret_job)
{
    struct core_restore_job *restore = &ret_job->restore;
    *ret_job = (struct store_job){.spec = sqlite3_column_blob(row, 1),
        .spec_bytes = (size_t)sqlite3_column_bytes(row, 1),
        .submitted_us = column_u64(row, 8),
        .started_us = column_u64(row, 9),
        .first_us = column_u64(row, 30),
        .ended_us = column_u64(row, 10),
        .state = (enum job_state)sqlite3_column_int(row, 13),
        .code = (cadre_status)sqlite3_column_int(row, 14),
        .exit_code = sqlite3_column_int(row, 15),
        .text = column_text(row, 16)};
    restore->job.n = column_u64(row, 0);
    restore->spec = (struct core_job_spec){.tasks = column_u32(row, 2),
        .tasks_min = column_u32(row, 3),
        .priority = sqlite3_column_int(row, 4),
        .max_restarts = column_u32(row, 5),
        .wait_us = column_u64(row, 6),
        .stall_us = column_u64(row, 7)};
    restore->started = ret_job->started_us != 0;
    restore->incarnation_max = column_u64(row, 11);
    restore->restarts = column_u32(row, 12);
    restore->generation =
        (struct generation){.number = column_u64(row, 17), .nonce = column_u64(row, 18)};
    restore->resume = column_u64(row, 19);
    struct generation released =
        (struct generation){.number = column_u64(row, 20), .nonce = column_u64(row, 21)};
    restore->released =
        generation_equal(released, restore->generation) ? column_u64(row, 22) : restore->resume;
    restore->cursor = (struct cursor){.stream = column_u32(row, 23),
        .epoch = column_u64(row, 24),
        .first = column_u64(row, 25),
        .begin = column_u64(row, 26),
        .steps = column_u64(row, 27)};
    restore->done = column_u64(row, 28) != 0;
    restore->done_position = column_u64(row, 29);
}

static bool code_is_good(cadre_status code)
{
    return (int)code >= 0 && code <= CADRE_UNAUTHENTICATED;
}

/* This program wrote the rows, but a damaged file may hold anything. */
static cadre_status check_job(
    const struct loader *loader, const struct store_job *job, struct cadre_error *error)
{
    const struct core_restore_job *restore = &job->restore;
    const struct core_job_spec *spec = &restore->spec;
    if (restore->job.n == 0 || restore->job.n > INT64_MAX) {
        return sqlite_load_damaged(
            loader, restore->job, "number", (long long)restore->job.n, error);
    }
    if (job->state != JOB_QUEUED && !job_state_is_final(job->state)) {
        return sqlite_load_damaged(loader, restore->job, "state", job->state, error);
    }
    if (job->state > JOB_PREEMPTED) {
        return sqlite_load_damaged(loader, restore->job, "state", job->state, error);
    }
    if (!code_is_good(job->code)) {
        return sqlite_load_damaged(loader, restore->job, "code", job->code, error);
    }
    if (spec->tasks < 1 || spec->tasks > LIMIT_TASKS_PER_JOB) {
        return sqlite_load_damaged(loader, restore->job, "tasks", spec->tasks, error);
    }
    if (spec->tasks_min < 1 || spec->tasks_min > spec->tasks) {
        return sqlite_load_damaged(loader, restore->job, "fewest tasks", spec->tasks_min, error);
    }
    return CADRE_OK;
}

/* A slot is placed once, by a recorded start. */
static cadre_status check_tasks(
    const struct loader *loader, const struct core_restore_job *restore, struct cadre_error *error)
{
    for (size_t i = 0; i < restore->task_count; i++) {
        const struct core_restore_task *task = &restore->tasks[i];
        if (task->slot >= restore->spec.tasks || (i > 0 && task->slot <= task[-1].slot)) {
            return sqlite_load_damaged(loader, restore->job, "a task", task->slot, error);
        }
        if (task->incarnation == 0 || task->incarnation > restore->incarnation_max) {
            return sqlite_load_damaged(
                loader, restore->job, "a task of incarnation", (long long)task->incarnation, error);
        }
    }
    if (restore->roster > restore->spec.tasks) {
        return sqlite_load_damaged(loader, restore->job, "a roster of", restore->roster, error);
    }
    return CADRE_OK;
}

/* A stop at 0 is no position: nothing is saved. */
static cadre_status check_halt(
    const struct loader *loader, const struct core_restore_job *restore, struct cadre_error *error)
{
    bool unsaved = restore->halt_kind == HALT_STOP && restore->halt_at == 0;
    if ((unsigned)restore->halt_kind > HALT_STOP) {
        return sqlite_load_damaged(
            loader, restore->job, "a halt of kind", restore->halt_kind, error);
    }
    if (restore->halt_stream > LIMIT_STREAMS && restore->halt_stream != STREAM_ANY) {
        return sqlite_load_damaged(
            loader, restore->job, "a halt of dataset", restore->halt_stream, error);
    }
    if (restore->has_control && !unsaved && restore->released > restore->halt_at) {
        return sqlite_load_damaged(loader, restore->job,
            "a step that was released beyond its halt at", (long long)restore->halt_at, error);
    }
    return CADRE_OK;
}

static cadre_status check_details(
    const struct loader *loader, const struct store_job *job, struct cadre_error *error)
{
    const struct core_restore_job *restore = &job->restore;
    const struct core_ending *ending = &restore->ending_as;
    CADRE_TRY(check_tasks(loader, restore, error));
    CADRE_TRY(check_halt(loader, restore, error));
    if (restore->resume >= LIMIT_POSITION || restore->released >= LIMIT_POSITION) {
        bool resume = restore->resume >= LIMIT_POSITION;
        return sqlite_load_damaged(loader, restore->job, "a position",
            (long long)(resume ? restore->resume : restore->released), error);
    }
    if (job->state == JOB_QUEUED && restore->started && restore->generation.number > 0 &&
        restore->has_checkpoint && restore->checkpoint.position > restore->released) {
        return sqlite_load_damaged(loader, restore->job,
            "a checkpoint of an unreleased step,", (long long)restore->checkpoint.position,
            error);
    }
    if (restore->ending && (!job_state_is_final(ending->state) || ending->state > JOB_PREEMPTED ||
                               !code_is_good(ending->code))) {
        return sqlite_load_damaged(loader, restore->job, "an ending as", ending->state, error);
    }
    return CADRE_OK;
}

/* What the visitor reads of it is checked by itself. */
static cadre_status visit_damaged(
    struct loader *loader, const struct store_job *job, struct cadre_error *error)
{
    loader->statements->loading = false;
    cadre_status status = loader->visit(loader->user, job, error);
    loader->statements->loading = true;
    return status;
}

static cadre_status load_job(struct loader *loader, sqlite3_stmt *row, struct cadre_error *error)
{
    struct store_job job;
    struct job_id id = {column_u64(row, 0)};
    const struct damage *damage = damages_find(&loader->damages, id);
    if (damage != NULL && sqlite3_column_int(row, 31) == 0) { /* its own row */
        job = (struct store_job){
            .restore.job = id, .state = JOB_QUEUED, .text = "", .damage = damage->what};
        return visit_damaged(loader, &job, error);
    }
    job_of_row(row, &job);
    CADRE_TRY(check_job(loader, &job, error));
    if (damage != NULL) {
        job.damage = damage->what;
        return visit_damaged(loader, &job, error);
    }
    CADRE_TRY(load_details(loader, &job, error));
    CADRE_TRY(check_details(loader, &job, error));
    return loader->visit(loader->user, &job, error);
}

cadre_status statements_load(struct statements *statements,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    static const char select_jobs[] =
        "SELECT j.id, j.spec, j.tasks, j.tasks_min, j.priority, j.max_restarts, j.wait_us,"
        " j.stall_us, j.submitted_us, j.started_us, j.ended_us, j.incarnation_max, j.restarts,"
        " j.state, j.code, j.exit_code, j.text, p.number, p.nonce, p.resume, w.number, w.nonce,"
        " w.up_to, w.stream, w.epoch, w.first, w.start, w.steps, d.job, d.position,"
        " j.first_us, j.sum IS row_sum('job', j.id, j.spec, j.tasks, j.priority, j.submitted_us,"
        "  j.started_us, j.ended_us, j.incarnation_max, j.state, j.code, j.exit_code, j.text,"
        "  j.tasks_min, j.max_restarts, j.wait_us, j.stall_us, j.restarts, j.first_us)"
        " FROM job j LEFT JOIN plan p ON p.job = j.id"
        "  AND p.number = (SELECT max(number) FROM plan WHERE job = j.id)"
        " LEFT JOIN watermark w ON w.job = j.id LEFT JOIN done d ON d.job = j.id ORDER BY j.id";
    struct loader loader = {.statements = statements, .visit = visit, .user = user};
    CADRE_TRY(check_rows(statements, &loader.damages, error));
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(statements->database, select_jobs, -1, &rows, NULL) != SQLITE_OK) {
        damages_free(&loader.damages);
        return statements_fail(statements, "read the jobs", error);
    }
    statements->loading = true;
    cadre_status status = CADRE_OK;
    int result = SQLITE_ROW;
    while (status == CADRE_OK && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        status = load_job(&loader, rows, error);
    }
    if (status == CADRE_OK && result != SQLITE_DONE) {
        status = statements_fail(statements, "read the jobs", error);
    }
    statements->loading = false;
    sqlite3_finalize(rows);
    damages_free(&loader.damages);
    free(loader.tasks);
    return status;
}

cadre_status statements_check(struct statements *statements,
    void (*visit)(void *user, struct job_id job, const char *what), void *user,
    struct cadre_error *error)
{
    struct damages damages = {0};
    cadre_status status = check_pages(statements, error);
    status = status == CADRE_OK ? check_rows(statements, &damages, error) : status;
    for (size_t i = 0; i < damages.count && status == CADRE_OK; i++) {
        visit(user, damages.items[i].job, damages.items[i].what);
    }
    damages_free(&damages);
    return status;
}

cadre_status statements_facts(
    struct statements *statements, struct ledger_facts *ret_facts, struct cadre_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(statements->database, "SELECT job_id_max, cluster, starts FROM meta", -1,
            &row, NULL) != SQLITE_OK ||
        sqlite3_step(row) != SQLITE_ROW) {
        cadre_status status = statements_fail(statements, "read the ledger's own row", error);
        sqlite3_finalize(row);
        return status;
    }
    *ret_facts = (struct ledger_facts){.job_id_max = column_u64(row, 0),
        .cluster = column_u64(row, 1),
        .starts = column_u64(row, 2)};
    sqlite3_finalize(row);
    return CADRE_OK;
}

struct drain_reader {
    struct statements *statements;
    void (*visit)(void *user, const struct core_drained *drained);
    void *user;
};

static cadre_status read_drain(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    const struct drain_reader *reader = user;
    struct core_drained drained;
    if (sqlite3_column_int(row, 3) == 0) {
        return statements_damaged(reader->statements, "which workers are drained", error);
    }
    snprintf(drained.worker, sizeof drained.worker, "%s", column_text(row, 0));
    snprintf(drained.who, sizeof drained.who, "%s", column_text(row, 1));
    snprintf(drained.why, sizeof drained.why, "%s", column_text(row, 2));
    reader->visit(reader->user, &drained);
    return CADRE_OK;
}

cadre_status statements_drains(struct statements *statements,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error)
{
    struct drain_reader reader = {.statements = statements, .visit = visit, .user = user};
    return statements_each_once(statements, "read which workers are drained",
        "SELECT " DRAIN_COLUMNS ", sum IS " DRAIN_SUM " FROM drain", (struct job_id){0}, read_drain,
        &reader, error);
}

struct culprit_reader {
    struct statements *statements;
    void (*visit)(void *user, const struct core_culprit *culprit);
    void *user;
};

static cadre_status read_culprit(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    const struct culprit_reader *reader = user;
    struct core_culprit culprit = {.times = column_u32(row, 1)};
    if (sqlite3_column_int(row, 2) == 0) {
        return statements_damaged(
            reader->statements, "on which workers tasks had another state than most", error);
    }
    snprintf(culprit.worker, sizeof culprit.worker, "%s", column_text(row, 0));
    reader->visit(reader->user, &culprit);
    return CADRE_OK;
}

cadre_status statements_culprits(struct statements *statements,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error)
{
    struct culprit_reader reader = {.statements = statements, .visit = visit, .user = user};
    return statements_each_once(statements, "read which workers had another state than most",
        "SELECT " CULPRIT_COLUMNS ", sum IS " CULPRIT_SUM " FROM culprit", (struct job_id){0},
        read_culprit, &reader, error);
}
