/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/state.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/pure/object_path.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/contents/recent_outputs.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/moving/folder_use.h"
#include "coordinator/daemon/moving/root_marks.h"
#include "coordinator/daemon/objects/object_cache.h"

/* Of an object store: those that read and those that write do not wait for one another. */
#define READ_THREADS  16
#define WRITE_THREADS 32

static cadre_status no_memory(const char *state, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to open %s", state);
}

/* Where contents are that this coordinator works with: an object store's have copies. */
static cadre_status name_folders(struct daemon *daemon, struct cadre_error *error)
{
    const char *state = daemon->options.state_dir;
    const char *contents = daemon->options.contents_dir;
    CADRE_FREE_AT_EXIT char *cache = NULL;
    if (contents != NULL && storage_is_object(contents)) {
        if (asprintf(&cache, "%s/cache", state) < 0) {
            cache = NULL;
            return no_memory(state, error);
        }
        contents = cache;
    }
    if (asprintf(&daemon->ledger_path, "%s/ledger.db", state) < 0 ||
        asprintf(&daemon->blob_dir, "%s/blobs", contents != NULL ? contents : state) < 0 ||
        asprintf(&daemon->job_dir, "%s/jobs", contents != NULL ? contents : state) < 0) {
        return no_memory(state, error);
    }
    return CADRE_OK;
}

static cadre_status check_contents(const char *contents, struct cadre_error *error)
{
    if (contents == NULL) {
        return CADRE_OK;
    }
    const char *fault = object_folder_fault(contents);
    if (fault != NULL) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "--contents %.200s %s", contents, fault);
    }
    if (!storage_is_object(contents) && access(contents, R_OK | W_OK | X_OK) != 0) {
        return cadre_error_errno(error, errno,
            "--contents %s: cannot use this folder, which is to be there and mounted before the "
            "coordinator starts",
            contents);
    }
    return CADRE_OK;
}

cadre_status state_lock(struct daemon *daemon, struct cadre_error *error)
{
    const char *state = daemon->options.state_dir;
    CADRE_FREE_AT_EXIT char *lock = NULL;
    if (asprintf(&lock, "%s/lock", state) < 0) {
        lock = NULL;
        return no_memory(state, error);
    }
    CADRE_TRY(name_folders(daemon, error));
    CADRE_TRY(check_contents(daemon->options.contents_dir, error));
    CADRE_TRY(folder_make_durable(state, 0700, error));
    return lock_file_acquire(lock, &daemon->lock_fd, error);
}

/* Jobs of before need what the state directory has of them. */
cadre_status state_check_none_left(
    const struct coordinator_options *options, struct cadre_error *error)
{
    const char *state = options->state_dir;
    char moved[ROOT_TEXT_BYTES];
    CADRE_FREE_AT_EXIT char *left = NULL;
    if (asprintf(&left, "%s/blobs", state) < 0) {
        left = NULL;
        return no_memory(state, error);
    }
    CADRE_TRY(root_mark_read(state, ROOT_MARK_MOVED, moved, error));
    if (root_is_same(moved, options->contents_dir)) {
        return CADRE_OK;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(left);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "the jobs of this ledger have their contents in %.200s, and --contents %.200s does "
                "not have them: copy them there first, with --copy-contents %.200s and the options "
                "of now; or go on without --contents",
                left, options->contents_dir, state);
        }
    }
    return CADRE_OK;
}

cadre_status state_use_folder(struct daemon *daemon, struct cadre_error *error)
{
    const char *contents = daemon->options.contents_dir;
    if (contents != NULL && daemon->objects == NULL) {
        CADRE_TRY(folder_use(contents, false, &daemon->contents_fd, error));
        return root_marks_check(contents, error);
    }
    return CADRE_OK;
}

/* Copies of logs and values may be older than what other coordinators put since. */
cadre_status state_open_contents(struct daemon *daemon, struct cadre_error *error)
{
    const char *contents = daemon->options.contents_dir;
    const struct objects_options options = {
        .root = contents, .connections = READ_THREADS + WRITE_THREADS};
    if (contents == NULL || !storage_is_object(contents)) {
        return root_marks_check(contents != NULL ? contents : daemon->options.state_dir, error);
    }
    CADRE_TRY(tree_remove(daemon->job_dir, error));
    CADRE_TRY(folder_make(daemon->job_dir, 0700, error));
    CADRE_TRY(objects_open(&options, &daemon->objects, error));
    daemon->recent_outputs = recent_outputs_open();
    if (daemon->recent_outputs == NULL) {
        return no_memory(contents, error);
    }
    CADRE_TRY(objects_check(daemon->objects, error));
    CADRE_TRY(
        objects_are_away(daemon->objects, NULL) ? CADRE_OK : root_marks_check(contents, error));
    CADRE_TRY(state_check_none_left(&daemon->options, error));
    CADRE_TRY(object_cache_open(daemon->objects, daemon->blob_dir,
        daemon->options.contents_cache_bytes, &daemon->object_cache, error));
    CADRE_TRY(file_work_pool_start(&daemon->file_pool, READ_THREADS, error));
    return file_work_pool_start(&daemon->write_pool, WRITE_THREADS, error);
}

cadre_status state_open(struct daemon *daemon, struct store **ret_store, struct cadre_error *error)
{
    CADRE_TRY(state_lock(daemon, error));
    CADRE_TRY(folder_make_durable(daemon->blob_dir, 0700, error));
    CADRE_TRY(folder_make_durable(daemon->job_dir, 0700, error));
    return store_sqlite_open(daemon->ledger_path, ret_store, error);
}

void state_close_contents(struct daemon *daemon)
{
    log_copies_close(daemon->log_copies);
    object_cache_close(daemon->object_cache);
    recent_outputs_close(daemon->recent_outputs);
    objects_close(daemon->objects);
    if (daemon->contents_fd >= 0) {
        close(daemon->contents_fd);
    }
}
