/* SPDX-License-Identifier: Apache-2.0
 * cadre_all_gather, and the exchange of sizes before it. Replica functions, gather_gradient.c,
 * sparse.c and reductions/ call it. */
#include "worker/library/runtime/collectives/collective.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/concatenate.h"
#include "worker/library/runtime/collectives/collective_device.h"
#include "worker/library/runtime/replica/collective_list.h"

cadre_status collective_check_axis(uint32_t rank, int32_t axis, struct cadre_error *error)
{
    if (axis < 0 || (uint32_t)axis >= rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %d is not one of a tensor of %u dimensions, which has axes from 0 on%s",
            (int)axis, rank, rank == 0 ? "; give it a dimension to gather along" : "");
    }
    return CADRE_OK;
}

/* Each replica puts its numbers among zeros: the sum is all of them. */
cadre_status collective_gather_sizes(cadre_strategy *strategy, uint32_t local, const int64_t *own,
    size_t count, const struct mesh_note *note, int64_t **ret_all, struct cadre_error *error)
{
    size_t total = (size_t)strategy->replica_count * count;
    CADRE_ASSERT(local < strategy->local_replicas);
    CADRE_ASSERT(strategy->replicas[local].id < strategy->replica_count);
    struct mesh_buffer *list;
    *ret_all = NULL;
    CADRE_TRY(collective_list_room(&strategy->replicas[local].list, 1, &list, error));
    int64_t *all = calloc(total + 1, sizeof *all);
    if (all == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the sizes of %zu tensors", total);
    }
    for (size_t i = 0; i < count; i++) {
        all[(size_t)strategy->replicas[local].id * count + i] = own[i];
    }
    list[0] = (struct mesh_buffer){.data = all, .bytes = total * sizeof *all, .dtype = MESH_I64};
    cadre_status status = collective_reduce(strategy, local, MESH_SUM, list, 1, note, error);
    if (status != CADRE_OK) {
        free(all);
        return status;
    }
    *ret_all = all;
    return CADRE_OK;
}

/* Gathers the bytes of one tensor; `sizes` are those of all replicas along the axis. */
static cadre_status gather_one(cadre_strategy *strategy, uint32_t local, const cadre_tensor *input,
    uint32_t axis, const int64_t *sizes, const struct mesh_note *note, cadre_tensor **ret_output,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT size_t *bytes = calloc(strategy->replica_count, sizeof *bytes);
    CADRE_ASSERT(axis < cadre_tensor_rank(input));
    struct concatenation all;
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for sizes");
    }
    struct device *device = tensor_device(input);
    struct mesh_note here = *note;
    here.on = device;
    CADRE_TRY(concatenation_begin(&all, input, axis, sizes, strategy->replica_count, bytes, error));
    cadre_status status = collective_device_begin(device, error);
    if (status == CADRE_OK) {
        status = collective_explain(
            strategy->mesh->ops->all_gather(strategy->mesh, local, cadre_tensor_const_data(input),
                cadre_tensor_bytes(input), bytes, all.pieces, &here, error),
            error);
    }
    if (status == CADRE_OK) {
        status = collective_device_end(device, error);
    }
    if (status != CADRE_OK) {
        concatenation_drop(&all);
        return status;
    }
    *ret_output = concatenation_end(&all);
    return CADRE_OK;
}

static cadre_status gather_each(cadre_strategy *strategy, uint32_t local,
    cadre_tensor *const inputs[], size_t count, uint32_t axis, const int64_t *all,
    const struct mesh_note *note, cadre_tensor *ret_outputs[], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *sizes = calloc(strategy->replica_count, sizeof *sizes);
    if (sizes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for sizes");
    }
    for (size_t i = 0; i < count; i++) {
        for (uint32_t replica = 0; replica < strategy->replica_count; replica++) {
            sizes[replica] = all[replica * count + i];
        }
        CADRE_TRY(
            gather_one(strategy, local, inputs[i], axis, sizes, note, &ret_outputs[i], error));
    }
    return CADRE_OK;
}

cadre_status collective_gather(cadre_strategy *strategy, uint32_t local,
    cadre_tensor *const inputs[], size_t count, uint32_t axis, const struct mesh_note *note,
    cadre_tensor *ret_outputs[], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *all = NULL;
    CADRE_FREE_AT_EXIT int64_t *own = calloc(count + 1, sizeof *own);
    if (own == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for sizes");
    }
    for (size_t i = 0; i < count; i++) {
        own[i] = cadre_tensor_dim(inputs[i], axis);
        ret_outputs[i] = NULL;
    }
    CADRE_TRY(collective_gather_sizes(strategy, local, own, count, note, &all, error));
    cadre_status status =
        gather_each(strategy, local, inputs, count, axis, all, note, ret_outputs, error);
    for (size_t i = 0; status != CADRE_OK && i < count; i++) {
        cadre_tensor_release(ret_outputs[i]);
        ret_outputs[i] = NULL;
    }
    return status;
}

