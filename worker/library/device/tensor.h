/* SPDX-License-Identifier: Apache-2.0
 * The internal functions of tensors: those of cadre/tensor.h with a struct cadre_error, and those
 * that join tensors. Ownership and errors are as there. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_H
#define CADRE_WORKER_DEVICE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "worker/library/device/tensor_memory.h"

/* Room for any shape as tensor_shape_text writes it. */
#define TENSOR_SHAPE_TEXT_BYTES 192

/* The most bytes that the strings of one tensor have together. */
#define TENSOR_TEXT_BYTES_MAX (SIZE_MAX / 4)

/* As cadre_tensor_create. */
cadre_status tensor_create(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* As tensor_create, but the elements are not set: the caller fills all of them. */
cadre_status tensor_create_unset(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* The same in a kind of memory; other functions take the one that the thread prefers.
 * RESOURCE_EXHAUSTED also where the kind was not registered. Where memory cannot be shared, and for
 * strings, a tensor of TENSOR_MEMORY_SHARED is one of the host's. */
cadre_status tensor_create_kind(enum tensor_memory_kind kind, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error);

/* The kind of memory that has the elements. */
enum tensor_memory_kind tensor_kind(const cadre_tensor *tensor);

/* A CADRE_STRING tensor with room for `text_bytes` bytes behind its elements, at *ret_text. Neither
 * is set: the caller fills all elements, with addresses in the text or static ones, before any
 * other use. */
cadre_status tensor_strings_create(uint32_t rank, const int64_t *dims, size_t text_bytes,
    cadre_tensor **ret_tensor, char **ret_text, struct cadre_error *error);

/* A CADRE_STRING tensor whose elements point into the memory of `owner`, a tensor of any type, of
 * which it keeps a reference for its lifetime. The caller fills all elements. */
cadre_status tensor_strings_in(cadre_tensor *owner, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* As cadre_tensor_from_data. */
cadre_status tensor_from_data(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    const void *data, cadre_tensor **ret_tensor, struct cadre_error *error);

/* The arguments of cadre_tensor_over. */
struct tensor_lent {
    cadre_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
    void *data;
    cadre_release_function release; /* may be NULL */
    void *user;
};
/* As cadre_tensor_over. */
cadre_status tensor_over(
    const struct tensor_lent *lent, cadre_tensor **ret_tensor, struct cadre_error *error);

/* As cadre_tensor_view_rows. */
cadre_status tensor_view_rows(cadre_tensor *tensor, int64_t first, int64_t count,
    cadre_tensor **ret_view, struct cadre_error *error);

/* Row `row` without the first dimension, sharing memory: shape [d1, d2, ...]. */
cadre_status tensor_view_row(
    cadre_tensor *tensor, int64_t row, cadre_tensor **ret_view, struct cadre_error *error);

/* As cadre_tensor_copy. */
cadre_status tensor_copy(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error);

/* All elements as rank 1, sharing memory. */
cadre_status tensor_view_flat(
    cadre_tensor *tensor, cadre_tensor **ret_view, struct cadre_error *error);

/* Which composite the tensor and those before it form: a mark that copies keep and views do not. */
cadre_composite tensor_composite(const cadre_tensor *tensor);
/* To be called by the maker of the tensor, before any other reference. */
void tensor_set_composite(cadre_tensor *tensor, cadre_composite composite);

/* INVALID_ARGUMENT when `tensor`, the argument `name` of `function`, is NULL, and
 * FAILED_PRECONDITION when its elements are in a device's memory: for functions that read them
 * here. */
cadre_status tensor_require(
    const cadre_tensor *tensor, const char *function, const char *name, struct cadre_error *error);

/* Stacks `count` >= 1 tensors of one dtype and shape under a new first dimension, copying.
 * INVALID_ARGUMENT names the first that differs. FAILED_PRECONDITION: one is on a device. */
cadre_status tensor_stack(cadre_tensor *const tensors[], size_t count, cadre_tensor **ret_tensor,
    struct cadre_error *error);

/* Joins `count` >= 1 tensors along their first dimension, copying; they agree in dtype and the
 * other dimensions. */
cadre_status tensor_concat_rows(cadre_tensor *const tensors[], size_t count,
    cadre_tensor **ret_tensor, struct cadre_error *error);

/* Checks a dtype and shape and returns the number of elements and bytes; INVALID_ARGUMENT as
 * tensor_create. */
cadre_status tensor_shape_check(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    int64_t *ret_count, size_t *ret_bytes, struct cadre_error *error);

/* Writes "f32 [2, ?, 3]" (? for CADRE_DIMENSION_ANY) and returns `text`. */
const char *tensor_shape_text(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, char text[TENSOR_SHAPE_TEXT_BYTES]);

/* --- The elements of a CADRE_STRING tensor: an array of cadre_string whose bytes are packed behind
 * it. --- */

/* Makes all `count` elements empty. */
void strings_clear(cadre_string *strings, int64_t count);

/* The bytes of all elements together. INVALID_ARGUMENT: a NULL with a size, or too many bytes. */
cadre_status strings_measure(
    const cadre_string *strings, int64_t count, size_t *ret_bytes, struct cadre_error *error);

/* Copies `count` elements to `to` and their bytes to `text`; returns where the bytes end. */
char *strings_copy(cadre_string *to, const cadre_string *from, int64_t count, char *text);

#endif
