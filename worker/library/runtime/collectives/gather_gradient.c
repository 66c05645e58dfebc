/* SPDX-License-Identifier: Apache-2.0
 * The gradient of an all-gather: the gradients of every replica's result are summed, and each
 * replica takes the part of its own tensor. Replica functions call it. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_device.h"
#include "worker/library/runtime/replica/collective_list.h"

/* The range of a replica's part along the axis. */
struct share {
    int64_t first;
    int64_t count;
    bool even; /* all parts are equally long */
};

static cadre_status find_share(const cadre_strategy *strategy, uint32_t id, const int64_t *sizes,
    const cadre_tensor *upstream, uint32_t axis, struct share *ret_share, struct cadre_error *error)
{
    int64_t whole = cadre_tensor_dim(upstream, axis);
    CADRE_ASSERT(id < strategy->replica_count);
    int64_t total = 0;
    *ret_share = (struct share){.count = sizes[id], .even = true};
    for (uint32_t i = 0; i < strategy->replica_count; i++) {
        if (i == id) {
            ret_share->first = total;
        }
        if (sizes[i] < 0 || sizes[i] > whole - total) {
            total = -1;
            break;
        }
        total += sizes[i];
        ret_share->even = ret_share->even && sizes[i] == sizes[0];
    }
    if (total == whole) {
        return CADRE_OK;
    }
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "cadre_all_gather_gradient was given %s, which is not as long along axis %u as the sum of "
        "the sizes that the replicas gave; give it the gradient of the whole result, and the size "
        "of the own tensor",
        tensor_shape_text(cadre_tensor_dtype(upstream), cadre_tensor_rank(upstream),
            cadre_tensor_dims(upstream), shape),
        axis);
}

static void gather_gradient_cut(
    const cadre_tensor *from, uint32_t axis, const struct share *share, cadre_tensor *into)
{
    size_t outer = 1;
    size_t inner = cadre_dtype_bytes(cadre_tensor_dtype(from));
    for (uint32_t i = 0; i < cadre_tensor_rank(from); i++) {
        outer *= i < axis ? (size_t)cadre_tensor_dim(from, i) : 1;
        inner *= i > axis ? (size_t)cadre_tensor_dim(from, i) : 1;
    }
    size_t row = (size_t)cadre_tensor_dim(from, axis) * inner;
    CADRE_ASSERT(share->first + share->count <= cadre_tensor_dim(from, axis));
    size_t bytes = (size_t)share->count * inner;
    const uint8_t *at =
        (const uint8_t *)cadre_tensor_const_data(from) + (size_t)share->first * inner;
    for (size_t i = 0; bytes > 0 && i < outer; i++) {
        memcpy((uint8_t *)cadre_tensor_data(into) + i * bytes, at + i * row, bytes);
    }
}

/* Sums all, and takes the own part. */
static cadre_status sum_and_cut(cadre_replica *replica, const cadre_tensor *upstream, uint32_t axis,
    enum mesh_dtype dtype, const struct share *share, const struct mesh_note *note,
    cadre_tensor *own, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct mesh_buffer *list;
    cadre_tensor *sum;
    CADRE_TRY(collective_list_room(&replica->list, 1, &list, error));
    CADRE_TRY(tensor_create_unset(cadre_tensor_dtype(upstream), cadre_tensor_rank(upstream),
        cadre_tensor_dims(upstream), &sum, error));
    list[0] = (struct mesh_buffer){.data = cadre_tensor_data(sum),
        .bytes = cadre_tensor_bytes(sum),
        .dtype = dtype,
        .from = cadre_tensor_const_data(upstream)};
    cadre_status status =
        collective_reduce(strategy, replica->local, MESH_SUM, list, 1, note, error);
    if (status == CADRE_OK) {
        gather_gradient_cut(sum, axis, share, own);
    }
    cadre_tensor_release(sum);
    return status;
}

/* Equal parts of the first dimension: a reduce-scatter, because no replica uses the others' sums.
 */
