/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/remote_variable.h"

#include <stdatomic.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/strategy/strategy.h"

static _Atomic(const struct remote_variable_ops *) current;

void remote_variable_set_ops(const struct remote_variable_ops *remote)
{
    CADRE_ASSERT(remote != NULL);
    atomic_store(&current, remote);
}

const struct remote_variable_ops *remote_variable_ops(void)
{
    return atomic_load(&current);
}

bool variable_scope_has_servers(const cadre_strategy *strategy)
{
    const struct remote_variable_ops *remote = remote_variable_ops();
    return remote != NULL &&
           (remote->in_closure() ||
               (strategy != NULL &&
                   (strategy->worker != NULL || strategy->kind == STRATEGY_PARAMETER_SERVER)));
}

cadre_status variable_is_remote(
    const struct variable_plan *plan, bool *ret_remote, struct cadre_error *error)
{
    cadre_variable_placement placement = plan->options->placement;
    const cadre_variable *with = plan->options->colocate_with; /* it exists */
    bool servers = variable_scope_has_servers(plan->strategy);
    const cadre_strategy *of = plan->strategy != NULL ? plan->strategy : strategy_current();
    bool worker = of != NULL && of->worker != NULL;
    *ret_remote = placement == CADRE_PLACEMENT_SERVERS;
    if (placement == CADRE_PLACEMENT_AUTO) {
        *ret_remote = servers && (with == NULL || with->served != NULL);
    }
    if (placement < CADRE_PLACEMENT_AUTO || placement > CADRE_PLACEMENT_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': %d is no placement; use one of enum cadre_variable_placement",
            plan->name, (int)placement);
    }
    if (placement == CADRE_PLACEMENT_PER_WORKER && !worker) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' was created with CADRE_PLACEMENT_PER_WORKER outside of functions that a "
            "worker runs; create it in those of closures or resources, each time that it is "
            "wanted: the first time makes it",
            plan->name);
    }
    if (*ret_remote && !servers) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' was created with CADRE_PLACEMENT_SERVERS, and its strategy has no "
            "parameter servers; leave it CADRE_PLACEMENT_AUTO, or create it in a strategy by "
            "cadre_strategy_parameter_server",
            plan->name);
    }
    if (with != NULL && *ret_remote != (with->served != NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' cannot lie with '%s', which is %s; leave its placement "
            "CADRE_PLACEMENT_AUTO, or colocate it with none",
            plan->name, with->name,
            *ret_remote ? "on no parameter server" : "on a parameter server");
    }
    return CADRE_OK;
}

cadre_status variable_read_remote(
    const cadre_variable *variable, cadre_tensor **ret_value, struct cadre_error *error)
{
    const struct variable_rows all = {
        .count = variable->rank == 0 ? 1 : (uint64_t)variable->dims[0]};
    CADRE_ASSERT(variable->served != NULL);
    CADRE_TRY(
        tensor_create_unset(variable->dtype, variable->rank, variable->dims, ret_value, error));
    cadre_status status =
        remote_variable_ops()->read(variable, &all, 0, cadre_tensor_data(*ret_value), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_value);
        *ret_value = NULL;
    }
    return status;
}

cadre_status variable_require_local(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error)
{
    return variable->served == NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s: variable '%s' is on parameter servers, not in this process; use %s",
                     function, variable->name, instead);
}
