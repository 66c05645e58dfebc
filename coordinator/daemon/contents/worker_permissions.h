/* SPDX-License-Identifier: Apache-2.0
 * For which tasks a worker may send, and which contents it may have: with TLS its certificate
 * has its name. Without TLS, and for other roles: OK. A refusal is logged. Which role may call
 * at all: authorization.h. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_PERMISSIONS_H

#include "common/base/sha256.h"
#include "common/rpc/server.h"
#include "coordinator/daemon/base/daemon.h"
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

/* ---- worker_contents.c: which contents a worker with a certificate may see and name ----
 *
 * Those that jobs with tasks there reference, and those that it had itself, because it uploaded
 * them or MissingBlobs listed them as here. A hash alone is no proof of having a content. */

struct worker_contents;

/* Records that it has the content, for one to two hours, as long as an unreferenced upload stays;
 * without memory it is not recorded, and the worker uploads the content once more. */
void worker_contents_note(struct daemon *daemon, const char *worker, const struct sha256 *hash);

/* ret_allowed[i]: the worker may see hashes[i]. On an error none. */
cadre_status worker_contents_allowed(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_allowed, struct cadre_error *error);

/* Whether a checkpoint of its task may name each of them, else PERMISSION_DENIED. Unreferenced
 * contents of before this start are allowed, too, because the worker that uploaded them is not
 * recorded. */
cadre_status worker_contents_check(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, struct cadre_error *error);

/* NULL is allowed. */
void worker_contents_close(struct worker_contents *contents);

#endif