/* --- cadre_all_gather --- */

static cadre_status collective_gather_check(
    cadre_tensor *const inputs[], size_t count, int32_t axis, struct cadre_error *error)
{
    CADRE_TRY(collective_check(inputs, count, error));
    for (size_t i = 0; i < count; i++) {
        if (cadre_tensor_dtype(inputs[i]) == CADRE_STRING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor %zu holds strings, which cannot be gathered; use a number type", i);
        }
        CADRE_TRY(collective_check_axis(cadre_tensor_rank(inputs[i]), axis, error));
    }
    return CADRE_OK;
}

static cadre_status gather_on_replica(cadre_replica *replica, cadre_tensor *const inputs[],
    size_t count, int32_t axis, const struct collective_settings *settings,
    cadre_tensor *ret_outputs[], struct cadre_error *error)
{
    static const char *const names[CADRE_RANK_MAX] = {"cadre_all_gather along axis 0",
        "cadre_all_gather along axis 1", "cadre_all_gather along axis 2",
        "cadre_all_gather along axis 3", "cadre_all_gather along axis 4",
        "cadre_all_gather along axis 5", "cadre_all_gather along axis 6",
        "cadre_all_gather along axis 7"};
    uint64_t key = collective_key(0x6761746865725f61, count); /* of gathers */
    key = collective_key(key, (uint64_t)axis);
    for (size_t i = 0; i < count; i++) {
        key = collective_key_tensor(key, inputs[i], (uint32_t)axis);
    }
    const struct step_call call = {
        .function = count > 0 ? names[axis] : "cadre_all_gather of nothing",
        .key = key,
        .root = -1,
        .tensor_count = count,
        .first = count > 0 ? inputs[0] : NULL,
        .on_device = count > 0 && tensor_device(inputs[0]) != NULL,
        .timeout_us = settings->timeout_us};
    struct step_note note;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = collective_gather(replica->strategy, replica->local, inputs, count,
        (uint32_t)axis, &note.mesh, ret_outputs, error);
    return step_collective_end(replica, status, error);
}

/* Whether the tensors joined along the axis are in memory one after the other. */
static bool lie_in_order(cadre_tensor *const inputs[], size_t count, uint32_t axis)
{
    bool order = true;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t before = 0; before < axis; before++) {
            order = order && cadre_tensor_dim(inputs[i], before) == 1;
        }
    }
    return order;
}

static cadre_status all_gather(cadre_replica *replica, cadre_tensor *const inputs[], size_t count,
    int32_t axis, const cadre_collective_options *options, cadre_tensor *ret_outputs[],
    struct cadre_error *error)
{
    struct collective_settings settings;
    struct device *device;
    CADRE_TRY(step_require_own_thread(replica, "cadre_all_gather", error));
    CADRE_TRY(collective_gather_check(inputs, count, axis, error));
    CADRE_TRY(collective_options_settle(replica->strategy, options, &settings, error));
    CADRE_TRY(collective_same_device(replica, inputs, count, &device, error));
    if (device == NULL || lie_in_order(inputs, count, (uint32_t)axis)) {
        return gather_on_replica(replica, inputs, count, axis, &settings, ret_outputs, error);
    }
    CADRE_FREE_AT_EXIT cadre_tensor **copies = calloc(count, sizeof(cadre_tensor *));
    if (copies == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
    }
    CADRE_TRY(collective_to_host(replica, device, inputs, count, copies, error));
    cadre_status status =
        gather_on_replica(replica, copies, count, axis, &settings, ret_outputs, error);
    for (size_t i = 0; i < count; i++) {
        cadre_tensor_release(copies[i]);
    }
    return status == CADRE_OK ? collective_from_host(device, ret_outputs, count, error) : status;
}

cadre_status cadre_all_gather(cadre_replica *replica, cadre_tensor *const inputs[], size_t count,
    int32_t axis, const cadre_collective_options *options, cadre_tensor *ret_outputs[])
{
    struct cadre_error error;
    cadre_status status =
        count == 0 ? CADRE_OK : argument_require(ret_outputs, __func__, "ret_outputs", &error);
    for (size_t i = 0; ret_outputs != NULL && i < count && i < COLLECTIVE_TENSORS_MAX; i++) {
        ret_outputs[i] = NULL;
    }
    if (status == CADRE_OK) {
        status = all_gather(replica, inputs, count, axis, options, ret_outputs, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}
