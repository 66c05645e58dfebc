/* SPDX-License-Identifier: Apache-2.0
 * Owns the entries of all jobs, in order of id: what listings show besides the core's live state.
 * Called by the engine when it loads, records and removes jobs. */
#include "coordinator/engine/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

void directory_entry_free(struct directory_entry *entry)
{
    if (entry == NULL) {
        return;
    }
    wire_arena_free(entry->arena);
    wire_buffer_free(&entry->packed);
    free(entry->tasks);
    free(entry->checkpoints);
    members_sent_free(&entry->members_sent);
    directory_shards_free(&entry->shards);
    free(entry);
}

void directory_clear(struct directory *directory)
{
    for (size_t i = 0; i < directory->count; i++) {
        directory_entry_free(directory->entries[i]);
    }
    free(directory->entries);
    directory_requests_free(&directory->requests);
    *directory = (struct directory){0};
}

/* An entry whose spec is unpacked from bytes into an arena of its own. */
static cadre_status entry_of_packed(const void *packed, size_t packed_bytes,
    struct directory_entry **ret_entry, struct cadre_error *error)
{
    struct directory_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a job");
    }
    entry->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    cadre_status status;
    if (entry->arena == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a job's spec");
    } else {
        status = wire_unpack_job_spec(packed, packed_bytes, entry->arena, &entry->spec, error);
    }
    if (status == CADRE_OK) {
        entry->task_count = entry->spec.workers;
        entry->tasks = calloc(entry->task_count > 0 ? entry->task_count : 1, sizeof *entry->tasks);
        if (entry->tasks == NULL) {
            status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %u tasks of a job", entry->task_count);
        }
    }
    if (status != CADRE_OK) {
        directory_entry_free(entry);
        return status;
    }
    entry->state = JOB_QUEUED;
    *ret_entry = entry;
    return CADRE_OK;
}

cadre_status directory_entry_new(
    const struct job_spec *spec, struct directory_entry **ret_entry, struct cadre_error *error)
{
    struct wire_buffer packed = {0};
    cadre_status status = wire_pack_job_spec(spec, &packed, error);
    if (status == CADRE_OK) {
        status = entry_of_packed(packed.bytes, packed.size, ret_entry, error);
    }
    if (status != CADRE_OK) {
        wire_buffer_free(&packed);
        return status;
    }
    (*ret_entry)->packed = packed;
    return CADRE_OK;
}

void directory_task_placed(
    struct directory_entry *entry, uint32_t slot, uint64_t incarnation, const char *worker)
{
    CADRE_ASSERT(slot < entry->task_count);
    struct directory_task *task = &entry->tasks[slot];
    *task = (struct directory_task){
        .incarnation = incarnation, .log_bytes = task->log_bytes, .started = task->started};
    snprintf(task->worker, sizeof task->worker, "%s", worker);
}

void directory_task_exit(struct directory_entry *entry, const struct store_task_exit *exit)
{
    CADRE_ASSERT(exit->slot < entry->task_count);
    struct directory_task *task = &entry->tasks[exit->slot];
    if (exit->incarnation < task->incarnation) {
        return; /* of one that was replaced */
    }
    task->incarnation = exit->incarnation;
    task->state = exit->state;
    task->has_exit = exit->state == TASK_EXITED;
    task->exit = exit->exit;
}

static void fill_from_store(struct directory_entry *entry, const struct store_job *job)
{
    const struct core_restore_job *restore = &job->restore;
    entry->id = restore->job;
    entry->submitted_us = job->submitted_us;
    entry->started_us = job->started_us;
    entry->ended_us = job->ended_us;
    entry->state = job->state;
    entry->code = job->code;
    entry->exit_code = job->exit_code;
    entry->position = job->position;
    entry->verified = restore->verified;
    entry->generation = restore->generation.number;
    entry->restarts = restore->restarts;
    entry->restores = job->restores;
    entry->origin = job->origin;
    entry->newest_lost = job->lost;
    snprintf(entry->text, sizeof entry->text, "%s", job->text);
    for (size_t i = 0; i < restore->task_count; i++) {
        const struct core_restore_task *task = &restore->tasks[i];
        directory_task_placed(entry, task->slot, task->incarnation, task->worker);
        entry->tasks[task->slot].sent_hello = task->rank != UINT32_MAX;
    }
}

/* The chief of a ps job is the only member of its ledger. */
static bool ranks_fit(const struct job_spec *spec, const struct core_restore_job *restore)
{
    bool fit = restore->roster <= 1;
    for (size_t i = 0; i < restore->task_count; i++) {
        fit = fit && (restore->tasks[i].slot == 0 || restore->tasks[i].rank == UINT32_MAX);
    }
    return fit || !ps_job_is_set(&spec->ps_job);
}

