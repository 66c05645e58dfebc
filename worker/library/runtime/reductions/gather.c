/* SPDX-License-Identifier: Apache-2.0
 * Strategy.gather: the replicas exchange the sizes of their tensors along the axis, then their
 * bytes; the received pieces are put in order along the axis.
 *
 * It may be played back to a task that was frozen in it, in a generation of another size
 * (between_steps.h): so the number of replicas and their sizes come only from the results of the
 * collectives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/reduce.h"
#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/arithmetic/concatenate.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/values/shape_check.h"
#include "worker/library/runtime/values/values.h"

struct gathering {
    const char *function; /* the public function, for messages */
    int32_t axis;
    bool of_tasks; /* one value a task: replicas but the first add nothing */
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
static cadre_status exchange_sizes(cadre_strategy *strategy, uint32_t local, int64_t own,
    uint64_t key, int64_t **ret_sizes, uint32_t *ret_count, struct cadre_error *error)
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
    if (at < count) { /* else the sizes are of another generation and are used as received */
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

/* All replicas' tensors of one component, and their sizes along the axis. */
struct gathered {
    cadre_tensor *tensor;
    int64_t *sizes; /* malloc'ed */
    uint32_t count;
};

static void gathered_clear(struct gathered *gathered)
{
    cadre_tensor_release(gathered->tensor);
    free(gathered->sizes);
    *gathered = (struct gathered){0};
}

/* `adds`: this replica's tensor is in the result; else only the others' are. */
static cadre_status gather_component(cadre_strategy *strategy, uint32_t local,
    const cadre_tensor *own, bool adds, uint32_t axis, uint64_t key, struct gathered *ret_gathered,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT size_t *bytes = NULL;
    CADRE_ASSERT(axis < cadre_tensor_rank(own));
    CADRE_TRY(exchange_sizes(strategy, local, adds ? cadre_tensor_dim(own, axis) : 0,
        collective_key_tensor(collective_key(key, axis), own, axis), &ret_gathered->sizes,
        &ret_gathered->count, error));
    const uint32_t count = ret_gathered->count;
    bytes = calloc(count, sizeof *bytes);
    struct concatenation all;
    cadre_status status =
        bytes == NULL
            ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for sizes")
            : concatenation_begin(&all, own, axis, ret_gathered->sizes, count, bytes, error);
    if (status == CADRE_OK) {
        status =
            strategy->mesh->ops->all_gather(strategy->mesh, local, cadre_tensor_const_data(own),
                adds ? cadre_tensor_bytes(own) : 0, bytes, all.pieces, NULL, error);
        if (status == CADRE_OK) {
            ret_gathered->tensor = concatenation_end(&all);
            CADRE_ASSERT(ret_gathered->tensor != NULL);
        } else {
            concatenation_drop(&all);
        }
    }
    return collective_explain(status, error);
}

/* Joins the gathered components of a ragged or sparse value to one value. */
static cadre_status join_components(
    const struct composite *composite, struct gathered components[], struct cadre_error *error)
{
    cadre_tensor *joined = NULL;
    struct gathered *last = &components[composite->count - 1];
    if (composite->kind == CADRE_COMPOSITE_NONE) {
        return CADRE_OK;
    }
    cadre_status status =
        composite->kind == CADRE_COMPOSITE_RAGGED
            ? ragged_splits_concat(last->tensor, last->sizes, last->count, &joined, error)
            : sparse_indices_concat(components[0].tensor, last->tensor, components[0].sizes,
                  components[0].count, &joined, error);
    if (status == CADRE_OK) {
        cadre_tensor_release(last->tensor);
        last->tensor = joined;
    }
    return status;
}

/* The components of one value, into the results of local replica 0. */
static cadre_status gather_value(cadre_strategy *strategy, uint32_t local,
    struct gathering *gathering, const struct composite *composite, struct cadre_error *error)
{
    struct gathered components[COMPOSITE_COMPONENTS_MAX] = {{0}};
    cadre_status status = CADRE_OK;
    CADRE_ASSERT(composite->count <= COMPOSITE_COMPONENTS_MAX);
    for (uint32_t i = 0; i < composite->count && status == CADRE_OK; i++) {
        const uint32_t component = composite->first + i;
        status = gather_component(strategy, local,
            *per_replica_at(gathering->value, component, local), !gathering->of_tasks || local == 0,
            (uint32_t)gathering->axis, component, &components[i], error);
    }
    if (status == CADRE_OK && local == 0) {
        status = join_components(composite, components, error);
    }
    for (uint32_t i = 0; i < composite->count; i++) {
        if (status == CADRE_OK && local == 0) {
            gathering->results[composite->first + i] = components[i].tensor;
            components[i].tensor = NULL;
        }
        gathered_clear(&components[i]);
    }
    return status;
}

static cadre_status gather_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct gathering *gathering = user;
    if (local == 0) { /* an attempt before this one may have set it */
        results_release(gathering);
    }
    const cadre_element own = per_replica_element(gathering->value, local);
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < own.count; i += at.count) {
        at = composite_of_element(&own, i);
        CADRE_TRY(gather_value(strategy, local, gathering, &at, error));
    }
    return CADRE_OK;
}

