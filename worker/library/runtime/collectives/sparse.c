/* SPDX-License-Identifier: Apache-2.0
 * Sparse values: their checks, and their all-reduce, which puts those of all replicas one after the
 * other. */
#include "cadre/sparse.h"

#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/collectives/all_reduce.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_device.h"

cadre_status collective_sparse_check(const cadre_sparse *sparse, struct cadre_error *error)
{
    char values[TENSOR_SHAPE_TEXT_BYTES];
    char indices[TENSOR_SHAPE_TEXT_BYTES];
    const cadre_tensor *v = sparse->values;
    const cadre_tensor *at = sparse->indices;
    bool fits = v != NULL && at != NULL && cadre_tensor_rank(v) >= 1 &&
                cadre_tensor_dtype(at) == CADRE_I64 && cadre_tensor_rank(at) == 1 &&
                cadre_tensor_dim(at, 0) == cadre_tensor_dim(v, 0);
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a sparse value has values %s and indices %s; it needs values of at least one "
            "dimension, and one i64 index for each of their rows",
            v == NULL ? "NULL"
                      : tensor_shape_text(cadre_tensor_dtype(v), cadre_tensor_rank(v),
                            cadre_tensor_dims(v), values),
            at == NULL ? "NULL"
                       : tensor_shape_text(cadre_tensor_dtype(at), cadre_tensor_rank(at),
                             cadre_tensor_dims(at), indices));
    }
    if (sparse->rows < CADRE_DIMENSION_ANY) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a sparse value is of a dense tensor with %lld rows; give their number, or "
            "CADRE_DIMENSION_ANY",
            (long long)sparse->rows);
    }
    const int64_t *index = cadre_tensor_const_data(at);
    for (int64_t i = 0; i < cadre_tensor_dim(at, 0); i++) {
        if (index[i] < 0 || (sparse->rows >= 0 && index[i] >= sparse->rows)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "index %lld of a sparse value is %lld, which is not a row of a dense tensor with "
                "%lld rows (-1: any number)",
                (long long)i, (long long)index[i], (long long)sparse->rows);
        }
    }
    return CADRE_OK;
}

static cadre_status gather_pair(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const struct collective_settings *settings,
    cadre_tensor *ret_pair[2], struct cadre_error *error)
{
    cadre_tensor *const pair[2] = {input->values, input->indices};
    uint64_t key = collective_key(0x7370617273655f72, (uint64_t)op); /* of sparse all-reduces */
    key = collective_key(key, (uint64_t)input->rows);
    const struct step_call call = {.function = op == CADRE_SUM
                                                   ? "cadre_all_reduce_sparse(CADRE_SUM)"
                                                   : "cadre_all_reduce_sparse(CADRE_MEAN)",
        .key = collective_key_tensor(key, input->values, 0),
        .root = -1,
        .tensor_count = 1,
        .first = input->values,
        .timeout_us = settings->timeout_us};
    struct step_note note;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = collective_gather(
        replica->strategy, replica->local, pair, 2, 0, &note.mesh, ret_pair, error);
    return step_collective_end(replica, status, error);
}

/* Of values in the host's memory. */
static cadre_status reduce_on_replica(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse,
    struct cadre_error *error)
{
    struct collective_settings settings;
    enum mesh_dtype dtype;
    cadre_tensor *pair[2];
    if (op != CADRE_SUM && op != CADRE_MEAN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a reduction of sparse values; use CADRE_SUM or CADRE_MEAN", (int)op);
    }
    CADRE_TRY(collective_sparse_check(input, error));
    CADRE_TRY(all_reduce_dtype(op, input->values, 0, &dtype, error));
    CADRE_TRY(collective_options_settle(replica->strategy, options, &settings, error));
    int64_t rows = input->rows;
    CADRE_TRY(gather_pair(replica, op, input, &settings, pair, error));
    if (op == CADRE_MEAN) {
        axis_divide(cadre_tensor_data(pair[0]), (size_t)cadre_tensor_count(pair[0]),
            cadre_tensor_dtype(pair[0]), replica->strategy->replica_count);
    }
    *ret_sparse = (cadre_sparse){.values = pair[0], .indices = pair[1], .rows = rows};
    return CADRE_OK;
}

cadre_status collective_all_reduce_sparse(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse,
    struct cadre_error *error)
{
    CADRE_TRY(step_require_own_thread(replica, "cadre_all_reduce_sparse", error));
    *ret_sparse = (cadre_sparse){0};
    cadre_tensor *pair[2] = {input->values, input->indices};
    cadre_tensor *copies[2];
    struct device *device = NULL;
    if (pair[0] != NULL && pair[1] != NULL) {
        CADRE_TRY(collective_same_device(replica, pair, 2, &device, error));
    }
    if (device == NULL) {
        return reduce_on_replica(replica, op, input, options, ret_sparse, error);
    }
    CADRE_TRY(collective_to_host(replica, device, pair, 2, copies, error));
    const cadre_sparse here = {.values = copies[0], .indices = copies[1], .rows = input->rows};
    cadre_sparse sum;
    cadre_status status = reduce_on_replica(replica, op, &here, options, &sum, error);
    cadre_tensor_release(copies[0]);
    cadre_tensor_release(copies[1]);
    if (status == CADRE_OK) {
        pair[0] = sum.values;
        pair[1] = sum.indices;
        status = collective_from_host(device, pair, 2, error);
    }
    if (status == CADRE_OK) {
        *ret_sparse = (cadre_sparse){.values = pair[0], .indices = pair[1], .rows = sum.rows};
    }
    return status;
}

/* --- public --- */

cadre_status cadre_all_reduce_sparse(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse)
{
    struct cadre_error error;
    cadre_status status = argument_require(input, __func__, "input", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_sparse, __func__, "ret_sparse", &error);
    }
    if (status == CADRE_OK && ret_sparse == input) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "cadre_all_reduce_sparse was given one value for its input and its result; give it "
            "two");
    } else if (ret_sparse != NULL) {
        *ret_sparse = (cadre_sparse){0};
    }
    if (status == CADRE_OK) {
        status = collective_all_reduce_sparse(replica, op, input, options, ret_sparse, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}

void cadre_sparse_release(cadre_sparse *sparse)
{
    if (sparse != NULL) {
        cadre_tensor_release(sparse->values);
        cadre_tensor_release(sparse->indices);
        *sparse = (cadre_sparse){0};
    }
}
