/* SPDX-License-Identifier: Apache-2.0
 * The folders and files of a task, made by a thread of the pool. */
#ifndef CADRE_WORKER_DAEMON_STAGE_IN_H
#define CADRE_WORKER_DAEMON_STAGE_IN_H

#include <stddef.h>

#include "worker/host/daemon/content.h"

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

#endif
