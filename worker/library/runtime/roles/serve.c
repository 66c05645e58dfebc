/* SPDX-License-Identifier: Apache-2.0
 * What a worker and a ps do, from their beginning until the chief is done. */
#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/ps/server/server.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_worker.h"
#include "worker/library/runtime/ps_job/ps_task.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/program/program.h"

static cadre_status serve_check(const struct environment *environment, struct cadre_error *error)
{
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_serve was called before cadre_init; call it behind, in tasks where "
            "cadre_task_serves() is true");
    }
    if (ps_job_current() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_serve was called in %s %" PRIu32
            " of a job that is at work; call it once, in tasks where cadre_task_serves() is true",
            role_name(ps_job_current()->role), ps_job_current()->index);
    }
    if (environment->role == ROLE_WORKER || environment->role == ROLE_SERVER) {
        return CADRE_OK;
    }
    CADRE_TRY(program_choose_part(CLUSTER_PS_JOB, error));
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "cadre_serve was called in %s%s, which has nothing to serve; call it only where "
        "cadre_task_serves() is true",
        environment->role == ROLE_NONE ? "a task of no job with parameter servers" : "the ",
        role_name(environment->role));
}

static void send_backed(void *user, const struct task_backed *backed)
{
    ps_task_backed(user, backed);
}

static cadre_status serve_parameters(struct ps_job_state *ps_job, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->role == ROLE_SERVER);
    CADRE_ASSERT(ps_job->listener != NULL);
    const struct server_options options = {.index = ps_job->index,
        .memory_fd = program_environment()->server_memory,
        .listener = ps_job->listener,
        .directory = ps_job->directory,
        .send_backed = send_backed,
        .user = ps_job->ps_task};
    struct server *server;
    ps_job->listener = NULL;
    CADRE_TRY(server_start(&options, &server, error));
    cadre_status status = server_wait(server, error);
    server_stop(server);
    return status;
}

static cadre_status serve_closures(struct ps_job_state *ps_job, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->role == ROLE_WORKER);
    CADRE_TRY(ps_job_connect(ps_job, closure_is_cancelled, error));
    CADRE_TRY(served_begin(ps_job, error));
    return closure_worker_run(ps_job, error);
}

/* The job may be over, in order or not, whatever the task does at that time. */
static cadre_status serve_settle(
    struct ps_job_state *ps_job, cadre_status status, struct cadre_error *error)
{
    struct cadre_error ended = {0};
    if (directory_ended(ps_job->directory, &ended) == CADRE_OK) {
        if (status != CADRE_OK) {
            error->code = status;
            ps_task_failed(ps_job->ps_task, error);
        }
        return status;
    }
    if (ended.code == CADRE_CANCELLED) {
        return CADRE_OK;
    }
    *error = ended;
    return ended.code;
}

static cadre_status serve_serve(struct cadre_error *error)
{
    struct ps_job_state *ps_job;
    CADRE_TRY(context_require_cross("cadre_serve", error));
    CADRE_TRY(serve_check(program_environment(), error));
    CADRE_TRY(program_choose_part(CLUSTER_PS_JOB, error));
    CADRE_TRY(ps_job_begin(&ps_job, error));
    const struct ps_task_options options = {
        .session = ps_job->session, .directory = ps_job->directory, .address = ps_job->address};
    ps_job->session = NULL;
    cadre_status status = ps_task_open(&options, &ps_job->ps_task, error);
    if (status == CADRE_OK) {
        ps_job_set_current(ps_job);
        status = ps_job->role == ROLE_SERVER ? serve_parameters(ps_job, error)
                                             : serve_closures(ps_job, error);
        status = serve_settle(ps_job, status, error);
    }
    served_end(ps_job);
    ps_job_free(ps_job);
    return status;
}

int cadre_serve(void)
{
    struct cadre_error error = {0};
    cadre_status status = serve_serve(&error);
    if (status != CADRE_OK) {
        api_return(status, &error);
        show_failure(&error);
    }
    return status == CADRE_OK ? 0 : 1;
}
