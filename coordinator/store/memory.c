/* SPDX-License-Identifier: Apache-2.0
 * The store in memory: for the embedded coordinator, tests and the simulator. Each job is held
 * twice, as it is and as it was at the last sync, so that losing the tail is an assignment. */
#include "coordinator/store/store.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

struct fixed {
    uint64_t started_us;
    uint64_t ended_us;
    uint64_t incarnation_max;
    struct generation generation;
    uint64_t position;
    enum job_state state;
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
    char checkpoint[LIMIT_FILE_NAME_BYTES + 16];
};

struct memory_job {
    struct memory_job *next; /* in order of id */
    struct job_id id;
    bool synced; /* the job itself is durable */
    void *spec;
    size_t spec_bytes;
    uint32_t tasks;
    int32_t priority;
    uint64_t submitted_us;
    struct fixed now;
    struct fixed durable;
    struct store_task_exit *exits; /* one per slot that ended */
    size_t exit_count;
};

struct memory_store {
    struct store base;
    struct memory_job *jobs;
    uint8_t secret[STORE_SECRET_BYTES];
    uint64_t job_id_max;
};

static struct memory_store *memory_of(const struct store *store)
{
    return (struct memory_store *)store;
}

static struct memory_job *find(struct memory_store *memory, struct job_id id)
{
    struct memory_job *job = memory->jobs;
    while (job != NULL && job->id.n != id.n) {
        job = job->next;
    }
    return job;
}

static void free_job(struct memory_job *job)
{
    free(job->spec);
    free(job->exits);
    free(job);
}

static cadre_status add_job(
    struct memory_store *memory, const struct store_record *record, struct cadre_error *error)
{
    struct memory_job *job = calloc(1, sizeof *job);
    void *spec = malloc(record->spec_bytes + 1);
    if (job == NULL || spec == NULL) {
        free(job);
        free(spec);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the record of job %llu", (unsigned long long)record->record->job.n);
    }
    if (record->spec_bytes > 0) {
        memcpy(spec, record->spec, record->spec_bytes);
    }
    *job = (struct memory_job){.id = record->record->job,
        .spec = spec,
        .spec_bytes = record->spec_bytes,
        .tasks = record->record->submitted.tasks,
        .priority = record->record->submitted.priority,
        .submitted_us = record->wall_us,
        .now.state = JOB_QUEUED};
    struct memory_job **tail = &memory->jobs;
    while (*tail != NULL) {
        tail = &(*tail)->next;
    }
    *tail = job;
    if (job->id.n > memory->job_id_max) {
        memory->job_id_max = job->id.n;
    }
    return CADRE_OK;
}

static cadre_status add_exit(
    struct memory_job *job, const struct core_record *record, struct cadre_error *error)
{
    struct store_task_exit exit = {.slot = record->task_exit.slot,
        .incarnation = record->task_exit.incarnation,
        .state = record->task_exit.state,
        .exit = record->task_exit.exit};
    size_t at = 0;
    while (at < job->exit_count && job->exits[at].slot < exit.slot) {
        at++;
    }
    if (at < job->exit_count && job->exits[at].slot == exit.slot) {
        job->exits[at] = exit;
        return CADRE_OK;
    }
    struct store_task_exit *grown = realloc(job->exits, (job->exit_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the exit record of task %u", exit.slot);
    }
    memmove(grown + at + 1, grown + at, (job->exit_count - at) * sizeof *grown);
    grown[at] = exit;
    job->exits = grown;
    job->exit_count++;
    return CADRE_OK;
}

static void name_checkpoint(struct fixed *now, uint32_t slot, const char *path)
{
    char digits[12];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + slot % 10);
        slot /= 10;
    } while (slot > 0);
    size_t head = strlen(digits + at);
    size_t tail = strnlen(path, LIMIT_FILE_NAME_BYTES - 1);
    memcpy(now->checkpoint, digits + at, head);
    now->checkpoint[head] = '/';
    memcpy(now->checkpoint + head + 1, path, tail);
    now->checkpoint[head + 1 + tail] = '\0';
}

