/* SPDX-License-Identifier: Apache-2.0
 * Counts what the state directory holds and keeps the quotas; jobs.c, receive.c, part_check.c
 * and main.c call it. */
#include "coordinator/daemon/contents/storage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"

#define EXPIRY_CHECK_US (10 * CADRE_US_PER_S)

struct job_sizes {
    struct job_id id;
    uint64_t logs_bytes;
    uint64_t outputs_bytes;
    bool going; /* it is forgotten, but the shared log has not stored that yet */
};

struct storage {
    struct storage_sizes sizes; /* without the blobs, which contents.h counts */
    struct job_sizes *jobs;     /* in order of id */
    size_t count;
    size_t capacity;
    size_t going; /* jobs */
    uint64_t incoming_bytes;
    uint64_t looked_us;
};

static size_t index_of(const struct storage *storage, struct job_id job)
{
    size_t low = 0;
    size_t high = storage->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (storage->jobs[middle].id.n < job.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* NULL: no memory; then the total is still right, and the job has no quota until the next start. */
static struct job_sizes *sizes_of(struct storage *storage, struct job_id job)
{
    size_t at = index_of(storage, job);
    if (at < storage->count && storage->jobs[at].id.n == job.n) {
        return &storage->jobs[at];
    }
    if (storage->count == storage->capacity) {
        size_t capacity = storage->capacity > 0 ? storage->capacity * 2 : 64;
        struct job_sizes *grown = realloc(storage->jobs, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        storage->jobs = grown;
        storage->capacity = capacity;
    }
    memmove(&storage->jobs[at + 1], &storage->jobs[at],
        (storage->count - at) * sizeof storage->jobs[0]);
    storage->count++;
    storage->jobs[at] = (struct job_sizes){.id = job};
    return &storage->jobs[at];
}

static void change_by(uint64_t *bytes, int64_t change)
{
    uint64_t less = change < 0 ? (uint64_t)-change : 0;
    *bytes = change >= 0 ? *bytes + (uint64_t)change : *bytes > less ? *bytes - less : 0;
}

void storage_add_incoming(struct storage *storage, int64_t change)
{
    if (storage != NULL) {
        change_by(&storage->incoming_bytes, change);
    }
}

void storage_log(struct storage *storage, struct job_id job, int64_t change)
{
    struct job_sizes *sizes = storage != NULL ? sizes_of(storage, job) : NULL;
    if (sizes != NULL) {
        change_by(&sizes->logs_bytes, change);
        change_by(&storage->sizes.logs_bytes, change);
    }
}

void storage_output(struct storage *storage, struct job_id job, int64_t change)
{
    struct job_sizes *sizes = storage != NULL ? sizes_of(storage, job) : NULL;
    if (sizes != NULL) {
        change_by(&sizes->outputs_bytes, change);
        change_by(&storage->sizes.outputs_bytes, change);
    }
}

void storage_forget_job(struct storage *storage, struct job_id job)
{
    size_t at = storage != NULL ? index_of(storage, job) : 0;
    if (storage == NULL || at == storage->count || storage->jobs[at].id.n != job.n) {
        return;
    }
    storage->going -= storage->jobs[at].going ? 1 : 0;
    change_by(&storage->sizes.logs_bytes, -(int64_t)storage->jobs[at].logs_bytes);
    change_by(&storage->sizes.outputs_bytes, -(int64_t)storage->jobs[at].outputs_bytes);
    memmove(&storage->jobs[at], &storage->jobs[at + 1],
        (storage->count - at - 1) * sizeof storage->jobs[0]);
    storage->count--;
}

struct storage_sizes storage_sizes(const struct daemon *daemon)
{
    struct storage_sizes sizes = {0};
    if (daemon->storage != NULL) {
        sizes = daemon->storage->sizes;
        sizes.blobs_bytes = contents_bytes(daemon->contents);
    }
    return sizes;
}

uint64_t storage_job_bytes(const struct storage *storage, struct job_id job)
{
    size_t at = storage != NULL ? index_of(storage, job) : 0;
    bool found = storage != NULL && at < storage->count && storage->jobs[at].id.n == job.n;
    return found ? storage->jobs[at].logs_bytes + storage->jobs[at].outputs_bytes : 0;
}

/* ---- counting at the start ---- */

/* Calls `visit` with each regular file below `folder`. */
static void storage_walk(struct storage *storage, const char *folder, struct job_id job,
    void (*visit)(struct storage *storage, struct job_id job, const char *path, uint64_t bytes))
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *opened = opendir(folder);
    const struct dirent *entry;
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        CADRE_FREE_AT_EXIT char *path = NULL;
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0) {
            path = NULL;
            return;
        }
        if (lstat(path, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            storage_walk(storage, path, job, visit);
        } else if (S_ISREG(status.st_mode)) {
            visit(storage, job, path, (uint64_t)status.st_size);
        }
    }
}

/* Counts "<slot>", not the files beside it. */
static void count_log(struct storage *storage, struct job_id job, const char *path, uint64_t bytes)
{
    const char *name = strrchr(path, '/') + 1;
    if (strchr(name, '.') == NULL) {
        struct log_hole hole = log_hole_read(path);
        storage_log(storage, job, (int64_t)(bytes - log_hole_bytes(&hole)));
    }
}

static void count_output(
    struct storage *storage, struct job_id job, const char *path, uint64_t bytes)
{
    (void)path;
    storage_output(storage, job, (int64_t)bytes);
}

cadre_status storage_open(struct daemon *daemon, struct cadre_error *error)
{
    struct engine_job_brief info;
    struct storage *storage = calloc(1, sizeof *storage);
    if (storage == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to count what is kept");
    }
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        CADRE_FREE_AT_EXIT char *logs = NULL;
        CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, info.id);
        CADRE_FREE_AT_EXIT char *series = path_of_series(daemon, info.id);
        struct stat status;
        if (outputs == NULL || series == NULL ||
            asprintf(&logs, "%s/%" PRIu64 "/logs", daemon->job_dir, info.id.n) < 0) {
            logs = NULL;
            storage_close(storage);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory to count what is kept");
        }
        storage_walk(storage, logs, info.id, count_log);
        storage_walk(storage, outputs, info.id, count_output);
        if (stat(series, &status) == 0) {
            storage_log(storage, info.id, (int64_t)status.st_size);
        }
    }
    daemon->storage = storage;
    return CADRE_OK;
}

