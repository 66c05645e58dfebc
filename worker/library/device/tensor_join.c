/* SPDX-License-Identifier: Apache-2.0
 * Joining tensors: stacking under a new dimension and concatenating rows. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

/* Joins the elements of all tensors, one after the other, as a tensor of shape `dims`. */
static cadre_status tensor_join_join(cadre_tensor *const tensors[], size_t count, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensors[0]);
    if (dtype != CADRE_STRING) {
        CADRE_TRY(tensor_create_unset(dtype, rank, dims, ret_tensor, error));
        char *to = cadre_tensor_data(*ret_tensor);
        for (size_t i = 0; i < count; i++) {
            size_t bytes = cadre_tensor_bytes(tensors[i]);
            memcpy(to, cadre_tensor_const_data(tensors[i]), bytes);
            to += bytes;
        }
        return CADRE_OK;
    }
    size_t text_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t own_bytes = 0;
        CADRE_TRY(strings_measure(cadre_tensor_const_data(tensors[i]),
            cadre_tensor_count(tensors[i]), &own_bytes, error));
        if (own_bytes > TENSOR_TEXT_BYTES_MAX - text_bytes) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%zu tensors of strings together have more bytes than can be addressed", count);
        }
        text_bytes += own_bytes;
    }
    char *text = NULL;
    CADRE_TRY(tensor_strings_create(rank, dims, text_bytes, ret_tensor, &text, error));
    cadre_string *to = cadre_tensor_data(*ret_tensor);
    for (size_t i = 0; i < count; i++) {
        int64_t strings = cadre_tensor_count(tensors[i]);
        text = strings_copy(to, cadre_tensor_const_data(tensors[i]), strings, text);
        to += strings;
    }
    return CADRE_OK;
}

/* Checks that all are on the host, and agree in type, rank and the dimensions from `first_axis`
 * on. */
static cadre_status check_alike(
    cadre_tensor *const tensors[], size_t count, uint32_t first_axis, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensors[0]);
    uint32_t rank = cadre_tensor_rank(tensors[0]);
    const int64_t *dims = cadre_tensor_dims(tensors[0]);
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(tensor_require_host(tensors[i], "joining tensors", error));
        if (tensor_composite(tensors[i]) != CADRE_COMPOSITE_NONE) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "part %zu is the %s of a value of unequal rows, which is not joined as a plain "
                "tensor is; cadre_dataset_unbatch makes its rows elements of their own",
                i,
                tensor_composite(tensors[i]) == CADRE_COMPOSITE_RAGGED ? "row splits"
                                                                       : "dense shape");
        }
    }
    for (size_t i = 1; i < count; i++) {
        const int64_t *other = cadre_tensor_dims(tensors[i]);
        bool alike =
            cadre_tensor_dtype(tensors[i]) == dtype && cadre_tensor_rank(tensors[i]) == rank;
        for (uint32_t axis = first_axis; alike && axis < rank; axis++) {
            alike = other[axis] == dims[axis];
        }
        if (!alike) {
            char first[TENSOR_SHAPE_TEXT_BYTES];
            char this[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "part %zu is %s and part 0 is %s; only equal shapes can be joined", i,
                tensor_shape_text(
                    cadre_tensor_dtype(tensors[i]), cadre_tensor_rank(tensors[i]), other, this),
                tensor_shape_text(dtype, rank, dims, first));
        }
    }
    return CADRE_OK;
}

cadre_status tensor_stack(cadre_tensor *const tensors[], size_t count, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    *ret_tensor = NULL;
    CADRE_TRY(check_alike(tensors, count, 0, error));
    uint32_t rank = cadre_tensor_rank(tensors[0]);
    if (rank == CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensors of %d dimensions cannot be stacked: that is the limit", CADRE_RANK_MAX);
    }
    int64_t dims[CADRE_RANK_MAX] = {(int64_t)count};
    memcpy(dims + 1, cadre_tensor_dims(tensors[0]), rank * sizeof dims[0]);
    return tensor_join_join(tensors, count, rank + 1, dims, ret_tensor, error);
}

cadre_status tensor_concat_rows(cadre_tensor *const tensors[], size_t count,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    *ret_tensor = NULL;
    uint32_t rank = cadre_tensor_rank(tensors[0]);
    if (rank == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "scalars have no rows to join; stack them instead");
    }
    CADRE_TRY(check_alike(tensors, count, 1, error));
    int64_t dims[CADRE_RANK_MAX];
    memcpy(dims, cadre_tensor_dims(tensors[0]), rank * sizeof dims[0]);
    for (size_t i = 1; i < count; i++) {
        if (__builtin_add_overflow(dims[0], cadre_tensor_rows(tensors[i]), &dims[0])) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%zu tensors together have more rows than can be counted", count);
        }
    }
    return tensor_join_join(tensors, count, rank, dims, ret_tensor, error);
}
