/* SPDX-License-Identifier: Apache-2.0
 * A process beside ours that does nothing while we live. When we are killed, by whatever, it ends
 * what our tasks have left behind: they themselves die with us, what they have started does not. */
#ifndef CADRE_WORKER_LOCAL_GUARD_H
#define CADRE_WORKER_LOCAL_GUARD_H

#include "common/base/error.h"

/* Before the agent is opened, which would take it for a task's. `folder` is where sockets of tasks
 * are: processes are known by it, and it is removed with them. *ret_fd is what it knows our life
 * by. */
cadre_status guard_open(const char *folder, int *ret_fd, struct cadre_error *error);

/* Nothing is left to be ended: it goes. Accepts -1. */
void guard_close(int fd);

#endif
