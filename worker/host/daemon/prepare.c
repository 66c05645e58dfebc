/* SPDX-License-Identifier: Apache-2.0
 * Prepares a task until its process runs: its folder and user, its contents (fetch.c), the place
 * of what it will leave, where that is an object store (object_put.c), the checkpoint that it goes
 * on from (restore.c), its files (stage_in.c), its process (launch.c). Each of these gets the next
 * step as a callback. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/logs.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/prepare.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"

/* A start that finds more contents damaged than this fails: the host's disk or memory is
 * defective. */
#define DAMAGES_MAX 8

/* True when the preparation goes on after a thread's turn. False: the task was forgotten or
 * stopped meanwhile, and is removed or collected. */
static bool is_active(struct task_files *task)
{
    task->staging_in = false;
    if (task->forgotten) {
        removal_start(task);
        return false;
    }
    if (task->failed) {
        logs_ship_rest(task);
        outputs_start(task);
        return false;
    }
    return true;
}

static void prepare_fetch(struct task_files *task);

/* ---- its files, and the process ---- */

/* Fetches a content again that is damaged, or was removed because another task found it so. */
static void prepare_again(struct task_files *task, const struct staged *staged)
{
    task->damages++;
    if (staged->state != CONTENT_NOT_CACHED) {
        cache_damaged(task, tasks_file(task, staged->file), staged->state);
    }
    free(task->restore_path);
    task->restore_path = NULL;
    task->next_file = 0;
    prepare_fetch(task);
}

static void after_stage_in(struct task_files *task, const struct staged *staged)
{
    CADRE_CLOSE_AT_EXIT int listener = staged->listener;
    if (!is_active(task)) {
        return;
    }
    if (task->stage_in_status == CADRE_OK) {
        task->ready = true;
        launch_start(task, &listener);
    } else if (staged->state != CONTENT_INTACT && task->damages < DAMAGES_MAX) {
        prepare_again(task, staged);
    } else {
        retry_start(task, &task->stage_in_error);
    }
}

static void after_restore(struct task_files *task)
{
    stage_in_start(task, after_stage_in);
}

/* ---- contents from the coordinator and from object stores ---- */

static void after_check(struct task_files *task, const struct cadre_error *error)
{
    if (error->code == CADRE_OK) {
        restore_start(task, after_restore);
    } else {
        retry_start(task, error);
    }
}

static void after_fetch(struct task_files *task)
{
    if (object_put_is_wanted(task)) {
        object_put_check(task, after_check);
    } else {
        restore_start(task, after_restore);
    }
}

static void prepare_fetch(struct task_files *task)
{
    fetch_files(task, after_fetch);
}

/* ---- its folder ---- */

static void make_folder(void *user)
{
    struct task_files *task = user;
    task->stage_in_status = tree_remove(task->folder, &task->stage_in_error);
    if (task->stage_in_status == CADRE_OK) {
        task->stage_in_status = folder_make(task->folder, 0711, &task->stage_in_error);
    }
    if (task->stage_in_status == CADRE_OK) {
        int number = log_file_make(task->folder, &task->opened_fd, &task->opened_marks_fd);
        if (number != 0) {
            task->stage_in_status = cadre_error_errno(
                &task->stage_in_error, number, "cannot make the log in %s", task->folder);
        }
    }
}

static void after_folder(void *user)
{
    struct task_files *task = user;
    if (task->stage_in_status == CADRE_OK) {
        task->log.fd = task->opened_fd;
        task->log.marks_fd = task->opened_marks_fd;
    }
    if (!is_active(task)) {
        return;
    }
    if (task->stage_in_status != CADRE_OK) {
        retry_start(task, &task->stage_in_error);
    } else {
        prepare_start(task);
    }
}

void prepare_start(struct task_files *task)
{
    struct cadre_error error = {0};
    if (task->log.fd < 0) {
        if (tasks_name_folder(task, &error) != CADRE_OK ||
            isolate_enter(task, &error) != CADRE_OK) {
            retry_start(task, &error);
            return;
        }
        if (!removal_name_is_free(task, prepare_start)) {
            return;
        }
        task->staging_in = true;
        file_work_start(&task->files, &task->daemon->file_pool, make_folder, after_folder, task);
    } else if (removal_is_clean(task, prepare_start)) {
        prepare_fetch(task);
    }
}

void prepare_resume(struct task_files *task)
{
    if (task->restore != NULL) {
        restore_resume(task);
    } else if (!task->ready && !task->failed && !task->staging_in && task->fetch == NULL &&
               task->object == NULL && task->put == NULL && task->folder != NULL &&
               !task->start_waits && !task->uid_waits && !task->name_waits) {
        prepare_fetch(task);
    }
}

void prepare_cancel(struct task_files *task)
{
    fetch_cancel(task);
    object_put_cancel(task);
    restore_cancel(task);
}
