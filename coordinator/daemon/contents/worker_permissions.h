/* SPDX-License-Identifier: Apache-2.0
 * Whose tasks a worker's call may speak for, and which contents it may have: with TLS its
 * certificate says which worker it is. Without TLS, and for other roles: OK. A refusal goes to the
 * log. Which role may call at all: authorization.h. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H

#include "common/base/sha256.h"
#include "common/rpc/server.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* For those that are placed on the worker of that name. PERMISSION_DENIED. */
cadre_status worker_permissions_check_task(
    struct daemon *daemon, struct rpc_call *call, struct task_ref task, struct cadre_error *error);

/* The same for an upload of contents, which names no task: one is placed there at all. */
cadre_status worker_permissions_check_tasks(
    struct daemon *daemon, struct rpc_call *call, struct cadre_error *error);

/* The same for one content: a job that has a task there needs it. NOT_FOUND, which does not tell
 * whether the content is here. */
cadre_status worker_permissions_check_content(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error);

#endif
