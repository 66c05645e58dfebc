/* SPDX-License-Identifier: Apache-2.0
 * cadre_reduce: each replica sums its own tensor along the axis, then all replicas add up. */
#include "cadre/collective.h"

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/axis_sum.h"
#include "worker/runtime/border.h"
#include "worker/runtime/collective.h"
#include "worker/runtime/values.h"

struct reduction {
    cadre_reduce_op op;
    int32_t axis;
    cadre_tensor *const *values; /* of the local replicas */
    cadre_tensor *result;        /* of local replica 0 */
};

/* Types and shapes must be equal on all replicas; along the axis the sizes may differ. */
static uint64_t reduction_key(const struct reduction *reduction, const cadre_tensor *part)
{
    uint64_t key = collective_key(UINT64_MAX, (uint64_t)reduction->op);
    key = collective_key(key, (uint64_t)(int64_t)reduction->axis);
    key = collective_key(key, (uint64_t)cadre_tensor_dtype(part));
    key = collective_key(key, cadre_tensor_rank(part));
    for (uint32_t i = 0; i < cadre_tensor_rank(part); i++) {
        key = collective_key(key, (uint64_t)cadre_tensor_dim(part, i));
    }
    return key;
}

/* An integer's mean is a real number. Takes `sum` over. */
static cadre_status mean_of(
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
        for (size_t i = 0; i < count; i++) {
            mean[i] = axis_real(cadre_tensor_const_data(sum), i, dtype) / (double)entries;
        }
    }
    cadre_tensor_release(sum);
    return status;
}

static cadre_status reduce_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct reduction *reduction = user;
    if (local == 0) { /* an attempt before this one may have got so far */
        cadre_tensor_release(reduction->result);
        reduction->result = NULL;
    }
    cadre_tensor *value = reduction->values[local];
    cadre_tensor *part = NULL;
    enum mesh_dtype dtype;
    int64_t entries = 1;
    cadre_status status = collective_dtype(cadre_tensor_dtype(value), &dtype, error);
    if (status == CADRE_OK) {
        status = reduction->axis == CADRE_AXIS_NONE
                     ? tensor_copy(value, &part, error)
                     : axis_sum(value, reduction->axis, &part, &entries, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    struct mesh_buffer buffers[2] = {
        {.data = cadre_tensor_data(part), .bytes = cadre_tensor_bytes(part), .dtype = dtype},
        {.data = &entries, .bytes = sizeof entries, .dtype = MESH_I64},
    };
    status = collective_sum(strategy, local, buffers, 2, reduction_key(reduction, part), error);
    if (status != CADRE_OK || local != 0) {
        cadre_tensor_release(part);
        return status;
    }
    if (reduction->op == CADRE_MEAN) {
        return mean_of(part, entries, &reduction->result, error);
    }
    reduction->result = part;
    return CADRE_OK;
}

static const char *text_of(const cadre_tensor *tensor, char text[TENSOR_SHAPE_TEXT_BYTES])
{
    return tensor_shape_text(
        cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), text);
}

/* Of one type and shape, but for the size along one axis (-1: none). */
static bool alike(const cadre_tensor *a, const cadre_tensor *b, int64_t along)
{
    bool same = cadre_tensor_dtype(a) == cadre_tensor_dtype(b) &&
                cadre_tensor_rank(a) == cadre_tensor_rank(b);
    for (uint32_t axis = 0; same && axis < cadre_tensor_rank(a); axis++) {
        same = axis == along || cadre_tensor_dim(a, axis) == cadre_tensor_dim(b, axis);
    }
    return same;
}

static cadre_status check_value(const cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, int32_t axis, struct cadre_error *error)
{
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    if (value->components != 1 || value->replicas != strategy->local_replicas) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_reduce takes one tensor per local replica (%u), and was given %u components "
            "of %u; reduce the outputs of cadre_run one at a time",
            strategy->local_replicas, value->components, value->replicas);
    }
    const cadre_tensor *first = value->tensors[0];
    enum mesh_dtype summed;
    cadre_status status = collective_dtype(cadre_tensor_dtype(first), &summed, error);
    if (status != CADRE_OK) {
        return status;
    }
    int64_t rank = (int64_t)cadre_tensor_rank(first);
    if (axis != CADRE_AXIS_NONE && (axis < -rank || axis >= rank)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %d is outside of [-%lld, %lld), the axes of the value; use CADRE_AXIS_NONE to "
            "combine whole tensors",
            (int)axis, (long long)rank, (long long)rank);
    }
    int64_t along = axis == CADRE_AXIS_NONE ? -1 : (axis + rank) % rank;
    for (uint32_t i = 1; i < value->replicas; i++) {
        if (!alike(first, value->tensors[i], along)) {
            char shape[TENSOR_SHAPE_TEXT_BYTES];
            char other[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the outputs of local replicas 0 and %u are %s and %s; to be reduced they must be "
                "equal in type and shape%s",
                i, text_of(first, shape), text_of(value->tensors[i], other),
                along < 0 ? "" : ", but for the size along the axis");
        }
    }
    return CADRE_OK;
}

cadre_status cadre_reduce(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, int32_t axis, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = strategy_enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = argument_require(value, __func__, "value", &error);
    }
    if (status == CADRE_OK) {
        status = check_value(strategy, op, value, axis, &error);
    }
    if (status != CADRE_OK) {
        return border(status, &error);
    }
    int32_t rank = (int32_t)cadre_tensor_rank(value->tensors[0]);
    struct reduction reduction = {.op = op,
        .axis = axis != CADRE_AXIS_NONE && axis < 0 ? axis + rank : axis,
        .values = value->tensors};
    status = strategy_outside(strategy, reduce_here, &reduction, &error);
    if (status != CADRE_OK) {
        cadre_tensor_release(reduction.result);
        return border(status, &error);
    }
    *ret_tensor = reduction.result;
    return CADRE_OK;
}
