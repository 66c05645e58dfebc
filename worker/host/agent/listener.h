/* SPDX-License-Identifier: Apache-2.0
 * The socket file of a task. It lies on a disk, which may take its time: so whoever makes the
 * task's folders makes it, in a thread, and the agent has no more to do with the file. */
#ifndef CADRE_WORKER_AGENT_LISTENER_H
#define CADRE_WORKER_AGENT_LISTENER_H

#include "common/base/error.h"
#include "worker/host/isolate/confine.h"

/* Bound to `path` in place of what is there, and only the task's user may open it; in any thread.
 * The descriptor is the caller's. INVALID_ARGUMENT: the path is too long for an address. */
cadre_status listener_make(const char *path, const struct task_confinement *user, int *ret_listener,
    struct cadre_error *error);

#endif
