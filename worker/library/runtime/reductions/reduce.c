/* SPDX-License-Identifier: Apache-2.0
 * Strategy.reduce: each replica sums its own tensors along the axes, then all replicas add up. All
 * components go in one collective, each with the number of entries behind it. Public functions, and
 * reduce_elementwise for reduce_to.c. */
#include "worker/library/runtime/reductions/reduce.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/arithmetic/shape.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/values/shape_check.h"
#include "worker/library/runtime/values/values.h"

struct reduction {
    const char *function; /* the public function, for messages */
    cadre_reduce_op op;
    bool along[CADRE_ELEMENT_TENSORS_MAX][CADRE_RANK_MAX]; /* the axes, of each component */
    bool of_tasks; /* one value a task: those of replicas but the first do not count */
    const cadre_per_replica *value;
    cadre_tensor **results; /* [component], of local replica 0 */
};

/* What one replica adds: its components summed along the axes, and their entries. */
struct summands {
    uint32_t count;
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX];
    int64_t entries[CADRE_ELEMENT_TENSORS_MAX];
};

static void components_release(struct summands *summands)
{
    for (uint32_t i = 0; i < summands->count; i++) {
        cadre_tensor_release(summands->tensors[i]);
    }
    summands->count = 0;
}

/* Sums along all axes, the last one first, so that the others keep their numbers. */
static cadre_status sum_axes(const bool along[CADRE_RANK_MAX], const cadre_tensor *value,
    cadre_tensor **ret_sum, int64_t *ret_entries, struct cadre_error *error)
{
    *ret_entries = 1;
    cadre_status status = CADRE_OK;
    cadre_tensor *sum = NULL;
    for (uint32_t axis = cadre_tensor_rank(value); status == CADRE_OK && axis-- > 0;) {
        if (along[axis]) {
            cadre_tensor *further = NULL;
            int64_t entries = 0;
            status = axis_sum(sum == NULL ? value : sum, (int32_t)axis, &further, &entries, error);
            cadre_tensor_release(sum);
            sum = further;
            if (status == CADRE_OK && __builtin_mul_overflow(*ret_entries, entries, ret_entries)) {
                status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "the axes to be reduced hold more entries than 64 bits can count; reduce along "
                    "fewer of them");
            }
        }
    }
    if (status == CADRE_OK && sum == NULL) {
        status = tensor_copy(value, &sum, error);
    }
    if (status != CADRE_OK) {
        cadre_tensor_release(sum);
        sum = NULL;
    }
    *ret_sum = sum;
    return status;
}

/* Types and shapes must be equal on all replicas; along the axes the sizes may differ. */
static uint64_t reduction_key(const struct reduction *reduction, const struct summands *summands)
{
    uint64_t key = collective_key(UINT64_MAX, (uint64_t)reduction->op);
    for (uint32_t i = 0; i < summands->count; i++) {
        const cadre_tensor *part = summands->tensors[i];
        for (uint32_t axis = 0; axis < CADRE_RANK_MAX; axis++) {
            key = collective_key(key, reduction->along[i][axis]);
        }
        key = collective_key_tensor(key, part, UINT32_MAX);
    }
    return key;
}

cadre_status reduce_mean(
    cadre_tensor *sum, int64_t entries, cadre_tensor **ret_mean, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(sum);
    size_t count = (size_t)cadre_tensor_count(sum);
    if (dtype <= CADRE_BF16) {
        axis_divide(cadre_tensor_data(sum), count, dtype, entries);
        *ret_mean = sum;
        return CADRE_OK;
    }
    cadre_status status =
        tensor_create(CADRE_F64, cadre_tensor_rank(sum), cadre_tensor_dims(sum), ret_mean, error);
    if (status == CADRE_OK) {
        double *mean = cadre_tensor_data(*ret_mean);
        reals_double(sum, 0, count, mean);
        axis_divide(mean, count, CADRE_F64, entries);
    }
    cadre_tensor_release(sum);
    return status;
}

