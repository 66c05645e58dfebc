/* SPDX-License-Identifier: Apache-2.0
 * For which tasks a worker may send, and which contents it may have: with TLS its certificate has
 * its name. Without TLS, and for other roles: OK. A refusal is logged. Which role may call at all:
 * authorization.h. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H

#include "common/base/sha256.h"
#include "common/rpc/server.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* Only for tasks that are placed on the worker of that name, else PERMISSION_DENIED. */
cadre_status worker_permissions_check_task(
    struct daemon *daemon, struct rpc_call *call, struct task_ref task, struct cadre_error *error);

/* The same for an upload of contents, which names no task: any task has to be placed there. */
cadre_status worker_permissions_check_tasks(
    struct daemon *daemon, struct rpc_call *call, struct cadre_error *error);

/* The same for one content: a job with a task there has to reference it, else NOT_FOUND, whether or
 * not the content is here. */
cadre_status worker_permissions_check_content(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error);

#endif
