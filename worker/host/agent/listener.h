/* SPDX-License-Identifier: Apache-2.0
 * The socket file of a task. It is on a disk, which may block: so the thread that makes the
 * task's folders makes it, and the agent does not touch the file. */
#ifndef CADRE_WORKER_AGENT_LISTENER_H
#define CADRE_WORKER_AGENT_LISTENER_H

#include "common/base/error.h"
#include "worker/host/isolate/confine.h"

/* Binds a socket to `path`, replacing a file there; only the task's user may open it. In any
 * thread. The descriptor is the caller's. INVALID_ARGUMENT: the path is too long for an address. */
cadre_status listener_make(const char *path, const struct task_confinement *user, int *ret_listener,
    struct cadre_error *error);

#endif