static void results_release(struct reduction *reduction)
{
    for (uint32_t i = 0; i < reduction->value->components; i++) {
        cadre_tensor_release(reduction->results[i]);
        reduction->results[i] = NULL;
    }
}

static cadre_status make_summands(const struct reduction *reduction, uint32_t local,
    struct summands *summands, struct cadre_error *error)
{
    cadre_per_replica *value = (cadre_per_replica *)(uintptr_t)reduction->value;
    CADRE_ASSERT(summands->count == 0);
    CADRE_ASSERT(value->components <= CADRE_ELEMENT_TENSORS_MAX);
    for (uint32_t i = 0; i < value->components; i++) {
        const cadre_tensor *own = *per_replica_at(value, i, local);
        CADRE_TRY(sum_axes(
            reduction->along[i], own, &summands->tensors[i], &summands->entries[i], error));
        summands->count++;
        if (reduction->of_tasks && local > 0) {
            memset(cadre_tensor_data(summands->tensors[i]), 0,
                cadre_tensor_bytes(summands->tensors[i]));
            summands->entries[i] = 0;
        }
    }
    return CADRE_OK;
}

/* Replaces one replica's summands by the sums of all replicas. */
static cadre_status all_reduce_summands(cadre_strategy *strategy, uint32_t local,
    const struct reduction *reduction, struct summands *summands, struct cadre_error *error)
{
    struct mesh_buffer buffers[CADRE_ELEMENT_TENSORS_MAX + 1] = {{0}};
    CADRE_ASSERT(summands->count > 0);
    for (uint32_t i = 0; i < summands->count; i++) {
        CADRE_TRY(
            collective_dtype(cadre_tensor_dtype(summands->tensors[i]), &buffers[i].dtype, error));
        buffers[i].data = cadre_tensor_data(summands->tensors[i]);
        buffers[i].bytes = cadre_tensor_bytes(summands->tensors[i]);
    }
    buffers[summands->count] = (struct mesh_buffer){.data = summands->entries,
        .bytes = summands->count * sizeof summands->entries[0],
        .dtype = MESH_I64};
    return collective_sum(
        strategy, local, buffers, summands->count + 1, reduction_key(reduction, summands), error);
}

static cadre_status reduce_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct reduction *reduction = user;
    CADRE_ASSERT(local < strategy->local_replicas);
    if (local == 0) { /* an attempt before this one may have set it */
        results_release(reduction);
    }
    struct summands summands = {.count = 0};
    cadre_status status = make_summands(reduction, local, &summands, error);
    if (status == CADRE_OK) {
        status = all_reduce_summands(strategy, local, reduction, &summands, error);
    }
    for (uint32_t i = 0; status == CADRE_OK && local == 0 && i < summands.count; i++) {
        cadre_tensor *sum = summands.tensors[i];
        summands.tensors[i] = NULL;
        if (reduction->op == CADRE_MEAN) {
            status = reduce_mean(sum, summands.entries[i], &reduction->results[i], error);
        } else {
            reduction->results[i] = sum;
        }
    }
    components_release(&summands);
    return status;
}

/* --- checks of the arguments --- */

/* The tensor of a component must have the axes, and each be given once. */
static cadre_status take_axes(const cadre_tensor *tensor, uint32_t component, const int32_t axes[],
    uint32_t axis_count, bool along[CADRE_RANK_MAX], struct cadre_error *error)
{
    int64_t rank = (int64_t)cadre_tensor_rank(tensor);
    if (axis_count > CADRE_RANK_MAX || (axis_count > 0 && axes == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u axes were given%s; a value has at most %d", axis_count,
            axes == NULL ? " without a list" : "", CADRE_RANK_MAX);
    }
    if (axis_count > 0 && rank == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of the value holds scalars, which cannot be reduced along an axis; give "
            "no axis (cadre_reduce: CADRE_AXIS_NONE), or give them a dimension",
            component);
    }
    for (uint32_t i = 0; i < axis_count; i++) {
        CADRE_TRY(shape_check_axis(axes[i], rank, "the value", error));
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        CADRE_ASSERT(axis >= 0);
        if (along[axis]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "axis %lld is given twice; give each axis once", (long long)axis);
        }
        along[axis] = true;
    }
    return CADRE_OK;
}

