/* SPDX-License-Identifier: Apache-2.0
 * The guard: a process that waits for the end of `cadre run`. When that is killed, the guard kills
 * the processes that its tasks started; the tasks themselves die with `cadre run`. */
#ifndef CADRE_WORKER_LOCAL_GUARD_H
#define CADRE_WORKER_LOCAL_GUARD_H

#include "common/base/error.h"

/* Starts it; before the agent is opened, which would take it for a task's process. `folder` has the
 * sockets of tasks: it is in the environment of the processes to kill, and is removed after them.
 * *ret_fd: the socket whose end the guard waits for. */
cadre_status guard_open(const char *folder, int *ret_fd, struct cadre_error *error);

/* Ends the guard, when no process is left to kill. Accepts -1. */
void guard_close(int fd);

#endif