cadre_status directory_entry_load(
    const struct store_job *job, struct directory_entry **ret_entry, struct cadre_error *error)
{
    const struct core_restore_job *restore = &job->restore;
    struct directory_entry *entry = NULL;
    cadre_status status = entry_of_packed(job->spec, job->spec_bytes, &entry, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(
            error, status, "job %llu in the store", (unsigned long long)restore->job.n);
    }
    if (restore->spec.tasks != entry->task_count) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "job %llu in the store has %u tasks and a spec of %u: it is damaged",
            (unsigned long long)restore->job.n, restore->spec.tasks, entry->task_count);
        directory_entry_free(entry);
        return status;
    }
    if (!ranks_fit(&entry->spec, restore)) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "job %llu in the store has parameter servers, and other members than its chief: it is "
            "damaged",
            (unsigned long long)restore->job.n);
        directory_entry_free(entry);
        return status;
    }
    fill_from_store(entry, job);
    *ret_entry = entry;
    return CADRE_OK;
}

/* For a job whose own row is lost: so that it can be listed. */
static cadre_status entry_without_spec(
    struct directory_entry **ret_entry, struct cadre_error *error)
{
    const struct job_spec spec = {
        .name = "(damaged)", .program = {.name = "(damaged)"}, .workers = 1, .strategy = ""};
    cadre_status status = directory_entry_new(&spec, ret_entry, error);
    if (status == CADRE_OK) {
        wire_buffer_free(&(*ret_entry)->packed);
    }
    return status;
}

cadre_status directory_entry_damaged(
    const struct store_job *job, struct directory_entry **ret_entry, struct cadre_error *error)
{
    struct directory_entry *entry = NULL;
    CADRE_TRY(job->spec != NULL ? entry_of_packed(job->spec, job->spec_bytes, &entry, error)
                                : entry_without_spec(&entry, error));
    fill_from_store(entry, job);
    entry->damaged = true;
    if (!job_state_is_final(entry->state)) {
        entry->state = JOB_FAILED;
        entry->code = CADRE_DATA_LOSS;
        entry->exit_code = 1;
        entry->ended_us = clock_wall_us();
    }
    size_t length = strlen(entry->text);
    snprintf(entry->text + length, sizeof entry->text - length,
        "%sthe ledger is damaged and lost %s: put a copy of the state directory back, or submit "
        "the job again",
        length > 0 ? "; since then " : "", job->damage);
    *ret_entry = entry;
    return CADRE_OK;
}

cadre_status directory_add(
    struct directory *directory, struct directory_entry *entry, struct cadre_error *error)
{
    CADRE_ASSERT(
        directory->count == 0 || directory->entries[directory->count - 1]->id.n < entry->id.n);
    if (directory->count == directory->capacity) {
        size_t capacity = directory->capacity > 0 ? directory->capacity * 2 : 64;
        struct directory_entry **grown = realloc(directory->entries, capacity * sizeof(*grown));
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory to list %zu jobs", capacity);
        }
        directory->entries = grown;
        directory->capacity = capacity;
    }
    if (entry->spec.has_request_id) {
        CADRE_TRY(directory_requests_add(&directory->requests, entry, error));
    }
    directory->entries[directory->count++] = entry;
    directory->ended += job_state_is_final(entry->state) ? 1 : 0;
    return CADRE_OK;
}

