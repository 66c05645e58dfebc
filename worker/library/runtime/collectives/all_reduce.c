/* SPDX-License-Identifier: Apache-2.0
 * All-reduces, made and done: argument checks, the call's key, the order of a device's streams.
 * all_reduce_call.c and collective_async.c call it, for replica functions. */
#include "worker/library/runtime/collectives/all_reduce.h"

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/arithmetic/shape.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_device.h"

cadre_status all_reduce_op(cadre_reduce_op op, enum mesh_op *ret_op, struct cadre_error *error)
{
    static const enum mesh_op of[] = {
        [CADRE_SUM] = MESH_SUM,
        [CADRE_MEAN] = MESH_SUM,
        [CADRE_MIN] = MESH_MIN,
        [CADRE_MAX] = MESH_MAX,
        [CADRE_PROD] = MESH_PROD,
    };
    if ((int)op < CADRE_SUM || op > CADRE_PROD) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction; use CADRE_SUM or CADRE_MEAN, CADRE_MIN, CADRE_MAX or "
            "CADRE_PROD",
            (int)op);
    }
    *ret_op = of[op];
    return CADRE_OK;
}

cadre_status all_reduce_dtype(cadre_reduce_op op, const cadre_tensor *tensor, size_t index,
    enum mesh_dtype *ret_dtype, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    CADRE_TRY(collective_dtype(dtype, ret_dtype, error));
    if (op == CADRE_MEAN && dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensor %zu has type %s; a reduction with CADRE_MEAN needs a floating type", index,
            cadre_dtype_name(dtype));
    }
    return CADRE_OK;
}

/* A result must have room for what is reduced, and may not overlap it but entirely. */
static cadre_status check_pair(
    const cadre_tensor *from, cadre_tensor *into, size_t index, struct cadre_error *error)
{
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    char is[TENSOR_SHAPE_TEXT_BYTES];
    if (cadre_tensor_dtype(from) != cadre_tensor_dtype(into) || !shape_same(from, into)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "result %zu of an all-reduce is %s and its tensor %s; give it a tensor of the same "
            "type and shape",
            index,
            tensor_shape_text(
                cadre_tensor_dtype(into), cadre_tensor_rank(into), cadre_tensor_dims(into), is),
            tensor_shape_text(cadre_tensor_dtype(from), cadre_tensor_rank(from),
                cadre_tensor_dims(from), wanted));
    }
    uintptr_t a = (uintptr_t)cadre_tensor_const_data(from);
    uintptr_t b = (uintptr_t)cadre_tensor_const_data(into);
    size_t bytes = cadre_tensor_bytes(from);
    if (a != b && (a < b ? b - a : a - b) < bytes) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "result %zu of an all-reduce overlaps its tensor in memory; give it a tensor of its "
            "own, or the same one",
            index);
    }
    return CADRE_OK;
}

static cadre_status collectives_all_reduce_fill(struct all_reduce *all_reduce, cadre_reduce_op op,
    cadre_tensor *const from[], cadre_tensor *const into[], struct cadre_error *error)
{
    uint64_t key = collective_key(0x616c6c5f72656475, (uint64_t)op); /* of all-reduces */
    key = collective_key(key, all_reduce->bytes_per_pack);
    CADRE_ASSERT(all_reduce->count <= COLLECTIVE_TENSORS_MAX);
    CADRE_ASSERT(all_reduce->buffers != NULL);
    for (size_t i = 0; i < all_reduce->count; i++) {
        struct mesh_buffer *buffer = &all_reduce->buffers[i];
        CADRE_TRY(all_reduce_dtype(op, from[i], i, &buffer->dtype, error));
        key = collective_key_tensor(key, from[i], UINT32_MAX);
        buffer->data = cadre_tensor_data(into[i]);
        buffer->bytes = cadre_tensor_bytes(from[i]);
        buffer->from = NULL;
        buffer->on = all_reduce->device;
        if (from[i] != into[i]) {
            CADRE_TRY(check_pair(from[i], into[i], i, error));
            const void *data = cadre_tensor_const_data(from[i]);
            buffer->from = data == buffer->data ? NULL : data;
        }
    }
    all_reduce->call.key = key;
    return CADRE_OK;
}

