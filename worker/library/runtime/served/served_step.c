/* SPDX-License-Identifier: Apache-2.0
 * cadre_variable_begin_step: the chief sets the number of the next synchronous step. */
#include "common/base/cleanup.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/served_call.h"

static cadre_status begin_step(
    const cadre_variable *variable, uint64_t step, struct cadre_error *error)
{
    CADRE_TRY(served_require_no_slot(variable, error));
    enum role role = served_role(variable->served->all);
    if (role != ROLE_CHIEF) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the chief begins steps of variable '%s', while no closure runs, and this task is a "
            "%s",
            variable->name, role_name(role));
    }
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    const struct request like = {.kind = REQUEST_BEGIN_STEP, .min_steps = step};
    return served_call_shards(variable, &like, &requests, error);
}

cadre_status cadre_variable_begin_step(cadre_variable *variable, uint64_t step)
{
    struct cadre_error error = {0};
    cadre_status status =
        served_require(variable, __func__, "its steps are those of cadre_run", &error);
    if (status == CADRE_OK) {
        status = begin_step(variable, step, &error);
    }
    return api_return(status, &error);
}
