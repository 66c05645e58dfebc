/* SPDX-License-Identifier: Apache-2.0
 * Strategy.gather: the replicas tell each other how long their tensors are along the axis, then
 * give their bytes; what came is put in order along the axis.
 *
 * It may be played back to a task that was frozen in it, in a generation of another size
 * (outside.h): so how many replicas there are, and how long their parts, is only what the
 * collectives themselves have told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/reduce.h"
#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/arithmetic/concatenate.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/values/shape_check.h"
#include "worker/library/runtime/values/values.h"

struct gathering {
    int32_t axis;
    cadre_per_replica *value;
    cadre_tensor **results; /* [component], of local replica 0 */
};

static void results_release(struct gathering *gathering)
{
    for (uint32_t i = 0; i < gathering->value->components; i++) {
        cadre_tensor_release(gathering->results[i]);
        gathering->results[i] = NULL;
    }
}

/* The sizes along the axis of all replicas' tensors; *ret_sizes is the caller's to free. */
static cadre_status tell_sizes(cadre_strategy *strategy, uint32_t local, int64_t own, uint64_t key,
    int64_t **ret_sizes, uint32_t *ret_count, struct cadre_error *error)
{
    int64_t count = 1;
    *ret_sizes = NULL;
    const struct mesh_buffer one = {.data = &count, .bytes = sizeof count, .dtype = MESH_I64};
    CADRE_TRY(collective_sum(strategy, local, &one, 1, key, error));
    if (count <= 0 || count > UINT32_MAX) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the tasks said that %lld replicas gather, which cannot be; all tasks have to run the "
            "same build",
            (long long)count);
    }
    int64_t *sizes = calloc((size_t)count, sizeof *sizes);
    if (sizes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %lld sizes", (long long)count);
    }
    int64_t at = (int64_t)strategy->roster.rank * strategy->local_replicas + local;
    if (at < count) { /* else the sizes are of another generation, and come as they are */
        sizes[at] = own;
    }
    const struct mesh_buffer all = {
        .data = sizes, .bytes = (size_t)count * sizeof *sizes, .dtype = MESH_I64};
    cadre_status status = collective_sum(strategy, local, &all, 1, key, error);
    if (status != CADRE_OK) {
        free(sizes);
        return status;
    }
    *ret_sizes = sizes;
    *ret_count = (uint32_t)count;
    return CADRE_OK;
}

static cadre_status gather_component(cadre_strategy *strategy, uint32_t local,
    const cadre_tensor *own, uint32_t axis, uint64_t key, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *sizes = NULL;
    CADRE_FREE_AT_EXIT size_t *bytes = NULL;
    uint32_t count = 0;
    CADRE_ASSERT(axis < cadre_tensor_rank(own));
    CADRE_TRY(tell_sizes(strategy, local, cadre_tensor_dim(own, axis),
        collective_key_tensor(collective_key(key, axis), own, axis), &sizes, &count, error));
    bytes = calloc(count, sizeof *bytes);
    struct concatenation all;
    cadre_status status =
        bytes == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for sizes")
                      : concatenation_begin(&all, own, axis, sizes, count, bytes, error);
    if (status == CADRE_OK) {
        status = strategy->mesh->ops->all_gather(strategy->mesh, local,
            cadre_tensor_const_data(own), cadre_tensor_bytes(own), bytes, all.pieces, NULL, error);
        if (status == CADRE_OK) {
            *ret_tensor = concatenation_end(&all);
        } else {
            concatenation_drop(&all);
        }
    }
    return collective_verdict(status, error);
}

static cadre_status gather_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct gathering *gathering = user;
    if (local == 0) { /* an attempt before this one may have got so far */
        results_release(gathering);
    }
    for (uint32_t i = 0; i < gathering->value->components; i++) {
        const cadre_tensor *own = *per_replica_at(gathering->value, i, local);
        cadre_tensor *result = NULL;
        CADRE_TRY(
            gather_component(strategy, local, own, (uint32_t)gathering->axis, i, &result, error));
        CADRE_ASSERT(result != NULL);
        if (local == 0) {
            gathering->results[i] = result;
        } else {
            cadre_tensor_release(result);
        }
    }
    return CADRE_OK;
}

static cadre_status check(
    const cadre_strategy *strategy, const struct gathering *gathering, struct cadre_error *error)
{
    CADRE_TRY(shape_check_replicas(strategy, gathering->value, error));
    for (uint32_t i = 0; i < gathering->value->components; i++) {
        const cadre_tensor *first = *per_replica_at(gathering->value, i, 0);
        int64_t rank = cadre_tensor_rank(first);
        if (rank == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %u of the value holds scalars, which cannot be gathered along an axis; "
                "give them a dimension",
                i);
        }
        if (cadre_tensor_dtype(first) == CADRE_STRING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %u of the value holds strings, which are not gathered; use numbers", i);
        }
        if (gathering->axis < 0 || gathering->axis >= rank) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "axis %d is outside of [0, %lld), the axes of component %u of the value",
                (int)gathering->axis, (long long)rank, i);
        }
        bool along[CADRE_RANK_MAX] = {false};
        along[gathering->axis] = true;
        CADRE_TRY(shape_check_alike(gathering->value, i, along, "gathered", error));
    }
    return CADRE_OK;
}

static cadre_status gather(
    cadre_strategy *strategy, struct gathering *gathering, struct cadre_error *error)
{
    char what[STRATEGY_WHAT_BYTES];
    char shapes[STRATEGY_WHAT_BYTES - 40];
    cadre_per_replica *given = gathering->value;
    CADRE_TRY(values_on_host(given, &gathering->value, error));
    snprintf(what, sizeof what, "cadre_gather(axis %d) of %s", (int)gathering->axis,
        per_replica_text(gathering->value, shapes, sizeof shapes));
    cadre_status status = strategy_outside(strategy, what, gather_here, gathering, error);
    if (status != CADRE_OK) {
        results_release(gathering);
    }
    cadre_per_replica_release(gathering->value);
    gathering->value = given;
    return status;
}

cadre_status cadre_gather(cadre_strategy *strategy, const cadre_per_replica *value, int32_t axis,
    cadre_tensor *ret_tensors[])
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct gathering gathering = {
        .axis = axis, .value = (cadre_per_replica *)(uintptr_t)value, .results = ret_tensors};
    cadre_status status = argument_require(ret_tensors, __func__, "ret_tensors", &error);
    for (uint32_t i = 0; status == CADRE_OK && i < cadre_per_replica_components(value); i++) {
        ret_tensors[i] = NULL;
    }
    if (status == CADRE_OK) {
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = per_replica_require(value, __func__, "value", &error);
    }
    if (status == CADRE_OK) {
        status = check(strategy, &gathering, &error);
    }
    if (status == CADRE_OK) {
        status = gather(strategy, &gathering, &error);
    }
    return border(status, &error);
}
