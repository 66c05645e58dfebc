/* SPDX-License-Identifier: Apache-2.0
 * What a worker and a ps do, from their beginning until the chief is done. */
#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/ps/server.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_worker.h"
#include "worker/library/runtime/crew/attendant.h"
#include "worker/library/runtime/crew/crew.h"
#include "worker/library/runtime/border/show.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/program/program.h"

static cadre_status check(const struct environment *environment, struct cadre_error *error)
{
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_serve was called before cadre_init; call it behind, in tasks where "
            "cadre_task_serves() says so");
    }
    if (crew_current() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_serve was called in %s %" PRIu32
            " of a crew that is at work; call it once, in tasks where cadre_task_serves() says so",
            role_name(crew_current()->role), crew_current()->index);
    }
    if (environment->role == ROLE_WORKER || environment->role == ROLE_SERVER) {
        return CADRE_OK;
    }
    CADRE_TRY(program_choose_part(CLUSTER_CREW, error));
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "cadre_serve was called in %s%s, which has nothing to serve; call it only where "
        "cadre_task_serves() says so",
        environment->role == ROLE_NONE ? "a task of no crew" : "the ",
        role_name(environment->role));
}

static void say_backed(void *user, const struct task_backed *backed)
{
    attendant_backed(user, backed);
}

static cadre_status serve_parameters(struct crew_state *crew, struct cadre_error *error)
{
    CADRE_ASSERT(crew->role == ROLE_SERVER);
    CADRE_ASSERT(crew->listener != NULL);
    const struct server_options options = {.index = crew->index,
        .memory_fd = program_environment()->server_memory,
        .listener = crew->listener,
        .directory = crew->directory,
        .say_backed = say_backed,
        .user = crew->attendant};
    struct server *server;
    crew->listener = NULL;
    CADRE_TRY(server_start(&options, &server, error));
    cadre_status status = server_wait(server, error);
    server_stop(server);
    return status;
}

static cadre_status serve_closures(struct crew_state *crew, struct cadre_error *error)
{
    CADRE_ASSERT(crew->role == ROLE_WORKER);
    CADRE_TRY(crew_meet(crew, closure_unwanted, error));
    CADRE_TRY(served_begin(crew, error));
    return closure_worker_run(crew, error);
}

/* The job may be over, in order or not, wherever it stands. */
static cadre_status settle(struct crew_state *crew, cadre_status status, struct cadre_error *error)
{
    struct cadre_error ended = {0};
    if (directory_ended(crew->directory, &ended) == CADRE_OK) {
        if (status != CADRE_OK) {
            error->code = status;
            attendant_failed(crew->attendant, error);
        }
        return status;
    }
    if (ended.code == CADRE_CANCELLED) {
        return CADRE_OK;
    }
    *error = ended;
    return ended.code;
}

static cadre_status serve(struct cadre_error *error)
{
    struct crew_state *crew;
    CADRE_TRY(context_require_cross("cadre_serve", error));
    CADRE_TRY(check(program_environment(), error));
    CADRE_TRY(program_choose_part(CLUSTER_CREW, error));
    CADRE_TRY(crew_begin(&crew, error));
    const struct attendant_options options = {
        .session = crew->session, .directory = crew->directory, .address = crew->address};
    crew->session = NULL;
    cadre_status status = attendant_open(&options, &crew->attendant, error);
    if (status == CADRE_OK) {
        crew_set_current(crew);
        status =
            crew->role == ROLE_SERVER ? serve_parameters(crew, error) : serve_closures(crew, error);
        status = settle(crew, status, error);
    }
    served_end(crew);
    crew_free(crew);
    return status;
}

int cadre_serve(void)
{
    struct cadre_error error = {0};
    cadre_status status = serve(&error);
    if (status != CADRE_OK) {
        border(status, &error);
        show_failure(&error);
    }
    return status == CADRE_OK ? 0 : 1;
}
