/* SPDX-License-Identifier: Apache-2.0
 * What tasks leave, which a hostile one may have made so much of that its removal takes minutes, in
 * threads of the pool. What ended goes one thing after another: however much it is, it keeps one
 * thread at most from tasks that start. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/published.h"

static void free_task(struct task_files *task)
{
    if (task->log.fd >= 0) {
        close(task->log.fd);
    }
    published_free(task->published);
    free(task->folder);
    free(task->log_came);
    free(task->restore_path);
    free(task);
}

/* ---- what ended ---- */

static void next(struct daemon *daemon);

static void append(struct task_files *task)
{
    struct task_files **at = &task->daemon->gone;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    task->next = NULL;
    *at = task;
}

static void remove_in_thread(uv_work_t *work)
{
    struct task_files *task = work->data;
    if (task->left) {
        isolate_empty(task);
    } else {
        task->place_status = tree_remove(task->folder, &task->place_error);
    }
}

static void after_removal(uv_work_t *work, int status)
{
    (void)status;
    struct task_files *task = work->data;
    struct daemon *daemon = task->daemon;
    daemon->works--;
    daemon->gone = task->next;
    daemon->removes = false;
    if (!task->left && task->place_status != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "tasks", "the folder of a task stays",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", task->place_error.text));
    }
    if (task->left) {
        (void)isolate_emptied(task);
        free_task(task);
    } else if (isolate_leave(task)) { /* that was the last of its job here */
        task->left = true;
        append(task);
    } else {
        free_task(task);
    }
    next(daemon);
}

static void next(struct daemon *daemon)
{
    struct task_files *task = daemon->gone;
    if (task != NULL && !daemon->removes) {
        daemon->removes = true;
        daemon->works++;
        task->work.data = task;
        uv_queue_work(rpc_loop_uv(daemon->loop), &task->work, remove_in_thread, after_removal);
    }
}

/* Whoever starts under the same name meanwhile has a folder of its own. */
static void set_aside(struct task_files *task)
{
    struct daemon *daemon = task->daemon;
    for (;;) {
        char *aside;
        if (asprintf(&aside, "%s/gone-%" PRIu64, daemon->task_dir, ++daemon->gone_last) < 0) {
            return;
        }
        if (renameat2(AT_FDCWD, task->folder, AT_FDCWD, aside, RENAME_NOREPLACE) == 0) {
            free(task->folder);
            task->folder = aside;
            return;
        }
        free(aside);
        if (errno != EEXIST) { /* of an earlier life */
            return;
        }
    }
}

void removal_start(struct task_files *task)
{
    if (task->folder == NULL) {
        free_task(task);
        return;
    }
    set_aside(task);
    append(task);
    next(task->daemon);
}

cadre_status removal_folder(struct daemon *daemon, const char *path, struct cadre_error *error)
{
    struct task_files *task = calloc(1, sizeof *task);
    char *folder = strdup(path);
    if (task == NULL || folder == NULL) {
        free(task);
        free(folder);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to remove %s", path);
    }
    *task = (struct task_files){.daemon = daemon, .folder = folder, .log.fd = -1};
    removal_start(task);
    return CADRE_OK;
}

/* ---- what a job that starts would find ---- */

static void empty_in_thread(uv_work_t *work)
{
    isolate_empty(work->data);
}

static void start_or_wait(struct task_files *task, bool has_uid)
{
    struct cadre_error error;
    if (has_uid) {
        tasks_start(task);
        return;
    }
    cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
        "something else on this machine runs under each uid of --job-uids that is free: give the "
        "worker a range of its own");
    later_start(task, &error);
}

static void after_emptying(uv_work_t *work, int status)
{
    (void)status;
    struct task_files *task = work->data;
    struct daemon *daemon = task->daemon;
    daemon->works--;
    task->emptying = false;
    bool had = isolate_emptied(task);
    uid_t uid = task->user.uid;
    if (task->forgotten) {
        removal_start(task);
    }
    for (task = daemon->tasks; task != NULL; task = task->next) {
        task->uid_answered = task->uid_waits && task->user.uid == uid;
    }
    /* From the beginning each time: a start may end others, or wait for another uid. */
    for (task = daemon->tasks; task != NULL;) {
        if (task->uid_answered) {
            task->uid_answered = false;
            task->uid_waits = false;
            start_or_wait(task, had);
            task = daemon->tasks;
        } else {
            task = task->next;
        }
    }
}

bool removal_is_clean(struct task_files *task)
{
    switch (isolate_uid_state(task)) {
    case UID_CLEAN:
        return true;
    case UID_DIRTY:
        task->emptying = true;
        task->work.data = task;
        task->daemon->works++;
        uv_queue_work(
            rpc_loop_uv(task->daemon->loop), &task->work, empty_in_thread, after_emptying);
        break;
    case UID_BEING_EMPTIED:
        break;
    }
    task->uid_waits = true;
    return false;
}
