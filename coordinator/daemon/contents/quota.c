/* SPDX-License-Identifier: Apache-2.0
 * Counts what the state directory holds and keeps the quotas; jobs.c, receive.c, part_check.c
 * and main.c call it. */
#include "coordinator/daemon/contents/quota.h"

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
#include "coordinator/daemon/objects/object_names.h"

#define EXPIRY_CHECK_US (10 * CADRE_US_PER_S)

/* Then what changes while it is listed may count twice, or not, until the next start. */
#define LIST_ROUNDS 4

struct job_sizes {
    struct job_id id;
    uint64_t logs_bytes;
    uint64_t outputs_bytes;
    bool changed; /* since what is in the object store is being listed */
    bool going;   /* it is forgotten, but the shared log has not stored that yet */
};

/* What a thread counts in an object store. Whether the list of a job that changed meanwhile has the
 * change is not known: such jobs are listed again, each by itself. */
struct quota_listing {
    struct daemon *daemon;
    struct file_work work;
    char *folder;           /* of all jobs */
    unsigned round;         /* 0: all of them */
    struct job_sizes *jobs; /* in the order of their names */
    size_t count;
    size_t capacity;
    struct cadre_error error;
};

struct quota {
    struct quota_sizes sizes; /* without the blobs, which contents.h counts */
    struct job_sizes *jobs;   /* in order of id */
    size_t count;
    size_t capacity;
    size_t going; /* jobs */
    uint64_t incoming_bytes;
    uint64_t looked_us;
};

static size_t index_of(const struct quota *quota, struct job_id job)
{
    size_t low = 0;
    size_t high = quota->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (quota->jobs[middle].id.n < job.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* NULL: no memory; then the total is still right, and the job has no quota until the next start. */
static struct job_sizes *sizes_of(struct quota *quota, struct job_id job)
{
    size_t at = index_of(quota, job);
    if (at < quota->count && quota->jobs[at].id.n == job.n) {
        return &quota->jobs[at];
    }
    if (quota->count == quota->capacity) {
        size_t capacity = quota->capacity > 0 ? quota->capacity * 2 : 64;
        struct job_sizes *grown = realloc(quota->jobs, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        quota->jobs = grown;
        quota->capacity = capacity;
    }
    memmove(&quota->jobs[at + 1], &quota->jobs[at], (quota->count - at) * sizeof quota->jobs[0]);
    quota->count++;
    quota->jobs[at] = (struct job_sizes){.id = job};
    return &quota->jobs[at];
}

static void change_by(uint64_t *bytes, int64_t change)
{
    uint64_t less = change < 0 ? (uint64_t)-change : 0;
    *bytes = change >= 0 ? *bytes + (uint64_t)change : *bytes > less ? *bytes - less : 0;
}

void quota_add_incoming(struct quota *quota, int64_t change)
{
    if (quota != NULL) {
        change_by(&quota->incoming_bytes, change);
    }
}

void quota_log(struct quota *quota, struct job_id job, int64_t change)
{
    struct job_sizes *sizes = quota != NULL ? sizes_of(quota, job) : NULL;
    if (sizes != NULL) {
        sizes->changed = true;
        change_by(&sizes->logs_bytes, change);
        change_by(&quota->sizes.logs_bytes, change);
    }
}

void quota_output(struct quota *quota, struct job_id job, int64_t change)
{
    struct job_sizes *sizes = quota != NULL ? sizes_of(quota, job) : NULL;
    if (sizes != NULL) {
        sizes->changed = true;
        change_by(&sizes->outputs_bytes, change);
        change_by(&quota->sizes.outputs_bytes, change);
    }
}

void quota_forget_job(struct quota *quota, struct job_id job)
{
    size_t at = quota != NULL ? index_of(quota, job) : 0;
    if (quota == NULL || at == quota->count || quota->jobs[at].id.n != job.n) {
        return;
    }
    quota->going -= quota->jobs[at].going ? 1 : 0;
    change_by(&quota->sizes.logs_bytes, -(int64_t)quota->jobs[at].logs_bytes);
    change_by(&quota->sizes.outputs_bytes, -(int64_t)quota->jobs[at].outputs_bytes);
    memmove(
        &quota->jobs[at], &quota->jobs[at + 1], (quota->count - at - 1) * sizeof quota->jobs[0]);
    quota->count--;
}

struct quota_sizes quota_sizes(const struct daemon *daemon)
{
    struct quota_sizes sizes = {0};
    if (daemon->quota != NULL) {
        sizes = daemon->quota->sizes;
        sizes.blobs_bytes = contents_bytes(daemon->contents);
    }
    return sizes;
}

uint64_t quota_job_bytes(const struct quota *quota, struct job_id job)
{
    size_t at = quota != NULL ? index_of(quota, job) : 0;
    bool found = quota != NULL && at < quota->count && quota->jobs[at].id.n == job.n;
    return found ? quota->jobs[at].logs_bytes + quota->jobs[at].outputs_bytes : 0;
}

/* ---- counting at the start ---- */

/* Calls `visit` with each regular file below `folder`. */
static void quota_walk(struct quota *quota, const char *folder, struct job_id job,
    void (*visit)(struct quota *quota, struct job_id job, const char *path, uint64_t bytes))
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
            quota_walk(quota, path, job, visit);
        } else if (S_ISREG(status.st_mode)) {
            visit(quota, job, path, (uint64_t)status.st_size);
        }
    }
}

