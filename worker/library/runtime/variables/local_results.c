/* SPDX-License-Identifier: Apache-2.0
 * The components of a variable on this task, as one value. */
#include "worker/library/device/argument.h"
#include "worker/library/device/local_device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

/* In an update the other components may be written at this moment. */
static cadre_status local_results_require(const cadre_variable *variable, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    uint32_t local = 0;
    CADRE_TRY(variable_enter(variable, function, call, error));
    if (variable->kind != CADRE_VARIABLE_REGULAR && context_update(&local)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside an update of a variable, where only the component of the same "
            "replica can be read; use cadre_variable_read there",
            function);
    }
    return CADRE_OK;
}

/* A copy in the memory of the host, as if the component's replica had made it. */
static cadre_status copy_component(const cadre_variable *variable, uint32_t local,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    bool own = variable->component_count > 1 && variable->strategy != NULL;
    uint8_t before = local_device_prefer(own ? variable->strategy->replicas[local].processor : 0);
    cadre_status status = variable_component_tensor(variable, local, ret_tensor, error);
    local_device_prefer(before);
    return status;
}

static cadre_status local_results_collect(
    const cadre_variable *variable, cadre_per_replica **ret_values, struct cadre_error *error)
{
    bool strings = variable->dtype == CADRE_STRING;
    uint32_t count = strings ? 1 : variable->component_count;
    cadre_per_replica *values = per_replica_new(count, 1);
    cadre_status status = CADRE_OK;
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the components of variable '%s'", variable->name);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        cadre_tensor **target = per_replica_at(values, 0, i);
        if (strings) { /* an assignment replaces the tensor */
            *target = cadre_tensor_retain(variable->strings);
        } else {
            status = copy_component(variable, i, target, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_per_replica_release(values);
        return status;
    }
    per_replica_show(values);
    *ret_values = values;
    return CADRE_OK;
}

/* On servers: it belongs to no replica, so the whole is the only value. */
static cadre_status collect_remote(
    const cadre_variable *variable, cadre_per_replica **ret_values, struct cadre_error *error)
{
    cadre_per_replica *values = per_replica_new(1, 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the value of variable '%s'", variable->name);
    }
    cadre_status status = variable_read_remote(variable, per_replica_at(values, 0, 0), error);
    if (status != CADRE_OK) {
        cadre_per_replica_release(values);
        return status;
    }
    per_replica_show(values);
    *ret_values = values;
    return CADRE_OK;
}

cadre_status cadre_variable_local_results(
    const cadre_variable *variable, cadre_per_replica **ret_values)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_values, __func__, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
    }
    if (status == CADRE_OK && variable_is_registered(variable) && variable->served != NULL) {
        return api_return(collect_remote(variable, ret_values, &error), &error);
    }
    if (status == CADRE_OK) {
        status = local_results_require(variable, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = local_results_collect(variable, ret_values, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(step_current_replica(), &error);
    }
    return api_return(status, &error);
}