/* The index of the first entry whose id is not less than `id`. */
static size_t lower_bound(const struct directory *directory, struct job_id id)
{
    size_t low = 0;
    size_t high = directory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (directory->entries[middle]->id.n < id.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct directory_entry *directory_find(const struct directory *directory, struct job_id id)
{
    size_t at = lower_bound(directory, id);
    bool found = at < directory->count && directory->entries[at]->id.n == id.n;
    return found ? directory->entries[at] : NULL;
}

struct directory_entry *directory_find_request(
    const struct directory *directory, const struct job_spec *spec)
{
    return spec->has_request_id ? directory_requests_find(&directory->requests, spec->request_id)
                                : NULL;
}

void directory_note_ended(struct directory *directory)
{
    directory->ended++;
}

void directory_note_going(struct directory *directory, struct directory_entry *entry)
{
    CADRE_ASSERT(!entry->going && job_state_is_final(entry->state));
    entry->going = true;
    directory->going++;
}

void directory_remove(struct directory *directory, struct job_id id)
{
    size_t at = lower_bound(directory, id);
    CADRE_ASSERT(at < directory->count && directory->entries[at]->id.n == id.n);
    directory->ended -= job_state_is_final(directory->entries[at]->state) ? 1 : 0;
    directory->going -= directory->entries[at]->going ? 1 : 0;
    directory_requests_remove(&directory->requests, directory->entries[at]);
    directory_entry_free(directory->entries[at]);
    memmove(&directory->entries[at], &directory->entries[at + 1],
        (directory->count - at - 1) * sizeof(*directory->entries));
    directory->count--;
}

static void name_newest(struct directory_entry *entry)
{
    entry->checkpoint[0] = '\0';
    if (entry->checkpoint_count > 0) {
        const char *path = entry->checkpoints[entry->checkpoint_count - 1].path;
        const char *slash = strrchr(path, '/');
        snprintf(entry->checkpoint, sizeof entry->checkpoint, "checkpoints/%s",
            slash != NULL ? slash + 1 : path);
    }
}

cadre_status directory_checkpoint_add(struct directory_entry *entry,
    const struct core_checkpoint *checkpoint, struct cadre_error *error)
{
    if (entry->checkpoint_count == entry->checkpoint_capacity) {
        size_t capacity = entry->checkpoint_capacity > 0 ? entry->checkpoint_capacity * 2 : 4;
        struct core_checkpoint *grown = realloc(entry->checkpoints, capacity * sizeof *grown);
        if (grown == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %zu checkpoints of job %llu", capacity,
                (unsigned long long)entry->id.n);
        }
        entry->checkpoints = grown;
        entry->checkpoint_capacity = capacity;
    }
    size_t at = entry->checkpoint_count;
    while (at > 0 && entry->checkpoints[at - 1].position >= checkpoint->position) {
        at--;
    }
    bool again =
        at < entry->checkpoint_count && entry->checkpoints[at].position == checkpoint->position;
    if (!again) {
        memmove(&entry->checkpoints[at + 1], &entry->checkpoints[at],
            (entry->checkpoint_count - at) * sizeof entry->checkpoints[0]);
        entry->checkpoint_count++;
    }
    entry->checkpoints[at] = *checkpoint;
    name_newest(entry);
    return CADRE_OK;
}

size_t directory_checkpoints_surplus(const struct directory_entry *entry)
{
    uint32_t kept = entry->spec.checkpoints_kept > 0 ? entry->spec.checkpoints_kept
                                                     : LIMIT_CHECKPOINTS_KEPT_DEFAULT;
    return entry->checkpoint_count > kept ? entry->checkpoint_count - kept : 0;
}

const struct core_checkpoint *directory_checkpoint_before(
    const struct directory_entry *entry, uint64_t position)
{
    for (size_t i = entry->checkpoint_count; i > 0; i--) {
        if (entry->checkpoints[i - 1].position < position) {
            return &entry->checkpoints[i - 1];
        }
    }
    return entry->restores && entry->origin.position < position ? &entry->origin : NULL;
}

void directory_checkpoint_lose(
    struct directory_entry *entry, const struct core_checkpoint_lost *lost)
{
    if (lost->position >= entry->newest_lost.position) {
        entry->newest_lost = *lost;
    }
    for (size_t i = 0; i < entry->checkpoint_count; i++) {
        if (entry->checkpoints[i].position == lost->position) {
            entry->checkpoint_count--;
            memmove(&entry->checkpoints[i], &entry->checkpoints[i + 1],
                (entry->checkpoint_count - i) * sizeof entry->checkpoints[0]);
            name_newest(entry);
            return;
        }
    }
}

void directory_checkpoint_drop_oldest(struct directory_entry *entry)
{
    CADRE_ASSERT(entry->checkpoint_count > 0);
    entry->checkpoint_count--;
    memmove(&entry->checkpoints[0], &entry->checkpoints[1],
        entry->checkpoint_count * sizeof entry->checkpoints[0]);
    name_newest(entry);
}

void directory_progress_set(struct directory_progress *progress, const struct progress *value)
{
    progress->present = true;
    progress->value = *value;
    snprintf(progress->stream, sizeof progress->stream, "%s", value->stream);
    progress->value.stream = progress->stream;
    size_t count = value->metric_count < LIMIT_METRICS ? value->metric_count : LIMIT_METRICS;
    for (size_t i = 0; i < count; i++) {
        snprintf(progress->names[i], sizeof progress->names[i], "%s", value->metrics[i].name);
        progress->metrics[i] =
            (struct metric){.name = progress->names[i], .value = value->metrics[i].value};
    }
    progress->value.metrics = progress->metrics;
    progress->value.metric_count = count;
}
