/* SPDX-License-Identifier: Apache-2.0
 * The store in memory: for the embedded coordinator, tests and the simulator. A job that changed
 * since the last sync is also held as it was then, so that losing the tail is an exchange of the
 * two. Called through store_ops. */
#include "coordinator/store/store.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "coordinator/store/log_copy.h"
#include "coordinator/store/memory_job.h"
#include "coordinator/store/memory_workers.h"

struct held_job {
    struct held_job *next; /* in order of id */
    struct job_id id;
    bool synced;    /* the job itself is durable */
    bool forgotten; /* since the last sync: it is there only for a loss of the tail */
    struct memory_job now;
    struct memory_job *durable; /* NULL: nothing changed since the last sync */
    void *spec;
    size_t spec_bytes;
};

struct memory_store {
    struct store base;
    struct held_job *jobs;
    struct memory_workers workers;
    struct term term;
    uint64_t start_durable;
    uint8_t secret[STORE_SECRET_BYTES];
    uint64_t job_id_max;
    uint64_t job_id_max_durable;
    struct log_copy log;
    struct store_position applied_durable;
};

static struct memory_store *memory_of(const struct store *store)
{
    return (struct memory_store *)(uintptr_t)store;
}

/* The link to the job in the list, or to its successor when the job is not there. */
static struct held_job **link_to_job(struct memory_store *memory, struct job_id id)
{
    struct held_job **at = &memory->jobs;
    while (*at != NULL && (*at)->id.n < id.n) {
        at = &(*at)->next;
    }
    return at;
}

/* NULL: there is no such job, forgotten or not. */
static struct held_job *find_held(struct memory_store *memory, struct job_id id)
{
    struct held_job *job = *link_to_job(memory, id);
    return job != NULL && job->id.n == id.n ? job : NULL;
}

static struct held_job *store_memory_find(struct memory_store *memory, struct job_id id)
{
    struct held_job *job = find_held(memory, id);
    return job != NULL && !job->forgotten ? job : NULL;
}

static cadre_status store_memory_get(struct memory_store *memory, struct job_id id,
    struct held_job **ret_job, struct cadre_error *error)
{
    *ret_job = store_memory_find(memory, id);
    return *ret_job != NULL ? CADRE_OK
                            : cadre_error_set(error, CADRE_NOT_FOUND, "the store has no job %llu",
                                  (unsigned long long)id.n);
}

static void drop_durable(struct held_job *job)
{
    if (job->durable != NULL) {
        memory_job_free(job->durable);
        free(job->durable);
        job->durable = NULL;
    }
}

static void free_job(struct held_job *job)
{
    memory_job_free(&job->now);
    drop_durable(job);
    free(job->spec);
    free(job);
}

static void remove_job(struct memory_store *memory, struct job_id id)
{
    struct held_job **at = link_to_job(memory, id);
    struct held_job *job = *at;
    *at = job->next;
    free_job(job);
}

static void *memory_allocate(size_t count, size_t size)
{
    return fault_point("store.allocate") ? NULL : calloc(count, size);
}

static cadre_status no_memory(struct job_id id, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a record of job %llu",
        (unsigned long long)id.n);
}

/* ---- a commit in two passes: what can fail, then what cannot ---- */

static cadre_status add_job(
    struct memory_store *memory, const struct store_record *record, struct cadre_error *error)
{
    struct job_id id = record->record->job;
    if (find_held(memory, id) != NULL) {
        return cadre_error_set(
            error, CADRE_INTERNAL, "the store has job %llu already", (unsigned long long)id.n);
    }
    struct held_job *job = memory_allocate(1, sizeof *job);
    void *spec = memory_allocate(1, record->spec_bytes + 1);
    if (job == NULL || spec == NULL) {
        free(job);
        free(spec);
        return no_memory(id, error);
    }
    if (record->spec_bytes > 0) {
        memcpy(spec, record->spec, record->spec_bytes);
    }
    struct held_job **at = link_to_job(memory, id);
    *job = (struct held_job){.next = *at, .id = id, .spec = spec, .spec_bytes = record->spec_bytes};
    memory_job_init(&job->now, record);
    *at = job;
    return CADRE_OK;
}

/* Keeps the job as it is: a loss of the tail restores it. */
static cadre_status keep_durable(struct held_job *job, struct cadre_error *error)
{
    if (!job->synced || job->durable != NULL) {
        return CADRE_OK;
    }
    struct memory_job *durable = memory_allocate(1, sizeof *durable);
    if (durable == NULL || !memory_job_copy(&job->now, durable)) {
        free(durable);
        return no_memory(job->id, error);
    }
    job->durable = durable;
    return CADRE_OK;
}

static bool is_of_type(const struct store_record *record, enum core_record_type type)
{
    return record->record != NULL && record->record->type == type;
}

static bool is_of_no_job(const struct store_record *record)
{
    return memory_workers_has(record) || is_of_type(record, CORE_RECORD_TERM);
}

static struct job_id job_of(const struct store_record *record)
{
    return record->record != NULL ? record->record->job : record->job;
}

