/* SPDX-License-Identifier: Apache-2.0
 * Reduce-scatter: each replica gets its part of the rows of a sum. */
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/collectives/all_reduce.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_device.h"

static cadre_status create_part(const cadre_replica *replica, const cadre_tensor *input,
    cadre_tensor **ret_part, struct cadre_error *error)
{
    uint32_t replicas = replica->strategy->replica_count;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    int64_t dims[CADRE_RANK_MAX];
    uint32_t rank = cadre_tensor_rank(input);
    if (rank == 0 || cadre_tensor_dim(input, 0) % replicas != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_reduce_scatter was given %s; its first dimension must be a multiple of the %u "
            "replicas",
            tensor_shape_text(cadre_tensor_dtype(input), rank, cadre_tensor_dims(input), shape),
            replicas);
    }
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = cadre_tensor_dim(input, i);
    }
    dims[0] /= replicas;
    struct device *device = tensor_device(input);
    if (device != NULL) {
        return tensor_create_on(
            device, NULL, cadre_tensor_dtype(input), rank, dims, ret_part, error);
    }
    return tensor_create_unset(cadre_tensor_dtype(input), rank, dims, ret_part, error);
}

static cadre_status do_scatter(cadre_replica *replica, cadre_reduce_op op, cadre_tensor *part,
    enum mesh_op mesh_op, const struct mesh_buffer *buffer, const struct mesh_note *note,
    struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct device *device = buffer->on;
    size_t count = (size_t)cadre_tensor_count(part);
    CADRE_ASSERT(buffer->data == cadre_tensor_data(part));
    CADRE_ASSERT(buffer->bytes == cadre_tensor_bytes(part));
    cadre_dtype dtype = cadre_tensor_dtype(part);
    CADRE_TRY(collective_send_piggyback(strategy, replica->local, note, error));
    CADRE_TRY(collective_device_begin(device, error));
    CADRE_TRY(collective_explain(strategy->mesh->ops->reduce_scatter(
                                     strategy->mesh, replica->local, mesh_op, buffer, note, error),
        error));
    if (op == CADRE_MEAN && device == NULL) {
        axis_divide(buffer->data, count, dtype, strategy->replica_count);
    } else if (op == CADRE_MEAN && count > 0) {
        CADRE_TRY(device->ops->scale(
            dtype, buffer->data, count, 1.0 / strategy->replica_count, device->comm, error));
    }
    return collective_device_end(device, error);
}

static cadre_status collectives_reduce_scatter_scatter(cadre_replica *replica, cadre_reduce_op op,
    const cadre_tensor *input, const cadre_collective_options *options, cadre_tensor *part,
    enum mesh_op mesh_op, enum mesh_dtype dtype, struct cadre_error *error)
{
    static const char *const names[] = {
        [CADRE_SUM] = "cadre_reduce_scatter(CADRE_SUM)",
        [CADRE_MEAN] = "cadre_reduce_scatter(CADRE_MEAN)",
        [CADRE_MIN] = "cadre_reduce_scatter(CADRE_MIN)",
        [CADRE_MAX] = "cadre_reduce_scatter(CADRE_MAX)",
        [CADRE_PROD] = "cadre_reduce_scatter(CADRE_PROD)",
    };
    struct collective_settings settings;
    CADRE_TRY(collective_options_settle(replica->strategy, options, &settings, error));
    const uint64_t key = collective_key(0x736361747465725f, (uint64_t)op); /* of reduce-scatters */
    const struct step_call call = {.function = names[op],
        .key = collective_key_tensor(key, input, UINT32_MAX),
        .root = -1,
        .tensor_count = 1,
        .first = input,
        .on_device = tensor_device(input) != NULL,
        .timeout_us = settings.timeout_us};
    struct step_note note;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    const struct mesh_buffer buffer = {.data = cadre_tensor_data(part),
        .bytes = cadre_tensor_bytes(part),
        .dtype = dtype,
        .from = cadre_tensor_const_data(input),
        .on = tensor_device(input)};
    cadre_status status = do_scatter(replica, op, part, mesh_op, &buffer, &note.mesh, error);
    return step_collective_end(replica, status, error);
}

static cadre_status reduce_scatter(cadre_replica *replica, cadre_reduce_op op,
    const cadre_tensor *input, const cadre_collective_options *options, cadre_tensor **ret_part,
    struct cadre_error *error)
{
    enum mesh_op mesh_op;
    enum mesh_dtype dtype;
    CADRE_TRY(argument_require(ret_part, "cadre_reduce_scatter", "ret_part", error));
    *ret_part = NULL;
    CADRE_TRY(step_require_own_thread(replica, "cadre_reduce_scatter", error));
    CADRE_TRY(argument_require(input, "cadre_reduce_scatter", "input", error));
    CADRE_TRY(all_reduce_op(op, &mesh_op, error));
    CADRE_TRY(all_reduce_dtype(op, input, 0, &dtype, error));
    struct device *device;
    cadre_tensor *part;
    cadre_tensor *const inputs[1] = {(cadre_tensor *)(uintptr_t)input};
    CADRE_TRY(collective_same_device(replica, inputs, 1, &device, error));
    CADRE_TRY(create_part(replica, input, &part, error));
    cadre_status status = collectives_reduce_scatter_scatter(
        replica, op, input, options, part, mesh_op, dtype, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(part);
        return status;
    }
    *ret_part = part;
    return CADRE_OK;
}

cadre_status cadre_reduce_scatter(cadre_replica *replica, cadre_reduce_op op,
    const cadre_tensor *input, const cadre_collective_options *options, cadre_tensor **ret_part)
{
    struct cadre_error error;
    cadre_status status = reduce_scatter(replica, op, input, options, ret_part, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}
