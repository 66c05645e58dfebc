/* SPDX-License-Identifier: Apache-2.0
 * Starts the process of a task whose files are in place. */
#ifndef CADRE_WORKER_DAEMON_LAUNCH_H
#define CADRE_WORKER_DAEMON_LAUNCH_H

#include "common/base/error.h"

struct task_files;

/* In the thread, when the files are in place: checks that this host can run the program, makes
 * the task's socket. */
cadre_status launch_open(const struct task_files *task, const char *program, int *ret_listener,
    struct cadre_error *error);
/* Then, on the loop: starts the task. *listener is the agent's afterwards, and -1, unless the
 * task fails here. */
void launch_start(struct task_files *task, int *listener);

#endif
