/* SPDX-License-Identifier: Apache-2.0
 * How the values of this task's replicas are combined, by the strategy's options. */
#ifndef CADRE_RUNTIME_CROSS_DEVICE_H
#define CADRE_RUNTIME_CROSS_DEVICE_H

#include "cadre/cross_device.h"
#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

/* What AUTO means for these devices, of which `physical_gpus` are real GPUs: a pure function.
 * INVALID_ARGUMENT: no devices, or a name that is none. */
cadre_status cross_device_default(const char *const devices[], uint32_t count,
    uint32_t physical_gpus, cadre_dtype dtype, cadre_cross_device_ops *ret_ops,
    struct cadre_error *error);

/* The choice for `dtype`, never AUTO. */
cadre_status cross_device_choose(cadre_strategy *strategy, cadre_dtype dtype,
    cadre_cross_device_ops *ret_ops, struct cadre_error *error);

/* Combines the tensors of `count` replicas (types and shapes are equal) here, without a collective,
 * in the order of ONE_DEVICE or HIERARCHICAL_COPY. The result is the caller's. */
cadre_status cross_device_sum(cadre_cross_device_kind kind, cadre_reduce_op op,
    cadre_tensor *const tensors[], uint32_t count, cadre_tensor **ret_tensor,
    struct cadre_error *error);

#endif