/* Counts "<slot>", not the files beside it. */
static void count_log(struct quota *quota, struct job_id job, const char *path, uint64_t bytes)
{
    const char *name = strrchr(path, '/') + 1;
    if (strchr(name, '.') == NULL) {
        struct log_hole hole = log_hole_read(path);
        quota_log(quota, job, (int64_t)(bytes - log_hole_bytes(&hole)));
    }
}

static void count_output(struct quota *quota, struct job_id job, const char *path, uint64_t bytes)
{
    (void)path;
    quota_output(quota, job, (int64_t)bytes);
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to count what is kept");
}

/* Those of the job, which are the last ones if it was the last one; NULL: no memory. */
static struct job_sizes *listed_sizes_of(struct quota_listing *listing, uint64_t job)
{
    if (listing->count > 0 && listing->jobs[listing->count - 1].id.n == job) {
        return &listing->jobs[listing->count - 1];
    }
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity > 0 ? 2 * listing->capacity : 256;
        struct job_sizes *grown = realloc(listing->jobs, capacity * sizeof *grown);
        if (grown == NULL) {
            no_memory(&listing->error);
            return NULL;
        }
        listing->jobs = grown;
        listing->capacity = capacity;
    }
    listing->jobs[listing->count] = (struct job_sizes){.id = {job}};
    return &listing->jobs[listing->count++];
}

/* "<id>/logs/...", "<id>/outputs/...", "<id>/series/...". */
static bool count_object(void *user, const struct storage_entry *entry)
{
    struct quota_listing *listing = user;
    const char *name = objects_name_beneath(listing->folder, entry->path);
    char *end = NULL;
    uint64_t job = strtoull(name, &end, 10);
    if (entry->is_folder || end == name || *end != '/') {
        return true;
    }
    struct job_sizes *sizes = listed_sizes_of(listing, job);
    if (sizes != NULL && strncmp(end, "/outputs/", 9) == 0) {
        sizes->outputs_bytes += entry->info.bytes;
    } else if (sizes != NULL) {
        sizes->logs_bytes += entry->info.bytes;
    }
    return sizes != NULL;
}

static cadre_status list_all(struct quota_listing *listing)
{
    return objects_list(
        listing->daemon->objects, listing->folder, true, count_object, listing, &listing->error);
}

/* It is the last one. */
static cadre_status list_one(struct quota_listing *listing, struct job_id job)
{
    struct objects *objects = listing->daemon->objects;
    CADRE_FREE_AT_EXIT char *folder = object_name_of_job(objects, job);
    do {
        struct job_sizes *sizes = listed_sizes_of(listing, job.n);
        if (sizes == NULL) {
            return listing->error.code;
        }
        *sizes = (struct job_sizes){.id = job};
        listing->error = (struct cadre_error){0};
    } while (objects_list(objects, folder, true, count_object, listing, &listing->error) ==
                 CADRE_UNAVAILABLE &&
             objects_wait(objects));
    return listing->error.code;
}

/* Those that changed. */
static cadre_status list_each(struct quota_listing *listing)
{
    size_t count = listing->count;
    CADRE_FREE_AT_EXIT struct job_sizes *jobs = calloc(count + 1, sizeof *jobs);
    if (jobs == NULL) {
        return no_memory(&listing->error);
    }
    memcpy(jobs, listing->jobs, count * sizeof *jobs);
    listing->count = 0;
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(list_one(listing, jobs[i].id));
    }
    return CADRE_OK;
}

