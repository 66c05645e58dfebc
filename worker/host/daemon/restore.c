/* SPDX-License-Identifier: Apache-2.0
 * Restores the checkpoint that a task goes on from, before the task starts: its manifest and
 * blocks are fetched by Agents.GetBlob, each is checked against its hash, and the file is
 * assembled in <task>/restore/. A content that was cut short by a broken link is fetched again
 * from its beginning. Of several tasks of a job that start here, one fetches and the others link
 * to its files. A checkpoint in a shared folder or an object store stays there; the first task's
 * daemon checks whether it is whole, in a store with the job's credentials. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/checkpoint/choose.h"
#include "common/storage/storage.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/fetch_report.h"
#include "worker/host/daemon/restore_state.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/isolate/user_file.h"

/* Of a task: it is over with the report. */
static void restore_leave(struct task_files *task)
{
    task->restore = NULL;
    fetch_report_end(task);
}

static void restore_free(struct restore *restore)
{
    if (restore->fd >= 0) {
        close(restore->fd);
    }
    sha256_close(restore->hash);
    checkpoint_content_free(&restore->content);
    wire_buffer_free(&restore->manifest);
    free(restore->chunk);
    free(restore->file);
    free(restore->link_source_folder);
    free(restore->shared_path);
    job_storage_close(&restore->storage);
    free(restore->folder);
    free(restore);
}

static void restore_next(struct restore *restore);

/* Continues tasks that wait for one that fetched, after its end or its removal. */
static void wake_waiting(const struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        if (task->restore != NULL && !task->restore->leads) {
            restore_next(task->restore);
        }
    }
}

static void give_up(struct restore *restore, const struct cadre_error *error)
{
    struct task_files *task = restore->task;
    struct cadre_error failure;
    cadre_error_set(&failure, error->code,
        "the checkpoint of step %" PRIu64 " cannot be had: %.400s",
        task->start->checkpoint.position, error->text);
    restore_leave(task);
    restore_free(restore); /* its folder is removed when the start is tried again, or with the
                            * task's */
    wake_waiting(task->daemon);
    retry_start(task, &failure);
}

/* ---- in a thread ---- */

static void make_folder(void *user)
{
    struct restore *restore = user;
    if (tree_remove(restore->folder, &restore->error) == CADRE_OK) {
        (void)folder_make(restore->folder, 0700, &restore->error);
    }
}

static void link_from_other(void *user)
{
    struct restore *restore = user;
    restore->linked = restore_link_files(restore->link_source_folder, restore->folder);
    if (!restore->linked) { /* some of its files may be here */
        make_folder(restore);
    }
}

/* All contents are there: lets the task's user read it, by its group, and not change it. */
static void open_to_user(void *user)
{
    struct restore *restore = user;
    const struct isolation_user *owner = &restore->owner;
    if (restore->leads && restore_write_manifest(restore, &restore->error) != CADRE_OK) {
        return;
    }
    if (owner->change && (lchown(restore->folder, (uid_t)-1, owner->gid) != 0 ||
                             chmod(restore->folder, 0750) != 0)) {
        cadre_error_errno(&restore->error, errno, "cannot open it to the task's user");
    }
}

/* ---- on the loop ---- */

/* False: it was cancelled, or given up. */
static bool is_active(struct restore *restore)
{
    struct cadre_error error = restore->error;
    if (restore->task == NULL) {
        restore_free(restore);
        return false;
    }
    if (error.code != CADRE_OK) {
        give_up(restore, &error);
        return false;
    }
    return true;
}

static void after_open(void *user)
{
    struct restore *restore = user;
    struct task_files *task = restore->task;
    if (!is_active(restore)) {
        return;
    }
    if (asprintf(&task->restore_path, "%s/" RESTORE_MANIFEST, restore->folder) < 0) {
        struct cadre_error error;
        task->restore_path = NULL;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
        give_up(restore, &error);
        return;
    }
    void (*done)(struct task_files * task) = restore->done;
    restore_leave(task);
    restore_free(restore);
    done(task);
    wake_waiting(task->daemon);
}

static void daemon_restore_finish(struct restore *restore)
{
    restore->owner = restore->task->user;
    file_work_start(&restore->work, &restore->daemon->file_pool, open_to_user, after_open, restore);
}

static void after_link(void *user)
{
    struct restore *restore = user;
    if (!is_active(restore)) {
        return;
    }
    if (restore->linked) {
        daemon_restore_finish(restore);
    } else {
        restore->leads = true;
        restore_next(restore);
    }
}

/* False: no task has it or fetches it. */
static bool start_link_or_wait(struct restore *restore)
{
    const struct task_files *other = restore_find_link_source(restore->task, true);
    if (other == NULL) {
        return restore_find_link_source(restore->task, false) != NULL; /* wake_waiting */
    }
    free(restore->link_source_folder);
    if (asprintf(&restore->link_source_folder, "%s/restore", other->folder) < 0) {
        restore->link_source_folder = NULL;
        return false;
    }
    file_work_start(
        &restore->work, &restore->daemon->file_pool, link_from_other, after_link, restore);
    return true;
}

/* A content was fetched, or failed. */
static void after_fetch(struct restore *restore)
{
    if (is_active(restore)) {
        restore_next(restore);
    }
}

