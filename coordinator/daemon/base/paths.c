/* SPDX-License-Identifier: Apache-2.0
 * The paths in the state directory:
 *     ledger.db  lock  blobs/<sha256>  jobs/<id>/logs/<slot>[.base|.gap|.marks]
 *     jobs/<id>/outputs/<slot>/<path>  jobs/<id>/files/<index>  jobs/<id>/series
 *     jobs/<id>.forgotten
 * With an object store cache/blobs and cache/jobs have copies of what is used. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/objects/object_names.h"
#include "common/rpc/file_work.h"

char *path_of_blob(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES])
{
    return sha256_path(daemon->blob_dir, sha256);
}

char *path_of_log(const struct daemon *daemon, struct job_id job, uint32_t slot)
{
    char *path = NULL;
    int length = asprintf(&path, "%s/%" PRIu64 "/logs/%" PRIu32, daemon->job_dir, job.n, slot);
    return length >= 0 ? path : NULL;
}

char *path_of_series(const struct daemon *daemon, struct job_id job)
{
    char *path = NULL;
    return asprintf(&path, "%s/%" PRIu64 "/series", daemon->job_dir, job.n) >= 0 ? path : NULL;
}

char *path_of_outputs(const struct daemon *daemon, struct job_id job)
{
    char *path = NULL;
    return asprintf(&path, "%s/%" PRIu64 "/outputs", daemon->job_dir, job.n) >= 0 ? path : NULL;
}

char *path_of_settled(const struct daemon *daemon, struct job_id job, uint32_t file)
{
    char *path = NULL;
    if (daemon->objects != NULL) {
        return object_name_of_settled(daemon->objects, job, file);
    }
    int length = asprintf(&path, "%s/%" PRIu64 "/files/%" PRIu32, daemon->job_dir, job.n, file);
    return length >= 0 ? path : NULL;
}

/* ---- the files of a forgotten job ---- */

#define FORGOTTEN ".forgotten"

struct forgotten {
    struct file_work work;
    struct daemon *daemon;
    char *path;
    uint64_t job;
    struct cadre_error error;
};

/* ---- of an object store: the object forgotten/<id> is there until all others are gone ---- */

static bool may_remove(const void *user)
{
    return leading_holds(&((const struct daemon *)user)->leading);
}

static cadre_status remove_objects(struct daemon *daemon, uint64_t job, struct cadre_error *error)
{
    struct objects *objects = daemon->objects;
    CADRE_FREE_AT_EXIT char *note = objects_path(objects, "forgotten/%" PRIu64, job);
    CADRE_FREE_AT_EXIT char *folder = object_name_of_job(objects, (struct job_id){job});
    if (!may_remove(daemon)) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "this coordinator does not know whether it leads still");
    }
    CADRE_TRY(objects_put(objects, note, "", 0, error));
    CADRE_TRY(objects_remove_all(objects, folder, may_remove, daemon, error));
    return objects_remove(objects, note, error);
}

/* A store that is away is waited for. */
static void remove_when_there(struct daemon *daemon, uint64_t job, struct cadre_error *error)
{
    do {
        *error = (struct cadre_error){0};
    } while (remove_objects(daemon, job, error) == CADRE_UNAVAILABLE && may_remove(daemon) &&
             objects_wait(daemon->objects));
}

struct forgotten_list {
    uint64_t *jobs;
    size_t count;
};

static bool add_forgotten(void *user, const struct storage_entry *entry)
{
    struct forgotten_list *list = user;
    const char *slash = strrchr(entry->path, '/');
    uint64_t job = 0;
    uint64_t *grown = realloc(list->jobs, (list->count + 1) * sizeof *grown);
    list->jobs = grown != NULL ? grown : list->jobs;
    if (grown != NULL && slash != NULL && sscanf(slash + 1, "%" SCNu64, &job) == 1) {
        list->jobs[list->count++] = job;
    }
    return grown != NULL;
}

/* What a kill, or a store that was away, left of such jobs. */
static void resume_in_thread(void *user)
{
    struct forgotten *forgotten = user;
    struct daemon *daemon = forgotten->daemon;
    struct forgotten_list list = {0};
    CADRE_FREE_AT_EXIT char *folder = objects_path(daemon->objects, "forgotten");
    while (objects_list(daemon->objects, folder, true, add_forgotten, &list, &forgotten->error) ==
               CADRE_UNAVAILABLE &&
           objects_wait(daemon->objects)) {
        list.count = 0;
        forgotten->error = (struct cadre_error){0};
    }
    for (size_t i = 0; i < list.count && forgotten->error.code == CADRE_OK; i++) {
        remove_when_there(daemon, list.jobs[i], &forgotten->error);
    }
    free(list.jobs);
    objects_clear_uploads(daemon->objects);
}

/* ---- of a folder ---- */

/* It is renamed first, so that the next start finds what a kill leaves of it. */
static void remove_in_thread(void *user)
{
    struct forgotten *forgotten = user;
    CADRE_FREE_AT_EXIT char *doomed = NULL;
    if (forgotten->daemon->objects != NULL) {
        remove_when_there(forgotten->daemon, forgotten->job, &forgotten->error);
        (void)tree_remove(forgotten->path, &forgotten->error);
        return;
    }
    if (asprintf(&doomed, "%s" FORGOTTEN, forgotten->path) < 0) {
        doomed = NULL;
    }
    bool renamed = doomed != NULL && rename(forgotten->path, doomed) == 0;
    (void)tree_remove(renamed ? doomed : forgotten->path, &forgotten->error);
}

static void after_remove(void *user)
{
    struct forgotten *forgotten = user;
    if (forgotten->error.code != CADRE_OK && forgotten->error.code != CADRE_CANCELLED) {
        log_event(LOG_LEVEL_WARNING, "jobs", "the files of a forgotten job could not be removed",
            LOG_STR("path", forgotten->path), LOG_STR("reason", forgotten->error.text));
    }
    free(forgotten->path);
    free(forgotten);
}

static void start_removal(struct daemon *daemon, const char *name, void (*act)(void *user))
{
    struct forgotten *forgotten = calloc(1, sizeof *forgotten);
    if (forgotten == NULL || asprintf(&forgotten->path, "%s/%s", daemon->job_dir, name) < 0) {
        free(forgotten);
        log_event(LOG_LEVEL_WARNING, "jobs", "the files of a forgotten job could not be removed",
            LOG_STR("path", name), LOG_STR("reason", "no memory"));
        return;
    }
    forgotten->daemon = daemon;
    forgotten->job = strtoull(name, NULL, 10);
    file_work_start(&forgotten->work, &daemon->write_pool, act, after_remove, forgotten);
}

void paths_remove_job(struct daemon *daemon, struct job_id job)
{
    char name[32];
    snprintf(name, sizeof name, "%" PRIu64, job.n);
    start_removal(daemon, name, remove_in_thread);
}

void paths_resume_removal(struct daemon *daemon)
{
    if (daemon->objects != NULL) {
        start_removal(daemon, "", resume_in_thread);
        return;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(daemon->job_dir);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, FORGOTTEN) != NULL) {
            start_removal(daemon, entry->d_name, remove_in_thread);
        }
    }
}