cadre_status all_reduce_make(struct all_reduce *ret_all_reduce, cadre_replica *replica,
    cadre_reduce_op op, cadre_tensor *const from[], cadre_tensor *const into[], size_t count,
    const cadre_collective_options *options, struct collective_list *list,
    struct cadre_error *error)
{
    static const char *const names[] = {
        [CADRE_SUM] = "cadre_all_reduce(CADRE_SUM)",
        [CADRE_MEAN] = "cadre_all_reduce(CADRE_MEAN)",
        [CADRE_MIN] = "cadre_all_reduce(CADRE_MIN)",
        [CADRE_MAX] = "cadre_all_reduce(CADRE_MAX)",
        [CADRE_PROD] = "cadre_all_reduce(CADRE_PROD)",
    };
    struct all_reduce *made = ret_all_reduce;
    struct collective_settings settings;
    CADRE_TRY(all_reduce_op(op, &made->op, error));
    CADRE_TRY(collective_check(from, count, error));
    if (into != from) {
        CADRE_TRY(collective_check(into, count, error));
    }
    CADRE_TRY(collective_options_settle(replica->strategy, options, &settings, error));
    CADRE_TRY(collective_same_device(replica, from, count, &made->device, error));
    if (into != from) {
        struct device *buffer_device;
        CADRE_TRY(collective_same_device(replica, into, count, &buffer_device, error));
        if (buffer_device != made->device) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the tensors of an all-reduce are in the memory of %s and its results in that of "
                "%s; give both in one memory (cadre_tensor_create_on)",
                made->device == NULL ? "the host" : "a GPU",
                buffer_device == NULL ? "the host" : "a GPU");
        }
    }
    CADRE_TRY(collective_list_room(list, count, &made->buffers, error));
    made->begun = NULL;
    made->done = NULL;
    made->strategy = replica->strategy;
    made->local = replica->local;
    made->mean = op == CADRE_MEAN;
    made->results = into;
    made->count = count;
    made->bytes_per_pack = settings.bytes_per_pack;
    made->call = (struct step_call){.function = names[op],
        .root = -1,
        .tensor_count = count,
        .first = count > 0 ? from[0] : NULL,
        .on_device = made->device != NULL,
        .timeout_us = settings.timeout_us};
    return collectives_all_reduce_fill(made, op, from, into, error);
}

/* Orders the collective after what made the tensors, on comm. */
static cadre_status begin_on_device(const struct all_reduce *all_reduce, struct cadre_error *error)
{
    struct device *device = all_reduce->device;
    CADRE_ASSERT(device != NULL);
    return all_reduce->begun == NULL
               ? collective_device_begin(device, error)
               : device->ops->stream_wait(device->comm, all_reduce->begun, error);
}

static cadre_status end_on_device(const struct all_reduce *all_reduce, struct cadre_error *error)
{
    struct device *device = all_reduce->device;
    CADRE_ASSERT((all_reduce->begun == NULL) == (all_reduce->done == NULL));
    double factor = 1.0 / all_reduce->strategy->replica_count;
    for (size_t i = 0; all_reduce->mean && i < all_reduce->count; i++) {
        const cadre_tensor *result = all_reduce->results[i];
        if (cadre_tensor_count(result) > 0) {
            CADRE_TRY(device->ops->scale(cadre_tensor_dtype(result), all_reduce->buffers[i].data,
                (size_t)cadre_tensor_count(result), factor, device->comm, error));
        }
    }
    return all_reduce->done == NULL
               ? collective_device_end(device, error)
               : device->ops->event_record(all_reduce->done, device->comm, error);
}

cadre_status all_reduce_do(const struct all_reduce *all_reduce, struct cadre_error *error)
{
    cadre_strategy *strategy = all_reduce->strategy;
    size_t done = 0;
    CADRE_ASSERT(all_reduce->note.mesh.text == all_reduce->note.text); /* it was not moved */
    if (all_reduce->device != NULL) {
        CADRE_TRY(begin_on_device(all_reduce, error));
    }
    do { /* once also without tensors, because it is a collective all the same */
        struct mesh_buffer *pack = all_reduce->buffers + done;
        size_t length = collective_pack(
            &pack->bytes, sizeof *pack, all_reduce->count - done, all_reduce->bytes_per_pack);
        CADRE_ASSERT(length > 0 || all_reduce->count == 0);
        CADRE_TRY(collective_reduce(strategy, all_reduce->local, all_reduce->op, pack, length,
            &all_reduce->note.mesh, error));
        done += length;
    } while (done < all_reduce->count);
    if (all_reduce->device != NULL) {
        return end_on_device(all_reduce, error);
    }
    for (size_t i = 0; all_reduce->mean && i < all_reduce->count; i++) {
        const cadre_tensor *result = all_reduce->results[i];
        axis_divide(all_reduce->buffers[i].data, (size_t)cadre_tensor_count(result),
            cadre_tensor_dtype(result), strategy->replica_count);
    }
    return CADRE_OK;
}
