/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/worker_permissions.h"

#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/contents/content_references.h"

static cadre_status worker_permissions_denied(struct rpc_call *call, struct cadre_error *error)
{
    log_event(LOG_LEVEL_WARNING, "agents", "a worker is denied a call",
        LOG_STR("peer", rpc_call_peer(call)), LOG_STR("reason", error->text));
    return error->code;
}

cadre_status worker_permissions_check_task(
    struct daemon *daemon, struct rpc_call *call, struct task_ref task, struct cadre_error *error)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    if (identity->role != TLS_ROLE_WORKER ||
        engine_task_is_of(daemon->engine, task, identity->name)) {
        return CADRE_OK;
    }
    cadre_error_set(error, CADRE_PERMISSION_DENIED,
        "worker \"%s\" may not send for task %u of job %llu: this incarnation of the task is not "
        "placed on the worker that its certificate names",
        identity->name, task.slot, (unsigned long long)task.job.n);
    return worker_permissions_denied(call, error);
}

cadre_status worker_permissions_check_tasks(
    struct daemon *daemon, struct rpc_call *call, struct cadre_error *error)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    if (identity->role != TLS_ROLE_WORKER ||
        engine_worker_has_tasks(daemon->engine, identity->name)) {
        return CADRE_OK;
    }
    cadre_error_set(error, CADRE_PERMISSION_DENIED,
        "worker \"%s\" may not upload: no task is placed on the worker that its certificate names",
        identity->name);
    return worker_permissions_denied(call, error);
}

cadre_status worker_permissions_check_content(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    bool is_referenced = identity->role != TLS_ROLE_WORKER;
    if (!is_referenced) {
        CADRE_TRY(
            content_references_of_worker(daemon, identity->name, hash, 1, &is_referenced, error));
    }
    if (is_referenced) {
        return CADRE_OK;
    }
    if (daemon->objects != NULL && content_references_are_incomplete(daemon->content_references)) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the coordinator is still reading which contents its jobs need: try again");
    }
    (void)contents_not_found(hash, error);
    return worker_permissions_denied(call, error);
}