static cadre_status apply(
    struct memory_store *memory, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    if (core->type == CORE_RECORD_JOB) {
        return add_job(memory, record, error);
    }
    struct memory_job *job = find(memory, core->job);
    if (job == NULL) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "a record names job %llu, which the store does not have",
            (unsigned long long)core->job.n);
    }
    switch (core->type) {
    case CORE_RECORD_STARTED:
        job->now.started_us = record->wall_us;
        job->now.incarnation_max = core->incarnation_max;
        return CADRE_OK;
    case CORE_RECORD_PLAN:
        job->now.generation = core->plan.generation;
        job->now.position = core->plan.resume;
        return CADRE_OK;
    case CORE_RECORD_WATERMARK:
        job->now.position = core->watermark.up_to;
        return CADRE_OK;
    case CORE_RECORD_CHECKPOINT:
        name_checkpoint(&job->now, core->checkpoint.slot, core->checkpoint.path);
        return CADRE_OK;
    case CORE_RECORD_TASK_EXIT:
        return add_exit(job, core, error);
    case CORE_RECORD_ENDED:
        job->now.state = core->ended.state;
        job->now.code = core->ended.code;
        job->now.exit_code = core->ended.exit_code;
        job->now.ended_us = record->wall_us;
        memcpy(job->now.text, core->ended.text, sizeof job->now.text);
        return CADRE_OK;
    case CORE_RECORD_JOB:
    case CORE_RECORD_END_OF_DATA:
    case CORE_RECORD_DONE:
        return CADRE_OK; /* nothing that a load reports depends on them */
    }
    return CADRE_OK;
}

static cadre_status memory_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct memory_store *memory = memory_of(store);
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(apply(memory, &records[i], error));
    }
    if (sync) {
        for (struct memory_job *job = memory->jobs; job != NULL; job = job->next) {
            job->durable = job->now;
            job->synced = true;
        }
    }
    return CADRE_OK;
}

static cadre_status memory_load(struct store *store,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    for (const struct memory_job *job = memory_of(store)->jobs; job != NULL; job = job->next) {
        struct store_job view = {.id = job->id,
            .spec = job->spec,
            .spec_bytes = job->spec_bytes,
            .tasks = job->tasks,
            .priority = job->priority,
            .submitted_us = job->submitted_us,
            .started_us = job->now.started_us,
            .ended_us = job->now.ended_us,
            .incarnation_max = job->now.incarnation_max,
            .generation = job->now.generation,
            .position = job->now.position,
            .state = job->now.state,
            .code = job->now.code,
            .exit_code = job->now.exit_code,
            .text = job->now.text,
            .checkpoint = job->now.checkpoint};
        CADRE_TRY(visit(user, &view, error));
    }
    return CADRE_OK;
}

static cadre_status memory_task_exits(struct store *store, struct job_id id,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    const struct memory_job *job = find(memory_of(store), id);
    if (job == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "the store has no job %llu", (unsigned long long)id.n);
    }
    for (size_t i = 0; i < job->exit_count; i++) {
        visit(user, &job->exits[i]);
    }
    return CADRE_OK;
}

static cadre_status memory_forget(struct store *store, struct job_id id, struct cadre_error *error)
{
    struct memory_job **at = &memory_of(store)->jobs;
    while (*at != NULL && (*at)->id.n != id.n) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "the store has no job %llu", (unsigned long long)id.n);
    }
    struct memory_job *job = *at;
    *at = job->next;
    free_job(job);
    return CADRE_OK;
}

static void memory_secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    memcpy(ret_secret, memory_of(store)->secret, STORE_SECRET_BYTES);
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
        struct memory_job *next = memory->jobs->next;
        free_job(memory->jobs);
        memory->jobs = next;
    }
    free(memory);
}

static const struct store_ops memory_ops = {.name = "memory",
    .commit = memory_commit,
    .load = memory_load,
    .task_exits = memory_task_exits,
    .forget = memory_forget,
    .secret = memory_secret,
    .job_id_max = memory_job_id_max,
    .close = memory_close};

cadre_status store_memory_open(struct store **ret_store, struct cadre_error *error)
{
    struct memory_store *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the store");
    }
    if (RAND_bytes(memory->secret, STORE_SECRET_BYTES) != 1) {
        free(memory);
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bytes for the store's secret");
    }
    memory->base.ops = &memory_ops;
    *ret_store = &memory->base;
    return CADRE_OK;
}

void store_memory_lose_tail(struct store *store)
{
    struct memory_job **at = &memory_of(store)->jobs;
    while (*at != NULL) {
        struct memory_job *job = *at;
        if (!job->synced) {
            *at = job->next;
            free_job(job);
            continue;
        }
        job->now = job->durable;
        at = &job->next;
    }
}