void storage_close(struct storage *storage)
{
    if (storage != NULL) {
        free(storage->jobs);
        free(storage);
    }
}

/* ---- quotas ---- */

static uint64_t storage_total(const struct daemon *daemon)
{
    struct storage_sizes sizes = storage_sizes(daemon);
    return sizes.blobs_bytes + sizes.logs_bytes + sizes.outputs_bytes +
           daemon->storage->incoming_bytes;
}

/* With a shared log the job is there until its removal is stored. */
static void note_going(struct daemon *daemon, struct job_id job)
{
    struct job_sizes *sizes =
        engine_job_spec(daemon->engine, job) != NULL ? sizes_of(daemon->storage, job) : NULL;
    if (sizes != NULL) {
        sizes->going = true;
        daemon->storage->going++;
    }
}

static bool is_going(const struct storage *storage, struct job_id job)
{
    size_t at = index_of(storage, job);
    return at < storage->count && storage->jobs[at].id.n == job.n && storage->jobs[at].going;
}

static void storage_forget(struct daemon *daemon, struct job_id job, const char *why)
{
    struct cadre_error error = {0};
    uint64_t bytes = storage_job_bytes(daemon->storage, job);
    if (engine_forget_job(daemon->engine, job, &error) != CADRE_OK) {
        daemon_fail(daemon, &error); /* the ledger cannot be written */
        return;
    }
    note_going(daemon, job);
    daemon->storage->sizes.forgotten++;
    log_event(LOG_LEVEL_INFO, "storage", "a job that ended is forgotten", LOG_U64("job", job.n),
        LOG_U64("bytes", bytes), LOG_STR("reason", why));
}

static bool is_removable(struct daemon *daemon, const struct engine_job_brief *info)
{
    return job_state_is_final(info->state) && engine_job_may_go(daemon->engine, info->id);
}

