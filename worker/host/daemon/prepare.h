/* SPDX-License-Identifier: Apache-2.0
 * The preparation of a task, until its process runs. */
#ifndef CADRE_WORKER_DAEMON_PREPARE_H
#define CADRE_WORKER_DAEMON_PREPARE_H

#include <stddef.h>

#include "common/base/error.h"
#include "worker/host/daemon/cache.h"

struct task_files;

/* Prepares from the beginning, or goes on when what it waited for is there; then calls
 * agent_task_prepared. */
void prepare_start(struct task_files *task);
/* A new stream: fetches what is still missing. */
void prepare_resume(struct task_files *task);
/* Cancels the transfers from the coordinator. A thread in its folder ends by itself, and then
 * removes or collects what was forgotten or stopped meanwhile. */
void prepare_cancel(struct task_files *task);

/* The folders and files of a task, made by a thread of the pool. */

struct task_files;

/* The result, beside task->stage_in_status and position_error. */
struct staged {
    size_t file;              /* this file, by the index of tasks_file(), is unusable unless: */
    enum content_state state; /* CONTENT_INTACT */
    int listener;             /* of the task's socket, now the receiver's to close; -1: none */
};

/* Makes the folders and files; task->staging_in is set until done(task, &placed), on the loop,
 * once and always: the task may be stopped or forgotten meanwhile, but is not freed. Without
 * memory the task fails, and done() is not called. */
void stage_in_start(
    struct task_files *task, void (*done)(struct task_files *task, const struct staged *staged));

/* Starts the process of a task whose files are in place. */

struct task_files;

/* In the thread, when the files are in place: checks that this host can run the program, makes
 * the task's socket. */
cadre_status launch_open(const struct task_files *task, const char *program, int *ret_listener,
    struct cadre_error *error);
/* In the thread: the folder where the task may keep blocks of objects, the caller's to free; NULL:
 * it has none, for which the log has the reason. */
char *launch_object_folder(const struct task_files *task);
/* Then, on the loop: starts the task. *listener is the agent's afterwards, and -1, unless the
 * task fails here. */
void launch_start(struct task_files *task, int *listener);

#endif