static cadre_status sum_own(cadre_replica *replica, const cadre_tensor *upstream,
    enum mesh_dtype dtype, const struct mesh_note *note, cadre_tensor *own,
    struct cadre_error *error)
{
    struct mesh *mesh = replica->strategy->mesh;
    CADRE_ASSERT(
        cadre_tensor_bytes(own) * replica->strategy->replica_count == cadre_tensor_bytes(upstream));
    const struct mesh_buffer part = {.data = cadre_tensor_data(own),
        .bytes = cadre_tensor_bytes(own),
        .dtype = dtype,
        .from = cadre_tensor_const_data(upstream)};
    return collective_explain(
        mesh->ops->reduce_scatter(mesh, replica->local, MESH_SUM, &part, note, error), error);
}

static cadre_status take_part(cadre_replica *replica, const cadre_tensor *upstream, uint32_t axis,
    enum mesh_dtype dtype, const int64_t *sizes, const struct mesh_note *note,
    cadre_tensor **ret_gradient, struct cadre_error *error)
{
    struct share share;
    int64_t dims[CADRE_RANK_MAX];
    CADRE_TRY(find_share(replica->strategy, replica->id, sizes, upstream, axis, &share, error));
    for (uint32_t i = 0; i < cadre_tensor_rank(upstream); i++) {
        dims[i] = i == axis ? share.count : cadre_tensor_dim(upstream, i);
    }
    cadre_tensor *own;
    CADRE_TRY(tensor_create_unset(
        cadre_tensor_dtype(upstream), cadre_tensor_rank(upstream), dims, &own, error));
    cadre_status status =
        axis == 0 && share.even
            ? sum_own(replica, upstream, dtype, note, own, error)
            : sum_and_cut(replica, upstream, axis, dtype, &share, note, own, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(own);
        return status;
    }
    *ret_gradient = own;
    return CADRE_OK;
}

static const char function[] = "cadre_all_gather_gradient";

/* Of a tensor in the host's memory. */
static cadre_status gradient_on_replica(cadre_replica *replica, const cadre_tensor *upstream,
    int32_t axis, int64_t own_size, const cadre_collective_options *options,
    cadre_tensor **ret_gradient, struct cadre_error *error)
{
    struct collective_settings settings;
    enum mesh_dtype dtype;
    CADRE_TRY(collective_dtype(cadre_tensor_dtype(upstream), &dtype, error));
    CADRE_TRY(collective_check_axis(cadre_tensor_rank(upstream), axis, error));
    CADRE_TRY(collective_options_settle(replica->strategy, options, &settings, error));
    uint64_t key = collective_key(0x6772616469656e74, (uint64_t)axis); /* of gradients */
    const struct step_call call = {.function = function,
        .key = collective_key_tensor(key, upstream, UINT32_MAX),
        .root = -1,
        .tensor_count = 1,
        .first = upstream,
        .timeout_us = settings.timeout_us};
    struct step_note note;
    CADRE_FREE_AT_EXIT int64_t *sizes = NULL;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = collective_gather_sizes(
        replica->strategy, replica->local, &own_size, 1, &note.mesh, &sizes, error);
    if (status == CADRE_OK) {
        status = take_part(
            replica, upstream, (uint32_t)axis, dtype, sizes, &note.mesh, ret_gradient, error);
    }
    return step_collective_end(replica, status, error);
}

static cadre_status gather_gradient(cadre_replica *replica, const cadre_tensor *upstream,
    int32_t axis, int64_t own_size, const cadre_collective_options *options,
    cadre_tensor **ret_gradient, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_gradient, function, "ret_gradient", error));
    *ret_gradient = NULL;
    CADRE_TRY(step_require_own_thread(replica, function, error));
    CADRE_TRY(argument_require(upstream, function, "upstream", error));
    cadre_tensor *const given[1] = {(cadre_tensor *)(uintptr_t)upstream};
    cadre_tensor *copy = NULL;
    struct device *device;
    CADRE_TRY(collective_same_device(replica, given, 1, &device, error));
    CADRE_TRY(collective_to_host(replica, device, given, 1, &copy, error));
    cadre_status status =
        gradient_on_replica(replica, copy, axis, own_size, options, ret_gradient, error);
    cadre_tensor_release(copy);
    return status == CADRE_OK ? collective_from_host(device, ret_gradient, 1, error) : status;
}

cadre_status cadre_all_gather_gradient(cadre_replica *replica, const cadre_tensor *upstream,
    int32_t axis, int64_t own_size, const cadre_collective_options *options,
    cadre_tensor **ret_gradient)
{
    struct cadre_error error;
    cadre_status status =
        gather_gradient(replica, upstream, axis, own_size, options, ret_gradient, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}