static cadre_status check_op(cadre_reduce_op op, struct cadre_error *error)
{
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    return CADRE_OK;
}

/* Local replicas' tensors of each component fit together, and have the axes. */
static cadre_status check_value(const cadre_strategy *strategy, struct reduction *reduction,
    const int32_t axes[], uint32_t axis_count, struct cadre_error *error)
{
    cadre_per_replica *value = (cadre_per_replica *)(uintptr_t)reduction->value;
    CADRE_TRY(check_op(reduction->op, error));
    CADRE_TRY(shape_check_replicas(strategy, value, error));
    CADRE_TRY(shape_check_plain(value, "reduced", error));
    for (uint32_t i = 0; i < value->components; i++) {
        const cadre_tensor *first = *per_replica_at(value, i, 0);
        enum mesh_dtype summed;
        CADRE_TRY(collective_dtype(cadre_tensor_dtype(first), &summed, error));
        CADRE_TRY(take_axes(first, i, axes, axis_count, reduction->along[i], error));
        CADRE_TRY(shape_check_alike(value, i, reduction->along[i], "reduced", error));
    }
    return CADRE_OK;
}

/* "cadre_reduce(CADRE_MEAN, axis 0) of f32 [2, 3]" */
static void reductions_reduce_describe(
    const struct reduction *reduction, char text[STRATEGY_CALL_TEXT_BYTES])
{
    char shapes[STRATEGY_CALL_TEXT_BYTES - 76];
    char axes[8 + CADRE_RANK_MAX * 3] = "";
    size_t used = 0;
    for (uint32_t axis = 0; axis < CADRE_RANK_MAX; axis++) {
        if (reduction->along[0][axis]) {
            used += (size_t)snprintf(axes + used, sizeof axes - used, "%s%u",
                used == 0 ? ", axis " : " and ", axis % 10);
        }
    }
    snprintf(text, STRATEGY_CALL_TEXT_BYTES, "%s(%s%s) of %s", reduction->function,
        reduction->op == CADRE_MEAN ? "CADRE_MEAN" : "CADRE_SUM", axes,
        per_replica_text(reduction->value, shapes, sizeof shapes));
}

static cadre_status reduce_checked(
    cadre_strategy *strategy, struct reduction *reduction, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    const cadre_per_replica *given = reduction->value;
    CADRE_ASSERT(given->replicas == strategy->local_replicas);
    cadre_per_replica *here;
    CADRE_TRY(values_on_host(given, &here, error));
    reduction->value = here;
    reductions_reduce_describe(reduction, what);
    cadre_status status =
        strategy_between_steps(strategy, what, reduce_on_replica, reduction, error);
    if (status != CADRE_OK) {
        results_release(reduction);
    }
    reduction->value = given;
    cadre_per_replica_release(here);
    return status;
}

/* --- public --- */

static cadre_status reduce_values(cadre_strategy *strategy, struct reduction *reduction,
    const int32_t axes[], uint32_t axis_count, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    const char *function = reduction->function;
    for (uint32_t i = 0; i < cadre_per_replica_components(reduction->value); i++) {
        reduction->results[i] = NULL;
    }
    CADRE_TRY(strategy_enter(strategy, function, &call, error));
    CADRE_TRY(per_replica_require(reduction->value, function, "value", error));
    CADRE_TRY(check_value(strategy, reduction, axes, axis_count, error));
    return reduce_checked(strategy, reduction, error);
}

cadre_status reduce_elementwise(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    CADRE_ASSERT(op == CADRE_SUM || op == CADRE_MEAN);
    struct reduction reduction = {
        .function = function, .op = op, .value = value, .results = ret_tensors};
    return reduce_checked(strategy, &reduction, error);
}

