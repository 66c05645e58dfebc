/* SPDX-License-Identifier: Apache-2.0
 * See cross_device.h. Called by reduce_to.c and by the strategy's options. */
#include "worker/library/runtime/reductions/cross_device.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/numbers.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/reductions/custom_ops.h"
#include "worker/library/runtime/reductions/reduce.h"
#include "worker/library/runtime/reductions/reductions.h"

/* --- the choice --- */

cadre_status cross_device_default(const char *const devices[], uint32_t count,
    uint32_t physical_gpus, cadre_dtype dtype, cadre_cross_device_ops *ret_ops,
    struct cadre_error *error)
{
    uint32_t gpus = 0;
    if (count == 0 || devices == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a cross-device operation was to be chosen for no devices; give at least one");
    }
    for (uint32_t i = 0; i < count; i++) {
        cadre_device_spec spec;
        CADRE_TRY(device_name_parse(devices[i], &spec, error));
        gpus += strcmp(spec.type, "GPU") == 0 ? 1 : 0;
    }
    *ret_ops = (cadre_cross_device_ops){
        .kind = CADRE_CROSS_DEVICE_COLLECTIVE, .implementation = CADRE_COMMUNICATION_RING};
    bool mixed = gpus > 0 && gpus < count;
    if (mixed || (gpus > 0 && dtype == CADRE_I32)) {
        *ret_ops = (cadre_cross_device_ops){.kind = CADRE_CROSS_DEVICE_ONE_DEVICE};
    } else if (gpus > 0 && gpus <= physical_gpus) {
        ret_ops->implementation = CADRE_COMMUNICATION_NCCL;
    }
    return CADRE_OK;
}

cadre_status cross_device_choose(cadre_strategy *strategy, cadre_dtype dtype,
    cadre_cross_device_ops *ret_ops, struct cadre_error *error)
{
    *ret_ops = strategy->reductions->cross_device;
    if (ret_ops->kind != CADRE_CROSS_DEVICE_AUTO) {
        return CADRE_OK;
    }
    cadre_cross_device_ops chosen;
    CADRE_TRY(cross_device_default(strategy->devices.pointers, strategy->devices.count,
        devices_inventory().gpus, dtype, &chosen, error));
    ret_ops->kind = chosen.kind;
    CADRE_ASSERT(ret_ops->kind != CADRE_CROSS_DEVICE_AUTO);
    if (ret_ops->implementation == CADRE_COMMUNICATION_AUTO) {
        ret_ops->implementation = chosen.implementation;
    }
    return CADRE_OK;
}

static cadre_status check_ops(
    const cadre_strategy *strategy, const cadre_cross_device_ops *ops, struct cadre_error *error)
{
    if (ops->kind < CADRE_CROSS_DEVICE_AUTO || ops->kind > CADRE_CROSS_DEVICE_OWN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a kind of cross-device operation; use one of CADRE_CROSS_DEVICE_*",
            (int)ops->kind);
    }
    if (ops->implementation < CADRE_COMMUNICATION_AUTO ||
        ops->implementation > CADRE_COMMUNICATION_NCCL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not an implementation of collectives; use one of CADRE_COMMUNICATION_*",
            (int)ops->implementation);
    }
    static const char *const here[] = {
        [CADRE_CROSS_DEVICE_ONE_DEVICE] = "CADRE_CROSS_DEVICE_ONE_DEVICE",
        [CADRE_CROSS_DEVICE_HIERARCHICAL_COPY] = "CADRE_CROSS_DEVICE_HIERARCHICAL_COPY",
        [CADRE_CROSS_DEVICE_OWN] = "CADRE_CROSS_DEVICE_OWN"};
    if (here[ops->kind] != NULL && strategy->environment->tasks > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s is for replicas of one task and this job has %u; use CADRE_CROSS_DEVICE_COLLECTIVE",
            here[ops->kind], strategy->environment->tasks);
    }
    CADRE_TRY(custom_ops_check(ops, error));
    cadre_device_spec spec;
    return ops->reduce_to_device == NULL ? CADRE_OK
                                         : device_name_parse(ops->reduce_to_device, &spec, error);
}

cadre_status cadre_strategy_set_cross_device_ops(
    cadre_strategy *strategy, const cadre_cross_device_ops *ops)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    const cadre_cross_device_ops defaults = {0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    ops = ops == NULL ? &defaults : ops;
    if (status == CADRE_OK) {
        status = check_ops(strategy, ops, &error);
    }
    if (status == CADRE_OK) {
        strategy->reductions->cross_device = *ops;
        if (ops->reduce_to_device != NULL) { /* the options may have come from
                                              * cadre_strategy_cross_device_ops */
            size_t bytes = strlen(ops->reduce_to_device) + 1;
            memmove(strategy->reductions->reduce_to_device, ops->reduce_to_device, bytes);
            strategy->reductions->cross_device.reduce_to_device =
                strategy->reductions->reduce_to_device;
        }
    }
    return api_return(status, &error);
}

cadre_status cadre_strategy_cross_device_ops(
    cadre_strategy *strategy, cadre_dtype dtype, cadre_cross_device_ops *ret_ops)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_ops, __func__, "ret_ops", &error);
    if (status == CADRE_OK) {
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = cross_device_choose(strategy, dtype, ret_ops, &error);
    }
    return api_return(status, &error);
}

/* --- sums without a collective --- */

/* The sum of `count` tensors in order. */
static cadre_status sum_in_order(cadre_tensor *const tensors[], uint32_t count,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    CADRE_TRY(tensor_copy(tensors[0], ret_tensor, error));
    for (uint32_t i = 1; i < count; i++) {
        CADRE_ASSERT(cadre_tensor_bytes(tensors[i]) == cadre_tensor_bytes(*ret_tensor));
        numbers_add(cadre_tensor_data(*ret_tensor), cadre_tensor_const_data(tensors[i]),
            cadre_tensor_count(*ret_tensor), cadre_tensor_dtype(*ret_tensor), false);
    }
    return CADRE_OK;
}

cadre_status cross_device_sum(cadre_cross_device_kind kind, cadre_reduce_op op,
    cadre_tensor *const tensors[], uint32_t count, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    uint32_t first = kind == CADRE_CROSS_DEVICE_HIERARCHICAL_COPY ? (count + 1) / 2 : count;
    CADRE_ASSERT(kind != CADRE_CROSS_DEVICE_AUTO);
    cadre_tensor *sum = NULL;
    *ret_tensor = NULL;
    CADRE_TRY(sum_in_order(tensors, first, &sum, error));
    if (first < count) {
        cadre_tensor *second = NULL;
        cadre_status status = sum_in_order(tensors + first, count - first, &second, error);
        if (status != CADRE_OK) {
            cadre_tensor_release(sum);
            return status;
        }
        numbers_add(cadre_tensor_data(sum), cadre_tensor_const_data(second),
            cadre_tensor_count(sum), cadre_tensor_dtype(sum), false);
        cadre_tensor_release(second);
    }
    if (op == CADRE_MEAN) {
        return reduce_mean(sum, count, ret_tensor, error);
    }
    *ret_tensor = sum;
    return CADRE_OK;
}