static cadre_status memory_prepare(struct memory_store *memory, const struct store_record *record,
    bool sync, struct cadre_error *error)
{
    struct job_id id = job_of(record);
    if (is_of_no_job(record)) {
        return CADRE_OK;
    }
    if (is_of_type(record, CORE_RECORD_JOB)) {
        return add_job(memory, record, error);
    }
    struct held_job *job = store_memory_find(memory, id);
    if (job == NULL && is_of_type(record, CORE_RECORD_CHECKPOINT_DROPPED)) {
        return CADRE_OK;
    }
    if (job == NULL) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "a record names job %llu, which the store does not have", (unsigned long long)id.n);
    }
    if (is_of_type(record, CORE_RECORD_FORGOTTEN)) {
        job->forgotten = true; /* records of it that follow are refused */
        return CADRE_OK;
    }
    if (!sync) {
        CADRE_TRY(keep_durable(job, error));
    }
    return memory_job_prepare(&job->now, record, error);
}

static void memory_apply(struct memory_store *memory, const struct store_record *record)
{
    if (memory_workers_has(record)) {
        memory_workers_apply(&memory->workers, record->record);
        return;
    }
    if (is_of_type(record, CORE_RECORD_TERM)) {
        memory->term.start = record->record->start;
        return;
    }
    struct held_job *job = find_held(memory, job_of(record));
    if (job == NULL) {
        return; /* a checkpoint of it that is not there is dropped */
    }
    if (record->record != NULL) {
        memory_job_apply(&job->now, record);
    } else {
        memory_job_add_event(&job->now, record->event);
    }
    if (job->id.n > memory->job_id_max) {
        memory->job_id_max = job->id.n;
    }
}

static void memory_settle(struct memory_store *memory, const struct store_record *record)
{
    struct held_job *job = find_held(memory, job_of(record));
    if (job != NULL) {
        memory_job_settle(&job->now);
    }
}

static void sync_all(struct memory_store *memory)
{
    struct held_job **at = &memory->jobs;
    while (*at != NULL) {
        struct held_job *job = *at;
        if (job->forgotten) {
            *at = job->next;
            free_job(job);
            continue;
        }
        job->synced = true;
        drop_durable(job);
        at = &job->next;
    }
    memory->job_id_max_durable = memory->job_id_max;
    memory->start_durable = memory->term.start;
    memory->applied_durable = memory->log.applied;
}

/* Of a commit that failed. */
static void take_back(struct memory_store *memory, const struct store_record *record)
{
    if (is_of_type(record, CORE_RECORD_JOB)) {
        remove_job(memory, record->record->job);
    } else if (is_of_type(record, CORE_RECORD_FORGOTTEN)) {
        struct held_job *job = find_held(memory, record->record->job);
        job->forgotten = false;
    }
}

