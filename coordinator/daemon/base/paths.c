/* SPDX-License-Identifier: Apache-2.0
 * The paths in the state directory:
 *     ledger.db  lock  blobs/<sha256>  jobs/<id>/logs/<slot>[.base|.gap|.marks]
 *     jobs/<id>/outputs/<slot>/<path>  jobs/<id>/files/<index>  jobs/<id>/series
 *     jobs/<id>.forgotten */
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
    int length = asprintf(&path, "%s/%" PRIu64 "/files/%" PRIu32, daemon->job_dir, job.n, file);
    return length >= 0 ? path : NULL;
}

/* ---- the files of a forgotten job ---- */

#define FORGOTTEN ".forgotten"

struct forgotten {
    struct file_work work;
    char *path;
    struct cadre_error error;
};

/* It is renamed first, so that the next start finds what a kill leaves of it. */
static void remove_in_thread(void *user)
{
    struct forgotten *forgotten = user;
    CADRE_FREE_AT_EXIT char *doomed = NULL;
    if (asprintf(&doomed, "%s" FORGOTTEN, forgotten->path) < 0) {
        doomed = NULL;
    }
    bool renamed = doomed != NULL && rename(forgotten->path, doomed) == 0;
    (void)tree_remove(renamed ? doomed : forgotten->path, &forgotten->error);
}

static void after_remove(void *user)
{
    struct forgotten *forgotten = user;
    if (forgotten->error.code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "jobs", "the files of a forgotten job could not be removed",
            LOG_STR("path", forgotten->path), LOG_STR("reason", forgotten->error.text));
    }
    free(forgotten->path);
    free(forgotten);
}

static void start_removal(struct daemon *daemon, const char *name)
{
    struct forgotten *forgotten = calloc(1, sizeof *forgotten);
    if (forgotten == NULL || asprintf(&forgotten->path, "%s/%s", daemon->job_dir, name) < 0) {
        free(forgotten);
        log_event(LOG_LEVEL_WARNING, "jobs", "the files of a forgotten job could not be removed",
            LOG_STR("path", name), LOG_STR("reason", "no memory"));
        return;
    }
    file_work_start(
        &forgotten->work, &daemon->file_pool, remove_in_thread, after_remove, forgotten);
}

void paths_remove_job(struct daemon *daemon, struct job_id job)
{
    char name[32];
    snprintf(name, sizeof name, "%" PRIu64, job.n);
    start_removal(daemon, name);
}

void paths_resume_removal(struct daemon *daemon)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(daemon->job_dir);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, FORGOTTEN) != NULL) {
            start_removal(daemon, entry->d_name);
        }
    }
}