static void list_in_thread(void *user)
{
    struct quota_listing *listing = user;
    if (listing->round > 0) {
        (void)list_each(listing);
        return;
    }
    do {
        listing->count = 0;
        listing->error = (struct cadre_error){0};
    } while (list_all(listing) == CADRE_UNAVAILABLE && objects_wait(listing->daemon->objects));
}

/* The job has what was listed. */
static void take_listed(struct quota *quota, const struct job_sizes *listed)
{
    const struct job_sizes *sizes = sizes_of(quota, listed->id);
    if (sizes != NULL) {
        quota_log(quota, listed->id, (int64_t)(listed->logs_bytes - sizes->logs_bytes));
        quota_output(quota, listed->id, (int64_t)(listed->outputs_bytes - sizes->outputs_bytes));
    }
}

/* Leaves those that changed since their list began, to be listed again. */
static void take_unchanged(struct quota_listing *listing)
{
    const struct daemon *daemon = listing->daemon;
    size_t again = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct job_sizes listed = listing->jobs[i];
        struct job_sizes *sizes = engine_job_spec(daemon->engine, listed.id) != NULL
                                      ? sizes_of(daemon->quota, listed.id)
                                      : NULL;
        if (sizes == NULL) {
            continue; /* it is forgotten, or there is no memory */
        }
        if (sizes->changed && listing->round + 1 < LIST_ROUNDS) {
            sizes->changed = false;
            listing->jobs[again++] = listed;
        } else {
            take_listed(daemon->quota, &listed);
        }
    }
    listing->count = again;
}

static void after_list(void *user)
{
    struct quota_listing *listing = user;
    cadre_status status = listing->error.code;
    if (status == CADRE_OK) {
        take_unchanged(listing);
    } else if (status != CADRE_CANCELLED) {
        log_event(LOG_LEVEL_WARNING, "storage", "what jobs keep in the object store is not counted",
            LOG_STR("reason", listing->error.text));
    }
    if (status == CADRE_OK && listing->count > 0) {
        listing->round++;
        file_work_start(
            &listing->work, &listing->daemon->file_pool, list_in_thread, after_list, listing);
        return;
    }
    free(listing->folder);
    free(listing->jobs);
    free(listing);
}

static cadre_status quota_count_objects(struct daemon *daemon, struct cadre_error *error)
{
    struct quota_listing *listing = calloc(1, sizeof *listing);
    char *folder = objects_path(daemon->objects, "jobs");
    if (listing == NULL || folder == NULL) {
        free(listing);
        free(folder);
        return no_memory(error);
    }
    listing->daemon = daemon;
    listing->folder = folder;
    file_work_start(&listing->work, &daemon->file_pool, list_in_thread, after_list, listing);
    return CADRE_OK;
}

cadre_status quota_open(struct daemon *daemon, struct cadre_error *error)
{
    struct engine_job_brief info;
    struct quota *quota = calloc(1, sizeof *quota);
    if (quota == NULL) {
        return no_memory(error);
    }
    if (daemon->objects != NULL) {
        daemon->quota = quota;
        return quota_count_objects(daemon, error);
    }
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        CADRE_FREE_AT_EXIT char *logs = NULL;
        CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, info.id);
        CADRE_FREE_AT_EXIT char *series = path_of_series(daemon, info.id);
        struct stat status;
        if (outputs == NULL || series == NULL ||
            asprintf(&logs, "%s/%" PRIu64 "/logs", daemon->job_dir, info.id.n) < 0) {
            logs = NULL;
            quota_close(quota);
            return no_memory(error);
        }
        quota_walk(quota, logs, info.id, count_log);
        quota_walk(quota, outputs, info.id, count_output);
        if (stat(series, &status) == 0) {
            quota_log(quota, info.id, (int64_t)status.st_size);
        }
    }
    daemon->quota = quota;
    return CADRE_OK;
}

void quota_close(struct quota *quota)
{
    if (quota != NULL) {
        free(quota->jobs);
        free(quota);
    }
}

/* ---- quotas ---- */

static uint64_t quota_total(const struct daemon *daemon)
{
    struct quota_sizes sizes = quota_sizes(daemon);
    return sizes.blobs_bytes + sizes.logs_bytes + sizes.outputs_bytes +
           daemon->quota->incoming_bytes;
}

