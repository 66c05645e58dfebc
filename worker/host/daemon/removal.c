/* SPDX-License-Identifier: Apache-2.0
 * Removes what tasks leave, in threads of the pool, because a hostile task may leave so much
 * that it takes minutes. First its folder is renamed: a start of the same name waits for that.
 * Then one ended task after another is removed, so that at most one thread is not free for tasks
 * that start. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"

/* The log of the task is closed before. */
static void free_task(struct task_files *task)
{
    published_free(task->published);
    free(task->folder);
    free(task->log_incoming);
    free(task->restore_path);
    free(task->object_folder);
    free(task->objects);
    free(task);
}

/* ---- tasks that ended ---- */

static void removal_next(struct daemon *daemon);

static void removal_append(struct task_files *task)
{
    struct task_files **at = &task->daemon->removals;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    task->next = NULL;
    *at = task;
}

static void remove_in_thread(void *user)
{
    struct task_files *task = user;
    if (task->left) {
        isolate_empty(task);
    } else if (task->folder != NULL) {
        task->stage_in_status = tree_remove(task->folder, &task->stage_in_error);
    }
}

static void after_removal(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
    daemon->removals = task->next;
    daemon->removing = false;
    if (!task->left && task->stage_in_status != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "tasks", "the folder of a task stays",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", task->stage_in_error.text));
    }
    if (task->left) {
        (void)isolate_emptied(task);
        free_task(task);
    } else if (isolate_leave(task)) { /* that was the last of its job here */
        task->left = true;
        removal_append(task);
    } else {
        free_task(task);
    }
    removal_next(daemon);
}

static void removal_next(struct daemon *daemon)
{
    struct task_files *task = daemon->removals;
    if (task != NULL && !daemon->removing) {
        daemon->removing = true;
        file_work_start(&task->files, &daemon->file_pool, remove_in_thread, after_removal, task);
    }
}

/* ---- its name ---- */

/* Renames the folder to task->aside; NULL: that failed, and the folder is removed where it is. */
static void rename_aside(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
    int failed;
    log_file_close(&task->log);
    do {
        unsigned long long number = atomic_fetch_add(&daemon->removal_last, 1) + 1;
        free(task->aside);
        if (asprintf(&task->aside, "%s/gone-%llu", daemon->task_dir, number) < 0) {
            task->aside = NULL;
            failed = ENOMEM;
            break;
        }
        failed = renameat2(AT_FDCWD, task->folder, AT_FDCWD, task->aside, RENAME_NOREPLACE) == 0
                     ? 0
                     : errno;
    } while (failed == EEXIST); /* of an earlier incarnation */
    task->stage_in_status = CADRE_OK;
    if (failed != 0) {
        free(task->aside);
        task->aside = NULL;
        task->stage_in_status = tree_remove(task->folder, &task->stage_in_error);
    }
}

/* Whether the folder of no earlier start has its name any more. */
static bool is_name_free(const struct task_files *task)
{
    const struct task_files *other = task->daemon->removals_waiting;
    while (other != NULL && (other->folder == NULL || strcmp(other->folder, task->folder) != 0)) {
        other = other->next;
    }
    return other == NULL;
}

bool removal_name_is_free(struct task_files *task, void (*then)(struct task_files *task))
{
    task->name_waits = !is_name_free(task);
    task->then = then;
    return !task->name_waits;
}

/* From the beginning each time: a start may end others. */
static void start_waiting(struct daemon *daemon)
{
    struct task_files *task = daemon->tasks;
    while (task != NULL) {
        if (task->name_waits && is_name_free(task)) {
            task->name_waits = false;
            task->then(task);
            task = daemon->tasks;
        } else {
            task = task->next;
        }
    }
}

static void leave_job(struct task_files *task)
{
    struct task_files **at = &task->daemon->removals_waiting;
    while (*at != task) {
        at = &(*at)->next;
    }
    *at = task->next;
}

static void after_aside(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
    leave_job(task);
    free(task->folder);
    task->folder = task->aside;
    task->aside = NULL;
    removal_append(task);
    removal_next(daemon);
    start_waiting(daemon);
}

void removal_expect(struct task_files *task)
{
    task->next = task->daemon->removals_waiting;
    task->daemon->removals_waiting = task;
}

void removal_start(struct task_files *task)
{
    if (task->folder == NULL) {
        leave_job(task);
        free_task(task);
        return;
    }
    file_work_start(&task->files, &task->daemon->file_pool, rename_aside, after_aside, task);
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
    *task =
        (struct task_files){.daemon = daemon, .folder = folder, .log.fd = -1, .log.marks_fd = -1};
    removal_expect(task);
    removal_start(task);
    return CADRE_OK;
}

/* ---- what earlier jobs left under a uid ---- */

static void empty_in_thread(void *user)
{
    isolate_empty(user);
}

static void start_or_wait(struct task_files *task, bool has_uid)
{
    struct cadre_error error;
    if (has_uid) {
        task->then(task);
        return;
    }
    cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
        "something else on this machine runs under each uid of --job-uids that is free: give the "
        "worker a range of its own");
    retry_start(task, &error);
}

static void after_emptying(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
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

bool removal_is_clean(struct task_files *task, void (*then)(struct task_files *task))
{
    switch (isolate_uid_state(task)) {
    case UID_CLEAN:
        return true;
    case UID_DIRTY:
        task->emptying = true;
        file_work_start(
            &task->files, &task->daemon->file_pool, empty_in_thread, after_emptying, task);
        break;
    case UID_BEING_EMPTIED:
        break;
    }
    task->uid_waits = true;
    task->then = then;
    return false;
}