/* A ragged or sparse value is joined by rows. */
static cadre_status check_axis(
    const cadre_per_replica *value, int32_t axis, struct cadre_error *error)
{
    const cadre_element first = per_replica_element(value, 0);
    for (uint32_t i = 0; i < first.count && axis != 0; i++) {
        const struct composite at = composite_of_element(&first, i);
        if (at.kind != CADRE_COMPOSITE_NONE) {
            char text[COMPOSITE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s of the value are gathered along axis 0 alone, their rows, and axis %d was "
                "given",
                composite_text(&at, text), (int)axis);
        }
    }
    return CADRE_OK;
}

/* Whether the component can be gathered along the axis. */
static cadre_status check_component(
    const cadre_tensor *tensor, uint32_t component, int32_t axis, struct cadre_error *error)
{
    int64_t rank = cadre_tensor_rank(tensor);
    if (rank == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of the value holds scalars, which cannot be gathered along an axis; "
            "give them a dimension",
            component);
    }
    if (cadre_tensor_dtype(tensor) == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u of the value holds strings, which are not gathered; use numbers",
            component);
    }
    if (axis < 0 || axis >= rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %d is outside of [0, %lld), the axes of component %u of the value", (int)axis,
            (long long)rank, component);
    }
    return CADRE_OK;
}

static cadre_status reductions_gather_check(
    const cadre_strategy *strategy, const struct gathering *gathering, struct cadre_error *error)
{
    CADRE_TRY(shape_check_replicas(strategy, gathering->value, error));
    CADRE_TRY(check_axis(gathering->value, gathering->axis, error));
    for (uint32_t i = 0; i < gathering->value->components; i++) {
        const cadre_tensor *first = *per_replica_at(gathering->value, i, 0);
        CADRE_TRY(check_component(first, i, gathering->axis, error));
        bool along[CADRE_RANK_MAX] = {false};
        along[gathering->axis] = true;
        CADRE_TRY(shape_check_alike(gathering->value, i, along, "gathered", error));
    }
    return CADRE_OK;
}

static cadre_status reductions_gather_gather(
    cadre_strategy *strategy, struct gathering *gathering, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    char shapes[STRATEGY_CALL_TEXT_BYTES - 40];
    cadre_per_replica *given = gathering->value;
    CADRE_TRY(values_on_host(given, &gathering->value, error));
    cadre_status checked = shape_check_composites(gathering->value, error);
    if (checked != CADRE_OK) {
        cadre_per_replica_release(gathering->value);
        gathering->value = given;
        return checked;
    }
    snprintf(what, sizeof what, "%s(axis %d) of %s", gathering->function, (int)gathering->axis,
        per_replica_text(gathering->value, shapes, sizeof shapes));
    cadre_status status =
        strategy_between_steps(strategy, what, gather_on_replica, gathering, error);
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
    struct gathering gathering = {.function = __func__,
        .axis = axis,
        .value = (cadre_per_replica *)(uintptr_t)value,
        .results = ret_tensors};
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
        status = reductions_gather_check(strategy, &gathering, &error);
    }
    if (status == CADRE_OK) {
        status = reductions_gather_gather(strategy, &gathering, &error);
    }
    return api_return(status, &error);
}

/* In a job of one task all replicas have the tensor: the result has it once. Else each task adds
 * its own. */
static cadre_status gather_tensor(cadre_strategy *strategy, const char *function,
    cadre_tensor *tensor, int32_t axis, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(check_component(tensor, 0, axis, error));
    if (strategy->environment->tasks <= 1) {
        *ret_tensor = cadre_tensor_retain(tensor);
        return CADRE_OK;
    }
    cadre_per_replica *value = per_replica_new(strategy->local_replicas, 1);
    if (value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a value");
    }
    for (uint32_t i = 0; i < value->replicas; i++) {
        *per_replica_at(value, 0, i) = cadre_tensor_retain(tensor);
    }
    struct gathering gathering = {.function = function,
        .axis = axis,
        .of_tasks = true,
        .value = value,
        .results = ret_tensor};
    cadre_status status = reductions_gather_gather(strategy, &gathering, error);
    cadre_per_replica_release(value);
    return status;
}

cadre_status cadre_gather_tensor(
    cadre_strategy *strategy, cadre_tensor *tensor, int32_t axis, cadre_tensor **ret_tensor)
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
    if (status == CADRE_OK) {
        status = gather_tensor(strategy, __func__, tensor, axis, ret_tensor, &error);
    }
    return api_return(status, &error);
}