/* The oldest job that ended and may be forgotten; false: there is none. */
static bool oldest_ended(struct daemon *daemon, struct job_id *ret_job)
{
    struct engine_job_brief info;
    uint64_t ended_us = UINT64_MAX;
    bool found = false;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        if (info.ended_us < ended_us && is_removable(daemon, &info)) {
            ended_us = info.ended_us;
            *ret_job = info.id;
            found = true;
        }
    }
    return found;
}

/* A lower bound of the bytes that no forgotten job frees: no job is forgotten without use. */
static uint64_t bytes_unremovable(struct daemon *daemon)
{
    struct engine_job_brief info;
    uint64_t bytes = daemon->storage->incoming_bytes;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        bool goes = is_removable(daemon, &info) || is_going(daemon->storage, info.id);
        bytes += goes ? 0 : storage_job_bytes(daemon->storage, info.id);
    }
    return bytes;
}

cadre_status storage_reserve(
    struct daemon *daemon, uint64_t bytes, const char *what, struct cadre_error *error)
{
    uint64_t quota = daemon->options.storage_quota_bytes;
    struct storage *storage = daemon->storage;
    struct job_id oldest;
    if (quota == 0 || storage == NULL) {
        return CADRE_OK;
    }
    bool fits = bytes <= quota && storage_total(daemon) <= quota - bytes;
    bool may_fit = fits || (bytes <= quota && bytes_unremovable(daemon) <= quota - bytes);
    /* Not while the freed contents are not known: how many a job frees that is going is known when
     * it is gone, so that the quota may be exceeded for one round trip of the shared log. */
    while (may_fit && storage_total(daemon) + bytes > quota && daemon->failed == CADRE_OK &&
           storage->going == 0 && !content_references_are_loading(daemon->content_references) &&
           oldest_ended(daemon, &oldest)) {
        struct cadre_error ignored = {0};
        storage_forget(daemon, oldest, "room is needed: --storage-quota");
        (void)content_references_refresh(daemon, &ignored);
    }
    if (may_fit && (storage->going > 0 || storage_total(daemon) + bytes <= quota)) {
        return CADRE_OK;
    }
    storage->sizes.refused++;
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the coordinator's storage is full, %s does not fit: %" PRIu64 " of %" PRIu64
        " bytes (--storage-quota) are used by jobs that have not ended, and by files that became "
        "unused less than an hour ago; cancel jobs, keep fewer checkpoints, or raise the quota",
        what, storage_total(daemon), quota);
}

cadre_status storage_reserve_job(struct daemon *daemon, struct job_id job, uint64_t bytes,
    uint64_t checkpoints, const char *what, struct cadre_error *error)
{
    uint64_t quota = daemon->options.job_quota_bytes;
    uint64_t used = storage_job_bytes(daemon->storage, job) + checkpoints;
    if (quota == 0 || daemon->storage == NULL || (bytes <= quota && used <= quota - bytes)) {
        return CADRE_OK;
    }
    daemon->storage->sizes.refused++;
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the storage of job %" PRIu64 " is full, %s of %" PRIu64
        " bytes does not fit: it has %" PRIu64 " of %" PRIu64
        " bytes (--job-quota of the coordinator) in logs, outputs and checkpoints; "
        "keep fewer checkpoints, write less, or raise the quota",
        job.n, what, bytes, used, quota);
}

void storage_expire_jobs(struct daemon *daemon)
{
    uint64_t keep_us = daemon->options.keep_for_us;
    if (keep_us == 0 || daemon->storage == NULL) {
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t wall_us = clock_wall_us();
    if (wall_us < keep_us || now_us - daemon->storage->looked_us < EXPIRY_CHECK_US) {
        return;
    }
    daemon->storage->looked_us = now_us;
    struct engine_job_brief info;
    /* From the oldest: forgetting a job does not move those that come next. */
    for (uint32_t i = engine_job_count(daemon->engine); i > 0 && daemon->failed == CADRE_OK; i--) {
        if (engine_job_brief_at(daemon->engine, i - 1, &info) &&
            info.ended_us < wall_us - keep_us && is_removable(daemon, &info)) {
            storage_forget(daemon, info.id, "it ended long ago: --keep-for");
        }
    }
}
