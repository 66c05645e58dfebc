/* SPDX-License-Identifier: Apache-2.0
 * The store in memory: for the embedded coordinator, tests and the simulator. Each job is held
 * twice, as it is and as it was at the last sync, so that losing the tail is an assignment. */
#include "coordinator/store/store.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "common/base/fault.h"

/* What of a job has no length of its own; the pair (now, durable) is the whole story of a sync. */
struct fixed {
    uint64_t started_us;
    uint64_t ended_us;
    uint64_t incarnation_max;
    struct generation generation;
    uint64_t position;
    uint64_t checkpoint_position;
    enum job_state state;
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
    char checkpoint[LIMIT_FILE_NAME_BYTES + 16];
};

struct slot_end {
    struct store_task_exit now; /* incarnation 0: it has not ended */
    struct store_task_exit durable;
};

struct memory_job {
    struct memory_job *next; /* in order of id */
    struct job_id id;
    bool synced;  /* the job itself is durable */
    bool changed; /* since the last sync; of the ends those of slots first_changed..last_changed */
    void *spec;
    size_t spec_bytes;
    uint32_t tasks;
    int32_t priority;
    uint64_t submitted_us;
    struct fixed now;
    struct fixed durable;
    struct slot_end *ends; /* one per task, made when the first one ends */
    uint32_t first_changed;
    uint32_t last_changed;
};

struct memory_store {
    struct store base;
    struct memory_job *jobs;
    uint8_t secret[STORE_SECRET_BYTES];
    uint64_t job_id_max;
    uint64_t job_id_max_durable;
};

static struct memory_store *memory_of(const struct store *store)
{
    return (struct memory_store *)store;
}

/* Where the job stands in the list, or where it would. */
static struct memory_job **place_of(struct memory_store *memory, struct job_id id)
{
    struct memory_job **at = &memory->jobs;
    while (*at != NULL && (*at)->id.n < id.n) {
        at = &(*at)->next;
    }
    return at;
}

static struct memory_job *find(struct memory_store *memory, struct job_id id)
{
    struct memory_job *job = *place_of(memory, id);
    return job != NULL && job->id.n == id.n ? job : NULL;
}

static void free_job(struct memory_job *job)
{
    free(job->spec);
    free(job->ends);
    free(job);
}

static void *allocate(size_t count, size_t size)
{
    return fault_point("store.allocate") ? NULL : calloc(count, size);
}

static cadre_status no_memory(struct job_id id, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a record of job %llu",
        (unsigned long long)id.n);
}

static cadre_status unknown_job(struct job_id id, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INTERNAL,
        "a record names job %llu, which the store does not have", (unsigned long long)id.n);
}

static void forget_changes(struct memory_job *job)
{
    job->changed = false;
    job->first_changed = UINT32_MAX;
    job->last_changed = 0;
}

/* ---- a commit in two passes: what can fail, then what cannot ---- */

static cadre_status add_job(
    struct memory_store *memory, const struct store_record *record, struct cadre_error *error)
{
    struct job_id id = record->record->job;
    if (find(memory, id) != NULL) {
        return cadre_error_set(
            error, CADRE_INTERNAL, "the store has job %llu already", (unsigned long long)id.n);
    }
    struct memory_job *job = allocate(1, sizeof *job);
    void *spec = allocate(1, record->spec_bytes + 1);
    if (job == NULL || spec == NULL) {
        free(job);
        free(spec);
        return no_memory(id, error);
    }
    if (record->spec_bytes > 0) {
        memcpy(spec, record->spec, record->spec_bytes);
    }
    struct memory_job **at = place_of(memory, id);
    *job = (struct memory_job){.next = *at,
        .id = id,
        .spec = spec,
        .spec_bytes = record->spec_bytes,
        .tasks = record->record->submitted.tasks,
        .priority = record->record->submitted.priority,
        .submitted_us = record->wall_us,
        .now.state = JOB_QUEUED};
    forget_changes(job);
    job->changed = true;
    *at = job;
    return CADRE_OK;
}

static cadre_status prepare(
    struct memory_store *memory, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    if (core->type == CORE_RECORD_JOB) {
        return add_job(memory, record, error);
    }
    struct memory_job *job = find(memory, core->job);
    if (job == NULL) {
        return unknown_job(core->job, error);
    }
    if (core->type != CORE_RECORD_TASK_EXIT) {
        return CADRE_OK;
    }
    if (core->task_exit.slot >= job->tasks) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "a record names task %u of job %llu, which has %u", core->task_exit.slot,
            (unsigned long long)job->id.n, job->tasks);
    }
    if (job->ends == NULL) {
        job->ends = allocate(job->tasks, sizeof *job->ends);
    }
    return job->ends != NULL ? CADRE_OK : no_memory(job->id, error);
}