static void restore_next(struct restore *restore)
{
    struct cadre_error error = {0};
    if (restore->work.running || (!restore->leads && start_link_or_wait(restore))) {
        return;
    }
    restore->leads = true;
    fetch_report_begin(restore->task, FETCH_CHECKPOINT, &restore->counts);
    if (restore_is_fetched(restore)) {
        daemon_restore_finish(restore);
    } else if (restore_fetch(restore, after_fetch, &error) != CADRE_OK) {
        give_up(restore, &error);
    }
}

static void after_folder(void *user)
{
    after_fetch(user); /* no content was fetched yet */
}

/* ---- for prepare.c ---- */

static cadre_status open_restore(
    struct task_files *task, void (*done)(struct task_files *task), struct cadre_error *error)
{
    struct restore *restore = calloc(1, sizeof *restore);
    if (restore == NULL || asprintf(&restore->folder, "%s/restore", task->folder) < 0) {
        free(restore);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a checkpoint");
    }
    restore->task = task;
    restore->done = done;
    restore->daemon = task->daemon;
    restore->fd = -1;
    task->restore = restore;
    if (restore_wanted(restore)->manifest_bytes > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a manifest of %" PRIu64 " bytes is over the limit of %d",
            restore_wanted(restore)->manifest_bytes, LIMIT_MANIFEST_BYTES);
    }
    return CADRE_OK;
}

static cadre_status find_shared(struct task_files *task, struct cadre_error *error)
{
    const char *path = task->start->checkpoint.path;
    const char *folder = task->start->spec.checkpoint_folder;
    task->restore_path =
        path[0] == '/' || storage_is_object(path) ? strdup(path) : storage_join(folder, path);
    if (task->restore_path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another task");
    }
    return CADRE_OK;
}

static void check_as_user(void *context)
{
    struct restore *restore = context;
    struct cadre_error error;
    cadre_status status = checkpoint_check(restore->storage.client, restore->shared_path,
        restore->shared_sha256, &restore->counts, &error);
    if (status != CADRE_OK) {
        restore->error = error;
    }
}

/* A job chooses the path: what its user cannot read is not looked at for it. */
static void check_shared(void *user)
{
    struct restore *restore = user;
    struct cadre_error error;
    if (storage_is_object(restore->shared_path)) {
        check_as_user(restore);
    } else if (user_call(&restore->user, check_as_user, restore, &error) != CADRE_OK) {
        restore->error = error;
    }
}

/* Other faults than damage are reported by the task itself when it reads the checkpoint. */
static void after_check(void *user)
{
    struct restore *restore = user;
    struct task_files *task = restore->task;
    struct cadre_error error = restore->error;
    void (*done)(struct task_files * task) = restore->done;
    if (task != NULL) {
        restore_leave(task);
    }
    restore_free(restore);
    if (task != NULL && error.code == CADRE_DATA_LOSS) {
        task->damaged_step = task->start->checkpoint.position;
        tasks_fail(task, &error);
    } else if (task != NULL) {
        done(task);
    }
}

/* A checkpoint in a shared folder is read by one task; that task's daemon reads it before, so
 * that the coordinator can choose another one when it is damaged. */
static bool wants_check(const struct task_files *task)
{
    return task->start->checkpoint.shared && task->ref.slot == 0;
}

/* What the check needs when the task is not there any more. */
static cadre_status prepare_check(struct restore *restore, struct cadre_error *error)
{
    const struct task_files *task = restore->task;
    memcpy(restore->shared_sha256, restore_wanted(restore)->manifest_sha256,
        sizeof restore->shared_sha256);
    restore->user = task->user;
    restore->shared_path = strdup(task->restore_path);
    if (restore->shared_path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
    }
    return storage_is_object(restore->shared_path)
               ? job_storage_open(&restore->storage, task->spec, &task->user, error)
               : CADRE_OK;
}

static void daemon_restore_begin(struct task_files *task)
{
    struct restore *restore = task->restore;
    if (wants_check(task)) {
        if (prepare_check(restore, &restore->error) != CADRE_OK) {
            after_check(restore);
            return;
        }
        fetch_report_begin(task, FETCH_CHECK, &restore->counts);
        file_work_start(
            &restore->work, &task->daemon->store_pool, check_shared, after_check, restore);
    } else {
        file_work_start(
            &restore->work, &task->daemon->file_pool, make_folder, after_folder, restore);
    }
}

static void begin_restore(struct task_files *task, void (*done)(struct task_files *task))
{
    struct cadre_error error = {0};
    if (open_restore(task, done, &error) == CADRE_OK) {
        daemon_restore_begin(task);
    } else if (task->restore != NULL) {
        give_up(task->restore, &error);
    } else {
        tasks_fail(task, &error);
    }
}

void restore_start(struct task_files *task, void (*done)(struct task_files *task))
{
    const struct agent_start *start = task->start;
    struct cadre_error error = {0};
    if (start->restores && start->checkpoint.shared && find_shared(task, &error) != CADRE_OK) {
        tasks_fail(task, &error);
    } else if (start->restores && (!start->checkpoint.shared || wants_check(task))) {
        begin_restore(task, done);
    } else {
        done(task);
    }
}

void restore_resume(struct task_files *task)
{
    if (task->restore->call == NULL) {
        restore_next(task->restore);
    }
}

void restore_cancel(struct task_files *task)
{
    struct restore *restore = task->restore;
    if (restore == NULL) {
        return;
    }
    restore_leave(task);
    restore->task = NULL;
    if (restore->call != NULL) {
        rpc_call_cancel(restore->call);
    } else if (!restore->work.running) {
        restore_free(restore);
    } else { /* the thread's end does it */
        job_storage_stop(&restore->storage);
    }
    wake_waiting(task->daemon);
}
