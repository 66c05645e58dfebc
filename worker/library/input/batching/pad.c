/* SPDX-License-Identifier: Apache-2.0
 * Stacks tensors of different shapes. Called by padded_batch.c; owns nothing. */
#include "worker/library/input/batching/pad.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/machine_memory.h"

static cadre_status pad_unlike(
    const cadre_tensor *part, size_t i, const cadre_tensor *first, struct cadre_error *error)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    char first_text[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "element %zu is %s and element 0 is %s; all are of one type and number of dimensions", i,
        tensor_shape_text(
            cadre_tensor_dtype(part), cadre_tensor_rank(part), cadre_tensor_dims(part), text),
        tensor_shape_text(cadre_tensor_dtype(first), cadre_tensor_rank(first),
            cadre_tensor_dims(first), first_text));
}

static cadre_status too_large(
    const cadre_tensor *part, size_t i, const int64_t *shape, struct cadre_error *error)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "element %zu is %s, larger than %s to which it is to be padded; give a larger shape, or "
        "CADRE_DIMENSION_ANY",
        i,
        tensor_shape_text(
            cadre_tensor_dtype(part), cadre_tensor_rank(part), cadre_tensor_dims(part), text),
        tensor_shape_text(cadre_tensor_dtype(part), cadre_tensor_rank(part), shape, wanted));
}

/* The shape of each padded part. */
static cadre_status find_dims(cadre_tensor *const tensors[], size_t count, const int64_t *shape,
    int64_t dims[CADRE_RANK_MAX], struct cadre_error *error)
{
    uint32_t rank = cadre_tensor_rank(tensors[0]);
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool any = shape == NULL || shape[axis] == CADRE_DIMENSION_ANY;
        dims[axis] = any ? 0 : shape[axis];
    }
    for (size_t i = 0; i < count; i++) {
        if (cadre_tensor_dtype(tensors[i]) != cadre_tensor_dtype(tensors[0]) ||
            cadre_tensor_rank(tensors[i]) != rank) {
            return pad_unlike(tensors[i], i, tensors[0], error);
        }
        for (uint32_t axis = 0; axis < rank; axis++) {
            int64_t own = cadre_tensor_dim(tensors[i], axis);
            if (shape != NULL && shape[axis] != CADRE_DIMENSION_ANY && own > shape[axis]) {
                return too_large(tensors[i], i, shape, error);
            }
            dims[axis] = own > dims[axis] ? own : dims[axis];
        }
    }
    return CADRE_OK;
}

/* Copies a part to the beginning of `to`, which has the shape `dims`. */
static void pad_position(const cadre_tensor *part, const int64_t *dims, char *to)
{
    uint32_t rank = cadre_tensor_rank(part);
    size_t bytes = cadre_dtype_bytes(cadre_tensor_dtype(part));
    const char *from = cadre_tensor_const_data(part);
    int64_t at[CADRE_RANK_MAX] = {0};
    size_t run = bytes * (rank == 0 ? 1 : (size_t)cadre_tensor_dim(part, rank - 1));
    if (cadre_tensor_count(part) == 0) {
        return;
    }
    for (;;) {
        int64_t offset = 0;
        for (uint32_t axis = 0; axis < rank; axis++) {
            offset = offset * dims[axis] + at[axis];
        }
        memcpy(to + (size_t)offset * bytes, from, run);
        from += run;
        /* The next row along the last dimension. */
        uint32_t axis = rank;
        while (axis > 1 && ++at[axis - 2] == cadre_tensor_dim(part, axis - 2)) {
            at[axis - 2] = 0;
            axis--;
        }
        if (axis <= 1) {
            return;
        }
    }
}

static void pad_fill(char *to, int64_t count, const void *value, size_t bytes)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * bytes, value, bytes);
    }
}

static void position_all(
    cadre_tensor *const tensors[], size_t count, const int64_t *dims, size_t part_bytes, char *to)
{
    for (size_t i = 0; i < count; i++) {
        pad_position(tensors[i], dims, to + i * part_bytes);
    }
}

static cadre_status check_value(
    const cadre_tensor *value, const cadre_tensor *part, struct cadre_error *error)
{
    if (value != NULL &&
        (cadre_tensor_dtype(value) != cadre_tensor_dtype(part) || cadre_tensor_rank(value) != 0)) {
        char text[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the value to pad with is %s; a scalar of type %s is needed",
            tensor_shape_text(cadre_tensor_dtype(value), cadre_tensor_rank(value),
                cadre_tensor_dims(value), text),
            cadre_dtype_name(cadre_tensor_dtype(part)));
    }
    return CADRE_OK;
}

cadre_status pad_stack(cadre_tensor *const tensors[], size_t count, const int64_t *shape,
    const cadre_tensor *value, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    int64_t dims[CADRE_RANK_MAX + 1] = {(int64_t)count};
    int64_t total = 0;
    size_t bytes = 0;
    cadre_dtype dtype = cadre_tensor_dtype(tensors[0]);
    uint32_t rank = cadre_tensor_rank(tensors[0]);
    *ret_tensor = NULL;
    CADRE_TRY(check_value(value, tensors[0], error));
    CADRE_TRY(find_dims(tensors, count, shape, dims + 1, error));
    CADRE_TRY(tensor_shape_check(dtype, rank + 1, dims, &total, &bytes, error));
    if (bytes > machine_memory()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%zu elements are padded to %zu bytes, which this machine's memory cannot hold; give a "
            "smaller batch size",
            count, bytes);
    }
    if (dtype == CADRE_STRING) {
        CADRE_FREE_AT_EXIT char *strings = malloc(bytes + 1);
        if (strings == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory to pad %" PRId64 " strings", total);
        }
        const cadre_string empty = {.bytes = "", .size = 0};
        pad_fill(
            strings, total, value != NULL ? cadre_tensor_const_data(value) : &empty, sizeof empty);
        position_all(tensors, count, dims + 1, bytes / count, strings);
        return tensor_from_data(dtype, rank + 1, dims, strings, ret_tensor, error);
    }
    CADRE_TRY(tensor_create(dtype, rank + 1, dims, ret_tensor, error));
    char *to = cadre_tensor_data(*ret_tensor);
    if (value != NULL) {
        pad_fill(to, total, cadre_tensor_const_data(value), cadre_dtype_bytes(dtype));
    }
    position_all(tensors, count, dims + 1, bytes / count, to);
    return CADRE_OK;
}