static cadre_status memory_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct memory_store *memory = memory_of(store);
    cadre_status status = memory_workers_prepare(&memory->workers, count, error);
    size_t prepared = 0;
    while (status == CADRE_OK && prepared < count) {
        status = memory_prepare(memory, &records[prepared], sync, error);
        prepared += status == CADRE_OK ? 1 : 0;
    }
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        memory_apply(memory, &records[i]);
    }
    for (size_t i = prepared; i > 0; i--) {
        if (status != CADRE_OK) {
            take_back(memory, &records[i - 1]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        memory_settle(memory, &records[i]);
    }
    if (status == CADRE_OK && sync) {
        sync_all(memory);
    }
    return status;
}

/* ---- a shared log ---- */

static cadre_status memory_apply_entries(struct store *store, const struct store_record *records,
    size_t count, const struct store_position *at, struct cadre_error *error)
{
    struct memory_store *memory = memory_of(store);
    CADRE_TRY(log_copy_check_next(&memory->log, at, error));
    CADRE_TRY(memory_commit(store, records, count, false, error));
    memory->log.applied = *at;
    return CADRE_OK;
}

static void memory_position(const struct store *store, struct store_position *ret_position)
{
    *ret_position = memory_of(store)->log.applied;
}

static void memory_cluster(const struct store *store, struct store_cluster *ret_cluster)
{
    *ret_cluster = memory_of(store)->log.cluster;
}

static cadre_status memory_note_cluster(
    struct store *store, const struct store_cluster *cluster, struct cadre_error *error)
{
    (void)error;
    struct memory_store *memory = memory_of(store);
    memory->log.cluster = *cluster;
    memory->term.cluster = cluster->id_low;
    memcpy(memory->secret, cluster->secret, STORE_SECRET_BYTES);
    sync_all(memory);
    return CADRE_OK;
}

/* ---- reading ---- */

static cadre_status visit_job(const struct held_job *held,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    struct memory_view view;
    if (!memory_view_make(&held->now, &view)) {
        return no_memory(held->id, error);
    }
    view.row.spec = held->spec;
    view.row.spec_bytes = held->spec_bytes;
    cadre_status status = visit(user, &view.row, error);
    memory_view_free(&view);
    return status;
}

static cadre_status memory_load(struct store *store,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    for (const struct held_job *job = memory_of(store)->jobs; job != NULL; job = job->next) {
        if (!job->forgotten) {
            CADRE_TRY(visit_job(job, visit, user, error));
        }
    }
    return CADRE_OK;
}

/* A disk cannot damage what is in memory only. */
static cadre_status memory_check(struct store *store,
    void (*visit)(void *user, struct job_id job, const char *what), void *user,
    struct cadre_error *error)
{
    (void)store;
    (void)visit;
    (void)user;
    (void)error;
    return CADRE_OK;
}

static cadre_status memory_task_exits(struct store *store, struct job_id id,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    struct held_job *job;
    CADRE_TRY(store_memory_get(memory_of(store), id, &job, error));
    const struct rows *exits = &job->now.tables[TABLE_EXITS];
    for (size_t i = 0; i < exits->count; i++) {
        visit(user, rows_at(exits, i));
    }
    return CADRE_OK;
}

static cadre_status memory_ledger(
    struct store *store, struct job_id id, const struct store_walk *walk, struct cadre_error *error)
{
    struct held_job *job;
    CADRE_TRY(store_memory_get(memory_of(store), id, &job, error));
    memory_job_walk(&job->now, walk);
    return CADRE_OK;
}

static cadre_status memory_checkpoints(struct store *store, struct job_id id,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error)
{
    struct held_job *job;
    CADRE_TRY(store_memory_get(memory_of(store), id, &job, error));
    const struct rows *checkpoints = &job->now.tables[TABLE_CHECKPOINTS];
    for (size_t i = 0; i < checkpoints->count; i++) {
        visit(user, rows_at(checkpoints, i));
    }
    return CADRE_OK;
}

static cadre_status memory_history(struct store *store, struct job_id id, uint64_t after,
    size_t max, void (*visit)(void *user, const struct history_event *event), void *user,
    uint64_t *ret_last, struct cadre_error *error)
{
    struct held_job *job;
    CADRE_TRY(store_memory_get(memory_of(store), id, &job, error));
    memory_job_history(&job->now, after, max, visit, user, ret_last);
    return CADRE_OK;
}

static cadre_status memory_drains(struct store *store,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error)
{
    (void)error;
    const struct memory_workers *workers = &memory_of(store)->workers;
    for (size_t i = 0; i < workers->drain_count; i++) {
        visit(user, &workers->drains[i]);
    }
    return CADRE_OK;
}

static cadre_status memory_culprits(struct store *store,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error)
{
    (void)error;
    const struct memory_workers *workers = &memory_of(store)->workers;
    for (size_t i = 0; i < workers->culprit_count; i++) {
        visit(user, &workers->culprits[i]);
    }
    return CADRE_OK;
}

static void memory_secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    memcpy(ret_secret, memory_of(store)->secret, STORE_SECRET_BYTES);
}

static struct term memory_term(const struct store *store)
{
    return memory_of(store)->term;
}

static uint64_t memory_job_id_max(const struct store *store)
{
    return memory_of(store)->job_id_max;
}

static void memory_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct memory_store *memory = memory_of(store);
    while (memory->jobs != NULL) {
        struct held_job *next = memory->jobs->next;
        free_job(memory->jobs);
        memory->jobs = next;
    }
    memory_workers_free(&memory->workers);
    free(memory);
}

static const struct store_ops memory_ops = {.name = "memory",
    .commit = memory_commit,
    .apply = memory_apply_entries,
    .position = memory_position,
    .cluster = memory_cluster,
    .note_cluster = memory_note_cluster,
    .load = memory_load,
    .check = memory_check,
    .task_exits = memory_task_exits,
    .ledger = memory_ledger,
    .history = memory_history,
    .checkpoints = memory_checkpoints,
    .drains = memory_drains,
    .culprits = memory_culprits,
    .secret = memory_secret,
    .term = memory_term,
    .job_id_max = memory_job_id_max,
    .close = memory_close};

cadre_status store_memory_open(struct store **ret_store, struct cadre_error *error)
{
    struct memory_store *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the store");
    }
    if (RAND_bytes(memory->secret, STORE_SECRET_BYTES) != 1 ||
        RAND_bytes((unsigned char *)&memory->term, sizeof memory->term) != 1) {
        free(memory);
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bytes for the store's secret");
    }
    memory->term.cluster |= 1;
    memory->term.start = 0;
    memory->base.ops = &memory_ops;
    *ret_store = &memory->base;
    return CADRE_OK;
}

void store_memory_lose_tail(struct store *store)
{
    struct memory_store *memory = memory_of(store);
    struct held_job **at = &memory->jobs;
    while (*at != NULL) {
        struct held_job *job = *at;
        if (!job->synced) {
            *at = job->next;
            free_job(job);
            continue;
        }
        job->forgotten = false;
        if (job->durable != NULL) {
            memory_job_free(&job->now);
            job->now = *job->durable;
            free(job->durable);
            job->durable = NULL;
        }
        at = &job->next;
    }
    memory->job_id_max = memory->job_id_max_durable;
    memory->term.start = memory->start_durable;
    memory->log.applied = memory->applied_durable;
}
