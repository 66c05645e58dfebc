/* SPDX-License-Identifier: Apache-2.0
 * cadre_reduce_to and cadre_broadcast_to: results on named devices. */
#include "worker/library/runtime/reductions/reduce_to.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/reductions/cross_device.h"
#include "worker/library/runtime/reductions/destinations.h"
#include "worker/library/runtime/reductions/custom_ops.h"
#include "worker/library/runtime/reductions/reduce.h"
#include "worker/library/runtime/values/shape_check.h"
#include "worker/library/runtime/values/values.h"

cadre_status reduce_to_enter(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    if (!context_merging() || context_strategy() != strategy) {
        return strategy_enter(strategy, function, call, error);
    }
    if (strategy->environment->tasks > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside cadre_merge_call in a job of %u tasks, which do not meet there; "
            "use cadre_all_reduce before it",
            function, strategy->environment->tasks);
    }
    CADRE_TRY(custom_ops_require_idle(strategy, function, error));
    return strategy_check(strategy, error);
}

/* --- reducing --- */

/* The same tensor on all replicas is a mirrored component. */
static cadre_status take_mirrored(const cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, uint32_t component, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    cadre_tensor *tensor = cadre_local_results(value, component)[0];
    CADRE_ASSERT(cadre_per_replica_is_plain(value, component));
    if (op == CADRE_SUM && !reduce_is_zero(tensor)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of the value is one tensor that all %u replicas share, and was to be "
            "summed over them; give what the replicas made themselves, or use CADRE_MEAN",
            component, strategy->local_replicas);
    }
    *ret_tensor = cadre_tensor_retain(tensor);
    return CADRE_OK;
}

/* All components of one value, without a collective. */
static cadre_status reduce_locally(const cadre_strategy *strategy, cadre_cross_device_kind kind,
    cadre_reduce_op op, const cadre_per_replica *value, cadre_tensor *ret_tensors[],
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    uint32_t done = 0;
    CADRE_ASSERT(value->replicas == strategy->local_replicas);
    for (; status == CADRE_OK && done < value->components; done++) {
        status = cross_device_sum(kind, op, cadre_local_results(value, done),
            strategy->local_replicas, &ret_tensors[done], error);
    }
    for (uint32_t i = 0; status != CADRE_OK && i < done; i++) {
        cadre_tensor_release(ret_tensors[i]);
        ret_tensors[i] = NULL;
    }
    return status;
}

static cadre_status reduce_mirrored(const cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < value->components; i++) {
        status = take_mirrored(strategy, op, value, i, &ret_tensors[i], error);
    }
    for (uint32_t i = 0; status != CADRE_OK && i < value->components; i++) {
        cadre_tensor_release(ret_tensors[i]);
        ret_tensors[i] = NULL;
    }
    return status;
}

cadre_status reduce_to_check(const cadre_strategy *strategy, cadre_reduce_op op,
    cadre_per_replica *value, struct cadre_error *error)
{
    const bool along[CADRE_RANK_MAX] = {false};
    CADRE_TRY(per_replica_require(value, "cadre_reduce_to", "value", error));
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    CADRE_TRY(shape_check_replicas(strategy, value, error));
    CADRE_TRY(shape_check_plain(value, "reduced", error));
    for (uint32_t i = 0; i < value->components; i++) {
        cadre_dtype dtype = cadre_tensor_dtype(*per_replica_at(value, i, 0));
        if (dtype < CADRE_F64 || dtype > CADRE_U8) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %u of the value is of type %s, which cannot be summed; use a number "
                "type",
                i, cadre_dtype_name(dtype));
        }
        CADRE_TRY(shape_check_alike(value, i, along, "reduced", error));
    }
    return CADRE_OK;
}

/* The results of one value in the memory of the host, one for each component. */
static cadre_status reduce_on_replica(cadre_strategy *strategy, const char *function,
    cadre_reduce_op op, const cadre_per_replica *value, cadre_tensor *ret_tensors[],
    struct cadre_error *error)
{
    cadre_cross_device_ops ops;
    CADRE_ASSERT(value->components > 0);
    cadre_dtype dtype = cadre_tensor_dtype(cadre_local_results(value, 0)[0]);
    bool alone = strategy->environment->tasks <= 1;
    CADRE_TRY(cross_device_choose(strategy, dtype, &ops, error));
    if (alone && strategy->local_replicas > 1 && per_replica_all_plain(value)) {
        return reduce_mirrored(strategy, op, value, ret_tensors, error);
    }
    if (ops.kind != CADRE_CROSS_DEVICE_COLLECTIVE || context_merging()) {
        return reduce_locally(strategy, ops.kind, op, value, ret_tensors, error);
    }
    return reduce_elementwise(strategy, function, op, value, ret_tensors, error);
}

cadre_status reduce_to_one(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_per_replica *here;
    CADRE_TRY(values_on_host(value, &here, error));
    cadre_status status = reduce_on_replica(strategy, function, op, here, ret_tensors, error);
    cadre_per_replica_release(here);
    return status;
}

/* By the program's own functions, or by the chosen operation of the library. */
static cadre_status reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const cadre_destinations *destinations,
    cadre_per_replica **ret_value, struct cadre_error *error)
{
    static const char function[] = "cadre_reduce_to";
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    uint32_t targets = 0;
    CADRE_TRY(reduce_to_check(strategy, op, (cadre_per_replica *)(uintptr_t)value, error));
    CADRE_TRY(destinations_count(strategy, destinations, &targets, error));
    if (custom_ops_apply(strategy, value, destinations)) {
        const struct custom_values own = {
            .values = &value, .destinations = destinations, .count = 1};
        return custom_ops_reduce(strategy, function, op, &own, ret_value, error);
    }
    CADRE_TRY(reduce_to_one(strategy, function, op, value, tensors, error));
    return destinations_fill(targets, value->components, tensors, ret_value, error);
}

cadre_status cadre_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const cadre_destinations *destinations,
    cadre_per_replica **ret_value)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_value, __func__, "ret_value", &error);
    if (status == CADRE_OK) {
        *ret_value = NULL;
        status = reduce_to_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = reduce_to(strategy, op, value, destinations, ret_value, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    uint32_t targets = 0;
    cadre_status status = argument_require(ret_value, __func__, "ret_value", &error);
    if (status == CADRE_OK) {
        *ret_value = NULL;
        status = reduce_to_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = destinations_count(strategy, destinations, &targets, &error);
    }
    if (status == CADRE_OK && custom_ops_broadcast(strategy)) {
        status = custom_ops_broadcast_to(strategy, tensor, destinations, ret_value, &error);
    } else if (status == CADRE_OK) {
        cadre_tensor *tensors[1] = {cadre_tensor_retain(tensor)};
        status = destinations_fill(targets, 1, tensors, ret_value, &error);
    }
    return api_return(status, &error);
}