cadre_status cadre_reduce_values(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const int32_t axes[], uint32_t axis_count,
    cadre_tensor *ret_tensors[])
{
    struct cadre_error error = {0};
    struct reduction reduction = {
        .function = __func__, .op = op, .value = value, .results = ret_tensors};
    cadre_status status = argument_require(ret_tensors, __func__, "ret_tensors", &error);
    if (status == CADRE_OK) {
        status = reduce_values(strategy, &reduction, axes, axis_count, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_reduce(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, int32_t axis, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    struct reduction reduction = {
        .function = __func__, .op = op, .value = value, .results = ret_tensor};
    uint32_t axis_count = axis == CADRE_AXIS_NONE ? 0 : 1;
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
    }
    if (status == CADRE_OK && cadre_per_replica_components(value) > 1) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "cadre_reduce takes a value of one component, and this one has %u; use "
            "cadre_reduce_values",
            cadre_per_replica_components(value));
    }
    if (status == CADRE_OK) {
        status = reduce_values(strategy, &reduction, &axis, axis_count, &error);
    }
    return api_return(status, &error);
}

bool reduce_is_zero(const cadre_tensor *tensor)
{
    size_t bytes = cadre_tensor_bytes(tensor);
    const uint8_t *data = cadre_tensor_const_data(tensor);
    bool zero = cadre_tensor_count(tensor) == 1;
    for (size_t i = 0; zero && i < bytes; i++) {
        zero = data[i] == 0;
    }
    return zero;
}

/* `tensor` is in the memory of the host. */
static cadre_status reduce_tensor(cadre_strategy *strategy, struct reduction *reduction,
    cadre_tensor *tensor, const int32_t axes[], uint32_t axis_count, struct cadre_error *error)
{
    CADRE_ASSERT(tensor_device(tensor) == NULL);
    cadre_per_replica *value = (cadre_per_replica *)(uintptr_t)reduction->value;
    for (uint32_t i = 0; i < value->replicas; i++) {
        *per_replica_at(value, 0, i) = cadre_tensor_retain(tensor);
    }
    CADRE_TRY(check_value(strategy, reduction, axes, axis_count, error));
    bool alone = strategy->environment->tasks <= 1;
    if (!alone) {
        reduction->of_tasks = true;
        return reduce_checked(strategy, reduction, error);
    }
    if (reduction->op == CADRE_SUM && strategy->local_replicas > 1 && !reduce_is_zero(tensor)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_reduce_tensor was asked for the sum over %u replicas of one tensor that is no "
            "per-replica value; give an output of cadre_run to cadre_reduce, or use CADRE_MEAN",
            strategy->local_replicas);
    }
    if (axis_count == 0) {
        *reduction->results = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    int64_t entries = 1;
    cadre_tensor *sum = NULL;
    CADRE_TRY(sum_axes(reduction->along[0], tensor, &sum, &entries, error));
    if (reduction->op == CADRE_MEAN) {
        return reduce_mean(sum, entries, reduction->results, error);
    }
    *reduction->results = sum;
    return CADRE_OK;
}

cadre_status cadre_reduce_tensor(cadre_strategy *strategy, cadre_reduce_op op, cadre_tensor *tensor,
    const int32_t axes[], uint32_t axis_count, cadre_tensor **ret_tensor)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    cadre_per_replica *value = per_replica_new(strategy->local_replicas, 1);
    if (value == NULL) {
        return api_return(
            cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a value"), &error);
    }
    struct reduction reduction = {
        .function = __func__, .op = op, .value = value, .results = ret_tensor};
    cadre_tensor *here = NULL;
    if (tensor_device(tensor) == NULL) {
        here = cadre_tensor_retain(tensor);
    } else {
        status = tensor_copy_to(NULL, tensor, &here, &error);
    }
    if (status == CADRE_OK) {
        status = reduce_tensor(strategy, &reduction, here, axes, axis_count, &error);
    }
    cadre_tensor_release(here);
    cadre_per_replica_release(value);
    return api_return(status, &error);
}
