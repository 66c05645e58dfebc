/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that a task goes on from is at hand before the task starts: its manifest and its
 * blocks are fetched by Agents.GetBlob, each is checked against its hash, and the file is put
 * together in <task>/restore/. A content that was cut short by a broken link is fetched again from
 * its beginning. Of several tasks of a job that start here, one fetches and the others link to its
 * files. One in a shared folder stays where it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/daemon/restore.h"

void restore_free(struct restore *restore)
{
    if (restore->fd >= 0) {
        close(restore->fd);
    }
    sha256_close(restore->hash);
    checkpoint_content_free(&restore->content);
    wire_buffer_free(&restore->manifest);
    free(restore->folder);
    free(restore);
}

/* One that fetched is through with it, or not there any more. */
static void wake_others(const struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        if (task->restore != NULL && !task->restore->leads) {
            restore_go_on(task->restore);
        }
    }
}

void restore_give_up(struct restore *restore, const struct cadre_error *error)
{
    struct task_files *task = restore->task;
    struct cadre_error failure;
    cadre_error_set(&failure, error->code,
        "the checkpoint of step %" PRIu64 " cannot be had: %.400s",
        task->start->checkpoint.position, error->text);
    task->restore = NULL;
    (void)tree_remove(restore->folder, NULL);
    restore_free(restore);
    wake_others(task->daemon);
    later_start(task, &failure);
}

/* Everything is there. The task's user may read it, by its group, and not change it. */
static cadre_status complete(struct restore *restore, struct cadre_error *error)
{
    struct task_files *task = restore->task;
    const struct daemon *daemon = task->daemon;
    if (task->user.change && (lchown(restore->folder, (uid_t)-1, task->user.gid) != 0 ||
                                 chmod(restore->folder, 0750) != 0)) {
        return cadre_error_errno(error, errno, "cannot open it to the task's user");
    }
    if (asprintf(&task->restore_path, "%s/" RESTORE_MANIFEST, restore->folder) < 0) {
        task->restore_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
    }
    task->restore = NULL;
    restore_free(restore);
    place_start(task);
    wake_others(daemon);
    return CADRE_OK;
}

void restore_go_on(struct restore *restore)
{
    struct cadre_error error = {0};
    bool all_there = restore_is_fetched(restore);
    if (!restore->leads && restore_take_from_other(restore, &all_there) && !all_there) {
        return; /* wake_others */
    }
    cadre_status status = CADRE_OK;
    if (!all_there) {
        restore->leads = true;
        status = restore_fetch(restore, &error);
    } else if (restore->leads) {
        status = restore_write_manifest(restore, &error);
    }
    if (status == CADRE_OK && all_there) {
        status = complete(restore, &error);
    }
    if (status != CADRE_OK) {
        restore_give_up(restore, &error);
    }
}

/* ---- what tasks.c and fetch.c call ---- */

static cadre_status open_restore(struct task_files *task, struct cadre_error *error)
{
    struct restore *restore = calloc(1, sizeof *restore);
    if (restore == NULL || asprintf(&restore->folder, "%s/restore", task->folder) < 0) {
        free(restore);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a checkpoint");
    }
    restore->task = task;
    restore->fd = -1;
    task->restore = restore;
    if (restore_wanted(restore)->manifest_bytes > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a manifest of %" PRIu64 " bytes is over the limit of %d",
            restore_wanted(restore)->manifest_bytes, LIMIT_MANIFEST_BYTES);
    }
    return folder_make(restore->folder, 0700, error);
}

static cadre_status find_shared(struct task_files *task, struct cadre_error *error)
{
    const char *path = task->start->checkpoint.path;
    const char *folder = task->start->spec.checkpoint_folder;
    int length = path[0] == '/' ? asprintf(&task->restore_path, "%s", path)
                                : asprintf(&task->restore_path, "%s/%s", folder, path);
    if (length < 0) {
        task->restore_path = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another task");
    }
    return CADRE_OK;
}

static void fetch_checkpoint(struct task_files *task)
{
    struct cadre_error error = {0};
    if (open_restore(task, &error) == CADRE_OK) {
        restore_go_on(task->restore);
    } else if (task->restore != NULL) {
        restore_give_up(task->restore, &error);
    } else {
        tasks_fail(task, error.text);
    }
}

void restore_start(struct task_files *task)
{
    const struct agent_start *start = task->start;
    struct cadre_error error = {0};
    if (start->restores && !start->checkpoint.shared) {
        fetch_checkpoint(task);
    } else if (start->restores && find_shared(task, &error) != CADRE_OK) {
        tasks_fail(task, error.text);
    } else {
        place_start(task);
    }
}

void restore_resume(struct task_files *task)
{
    if (task->restore->call == NULL) {
        restore_go_on(task->restore);
    }
}

void restore_cancel(struct task_files *task)
{
    struct restore *restore = task->restore;
    if (restore == NULL) {
        return;
    }
    task->restore = NULL;
    restore->task = NULL;
    if (restore->call != NULL) {
        rpc_call_cancel(restore->call);
    } else {
        restore_free(restore);
    }
    wake_others(task->daemon);
}