/* With a shared log the job is there until its removal is stored. */
static void note_going(struct daemon *daemon, struct job_id job)
{
    struct job_sizes *sizes =
        engine_job_spec(daemon->engine, job) != NULL ? sizes_of(daemon->quota, job) : NULL;
    if (sizes != NULL) {
        sizes->going = true;
        daemon->quota->going++;
    }
}

static bool is_going(const struct quota *quota, struct job_id job)
{
    size_t at = index_of(quota, job);
    return at < quota->count && quota->jobs[at].id.n == job.n && quota->jobs[at].going;
}

static void quota_forget(struct daemon *daemon, struct job_id job, const char *why)
{
    struct cadre_error error = {0};
    uint64_t bytes = quota_job_bytes(daemon->quota, job);
    if (engine_forget_job(daemon->engine, job, &error) != CADRE_OK) {
        daemon_fail(daemon, &error); /* the ledger cannot be written */
        return;
    }
    note_going(daemon, job);
    daemon->quota->sizes.forgotten++;
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
    uint64_t bytes = daemon->quota->incoming_bytes;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        bool goes = is_removable(daemon, &info) || is_going(daemon->quota, info.id);
        bytes += goes ? 0 : quota_job_bytes(daemon->quota, info.id);
    }
    return bytes;
}

cadre_status quota_reserve(
    struct daemon *daemon, uint64_t bytes, const char *what, struct cadre_error *error)
{
    uint64_t limit = daemon->options.storage_quota_bytes;
    struct quota *quota = daemon->quota;
    struct job_id oldest;
    if (limit == 0 || quota == NULL) {
        return CADRE_OK;
    }
    bool fits = bytes <= limit && quota_total(daemon) <= limit - bytes;
    bool may_fit = fits || (bytes <= limit && bytes_unremovable(daemon) <= limit - bytes);
    /* Not while the freed contents are not known: how many a job frees that is going is known when
     * it is gone, so that the quota may be exceeded for one round trip of the shared log. */
    while (may_fit && quota_total(daemon) + bytes > limit && daemon->failed == CADRE_OK &&
           quota->going == 0 && !content_references_are_loading(daemon->content_references) &&
           oldest_ended(daemon, &oldest)) {
        struct cadre_error ignored = {0};
        quota_forget(daemon, oldest, "room is needed: --storage-quota");
        (void)content_references_refresh(daemon, &ignored);
    }
    if (may_fit && (quota->going > 0 || quota_total(daemon) + bytes <= limit)) {
        return CADRE_OK;
    }
    quota->sizes.refused++;
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the coordinator's storage is full, %s does not fit: %" PRIu64 " of %" PRIu64
        " bytes (--storage-quota) are used by jobs that have not ended, and by files that became "
        "unused less than an hour ago; cancel jobs, keep fewer checkpoints, or raise the quota",
        what, quota_total(daemon), limit);
}

cadre_status quota_reserve_job(struct daemon *daemon, struct job_id job, uint64_t bytes,
    uint64_t checkpoints, const char *what, struct cadre_error *error)
{
    uint64_t limit = daemon->options.job_quota_bytes;
    uint64_t used = quota_job_bytes(daemon->quota, job) + checkpoints;
    if (limit == 0 || daemon->quota == NULL || (bytes <= limit && used <= limit - bytes)) {
        return CADRE_OK;
    }
    daemon->quota->sizes.refused++;
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "the storage of job %" PRIu64 " is full, %s of %" PRIu64
        " bytes does not fit: it has %" PRIu64 " of %" PRIu64
        " bytes (--job-quota of the coordinator) in logs, outputs and checkpoints; "
        "keep fewer checkpoints, write less, or raise the quota",
        job.n, what, bytes, used, limit);
}

void quota_expire_jobs(struct daemon *daemon)
{
    uint64_t keep_us = daemon->options.keep_for_us;
    if (keep_us == 0 || daemon->quota == NULL) {
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t wall_us = clock_wall_us();
    if (wall_us < keep_us || now_us - daemon->quota->looked_us < EXPIRY_CHECK_US) {
        return;
    }
    daemon->quota->looked_us = now_us;
    struct engine_job_brief info;
    /* From the oldest: forgetting a job does not move those that come next. */
    for (uint32_t i = engine_job_count(daemon->engine); i > 0 && daemon->failed == CADRE_OK; i--) {
        if (engine_job_brief_at(daemon->engine, i - 1, &info) &&
            info.ended_us < wall_us - keep_us && is_removable(daemon, &info)) {
            quota_forget(daemon, info.id, "it ended long ago: --keep-for");
        }
    }
}
