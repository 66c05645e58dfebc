/* SPDX-License-Identifier: Apache-2.0
 * The internal face of tensors: the same operations with a struct cadre_error, and those that join
 * tensors. Ownership and errors are as in cadre/tensor.h. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_H
#define CADRE_WORKER_DEVICE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

/* Room for any shape as tensor_shape_text writes it. */
#define TENSOR_SHAPE_TEXT_BYTES 192

cadre_status tensor_create(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error);

cadre_status tensor_from_data(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    const void *data, cadre_tensor **ret_tensor, struct cadre_error *error);

cadre_status tensor_view_rows(cadre_tensor *tensor, int64_t first, int64_t count,
    cadre_tensor **ret_view, struct cadre_error *error);

/* Row `row` without the first dimension, sharing memory: shape [d1, d2, ...]. */
cadre_status tensor_view_row(
    cadre_tensor *tensor, int64_t row, cadre_tensor **ret_view, struct cadre_error *error);

cadre_status tensor_copy(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error);

/* Stacks `count` >= 1 tensors of one dtype and shape under a new first dimension, copying.
 * INVALID_ARGUMENT names the first that differs. */
cadre_status tensor_stack(cadre_tensor *const parts[], size_t count, cadre_tensor **ret_tensor,
    struct cadre_error *error);

/* Joins `count` >= 1 tensors along their first dimension, copying; they agree in dtype and the
 * other dimensions. */
cadre_status tensor_concat_rows(cadre_tensor *const parts[], size_t count,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* Checks a dtype and shape and gives the number of elements and bytes; INVALID_ARGUMENT as
 * tensor_create. */
cadre_status tensor_shape_check(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    int64_t *ret_count, size_t *ret_bytes, struct cadre_error *error);

/* Writes "f32 [2, ?, 3]" (? for CADRE_DIMENSION_ANY) and returns `text`. */
const char *tensor_shape_text(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, char text[TENSOR_SHAPE_TEXT_BYTES]);

#endif
