/* SPDX-License-Identifier: Apache-2.0
 * Synchronous steps, as the chief sees them: which one is next. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/parameters/parameter_call.h"

static cadre_status begin_step(
    const cadre_parameter *parameter, uint64_t step, struct cadre_error *error)
{
    size_t shards = (size_t)parameter->layout.shards;
    const struct crew_state *thread = crew_current(); /* by hand a worker is a thread */
    enum role role = thread != NULL ? thread->role : parameter->parameters->crew->role;
    if (role != ROLE_CHIEF) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the chief begins steps of parameter '%s', while no closure runs, and this task is a "
            "%s",
            parameter->name, role_name(role));
    }
    CADRE_FREE_AT_EXIT struct request *requests = calloc(shards, sizeof *requests);
    if (requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for requests to %zu shards of parameter '%s'", shards, parameter->name);
    }
    for (size_t i = 0; i < shards; i++) {
        requests[i] = (struct request){.kind = REQUEST_BEGIN_STEP,
            .server = parameter->shards[i].server,
            .shard = parameter->shards[i].number,
            .least_steps = step};
    }
    return parameter_send(parameter, requests, shards, error);
}

cadre_status cadre_parameter_begin_step(cadre_parameter *parameter, uint64_t step)
{
    struct cadre_error error = {0};
    cadre_status status = parameter_enter(parameter, __func__, &error);
    if (status == CADRE_OK) {
        status = begin_step(parameter, step, &error);
    }
    return border(status, &error);
}