static void remove_job(struct memory_store *memory, struct job_id id)
{
    struct memory_job **at = place_of(memory, id);
    struct memory_job *job = *at;
    *at = job->next;
    free_job(job);
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

static void apply_exit(struct memory_job *job, const struct core_record *core)
{
    uint32_t slot = core->task_exit.slot;
    struct slot_end *end = &job->ends[slot];
    if (core->task_exit.incarnation < end->now.incarnation) {
        return;
    }
    end->now = (struct store_task_exit){.slot = slot,
        .incarnation = core->task_exit.incarnation,
        .state = core->task_exit.state,
        .exit = core->task_exit.exit};
    bool first = job->first_changed > job->last_changed;
    job->first_changed = first || slot < job->first_changed ? slot : job->first_changed;
    job->last_changed = first || slot > job->last_changed ? slot : job->last_changed;
}

static void apply(struct memory_store *memory, const struct store_record *record)
{
    const struct core_record *core = record->record;
    struct memory_job *job = find(memory, core->job);
    job->changed = true;
    switch (core->type) {
    case CORE_RECORD_JOB:
        memory->job_id_max = job->id.n > memory->job_id_max ? job->id.n : memory->job_id_max;
        break;
    case CORE_RECORD_STARTED:
        job->now.started_us = record->wall_us;
        job->now.incarnation_max = core->incarnation_max;
        break;
    case CORE_RECORD_PLAN:
        job->now.generation = core->plan.generation;
        job->now.position = core->plan.resume;
        break;
    case CORE_RECORD_WATERMARK:
        job->now.generation = core->watermark.generation;
        job->now.position = core->watermark.up_to;
        break;
    case CORE_RECORD_CHECKPOINT:
        if (core->checkpoint.position >= job->now.checkpoint_position) {
            job->now.checkpoint_position = core->checkpoint.position;
            name_checkpoint(&job->now, core->checkpoint.slot, core->checkpoint.path);
        }
        break;
    case CORE_RECORD_TASK_EXIT:
        apply_exit(job, core);
        break;
    case CORE_RECORD_ENDED:
        job->now.state = core->ended.state;
        job->now.code = core->ended.code;
        job->now.exit_code = core->ended.exit_code;
        job->now.ended_us = record->wall_us;
        memcpy(job->now.text, core->ended.text, sizeof job->now.text);
        break;
    case CORE_RECORD_END_OF_DATA:
    case CORE_RECORD_DONE:
        break; /* nothing that a load reports depends on them */
    }
}

static void sync_all(struct memory_store *memory)
{
    for (struct memory_job *job = memory->jobs; job != NULL; job = job->next) {
        if (!job->changed) {
            continue;
        }
        for (uint64_t slot = job->first_changed; slot <= job->last_changed; slot++) {
            job->ends[slot].durable = job->ends[slot].now;
        }
        job->durable = job->now;
        job->synced = true;
        forget_changes(job);
    }
    memory->job_id_max_durable = memory->job_id_max;
}

static cadre_status memory_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct memory_store *memory = memory_of(store);
    if (count == 0) {
        return CADRE_OK;
    }
    for (size_t i = 0; i < count; i++) {
        cadre_status status = prepare(memory, &records[i], error);
        if (status == CADRE_OK) {
            continue;
        }
        while (i > 0) {
            i--;
            if (records[i].record->type == CORE_RECORD_JOB) {
                remove_job(memory, records[i].record->job);
            }
        }
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        apply(memory, &records[i]);
    }
    if (sync) {
        sync_all(memory);
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
    for (uint32_t slot = 0; job->ends != NULL && slot < job->tasks; slot++) {
        if (job->ends[slot].now.incarnation != 0) {
            visit(user, &job->ends[slot].now);
        }
    }
    return CADRE_OK;
}

static cadre_status memory_forget(struct store *store, struct job_id id, struct cadre_error *error)
{
    struct memory_store *memory = memory_of(store);
    if (find(memory, id) == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "the store has no job %llu", (unsigned long long)id.n);
    }
    remove_job(memory, id);
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
    struct memory_store *memory = memory_of(store);
    struct memory_job **at = &memory->jobs;
    while (*at != NULL) {
        struct memory_job *job = *at;
        if (!job->synced) {
            *at = job->next;
            free_job(job);
            continue;
        }
        for (uint64_t slot = job->first_changed; slot <= job->last_changed; slot++) {
            job->ends[slot].now = job->ends[slot].durable;
        }
        job->now = job->durable;
        forget_changes(job);
        at = &job->next;
    }
    memory->job_id_max = memory->job_id_max_durable;
}
