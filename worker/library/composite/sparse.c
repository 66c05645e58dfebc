/* SPDX-License-Identifier: Apache-2.0
 * Sparse values: each with its index. The rows of a piece are the values whose first index is in
 * it, in the order that they have among the values. Called by composite.c and
 * composite_public.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/composite/components.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

static const int64_t *numbers_of(const cadre_tensor *tensor)
{
    return cadre_tensor_const_data(tensor);
}

static cadre_status check_shapes(cadre_tensor *const tensors[], struct cadre_error *error)
{
    const cadre_tensor *indices = tensors[SPARSE_INDICES];
    const cadre_tensor *values = tensors[SPARSE_VALUES];
    CADRE_TRY(component_check(indices, "sparse indices", 2, error));
    CADRE_TRY(component_check(tensors[SPARSE_SHAPE], "dense shapes", 1, error));
    CADRE_TRY(tensor_require_host(values, "sparse values", error));
    const int64_t rank = cadre_tensor_count(tensors[SPARSE_SHAPE]);
    if (rank < 1 || rank > CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a dense shape has %" PRId64 " dimensions; it has 1 to %d", rank, CADRE_RANK_MAX);
    }
    if (cadre_tensor_rank(values) != 1 || cadre_tensor_rows(values) != cadre_tensor_rows(indices) ||
        cadre_tensor_dim(indices, 1) != rank) {
        char own[TENSOR_SHAPE_TEXT_BYTES];
        char shape_text[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "sparse values are %s with indices %s of a dense shape of %" PRId64
            " dimensions; they are [n] with [n, %" PRId64 "]",
            tensor_shape_text(cadre_tensor_dtype(values), cadre_tensor_rank(values),
                cadre_tensor_dims(values), own),
            tensor_shape_text(CADRE_I64, 2, cadre_tensor_dims(indices), shape_text), rank, rank);
    }
    return CADRE_OK;
}

cadre_status sparse_check(cadre_tensor *const tensors[], struct cadre_error *error)
{
    CADRE_TRY(check_shapes(tensors, error));
    const int64_t rank = cadre_tensor_count(tensors[SPARSE_SHAPE]);
    const int64_t count = cadre_tensor_rows(tensors[SPARSE_INDICES]);
    const int64_t *shape = numbers_of(tensors[SPARSE_SHAPE]);
    const int64_t *index = numbers_of(tensors[SPARSE_INDICES]);
    for (int64_t axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "dimension %" PRId64 " of a dense shape is %" PRId64 "; sizes are 0 or more", axis,
                shape[axis]);
        }
    }
    for (int64_t k = 0; k < count; k++, index += rank) {
        for (int64_t axis = 0; axis < rank; axis++) {
            if (index[axis] < 0 || index[axis] >= shape[axis]) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "index %" PRId64 " of sparse value %" PRId64 " along axis %" PRId64
                    " is outside of [0, %" PRId64 "), the dense shape",
                    index[axis], k, axis, shape[axis]);
            }
        }
    }
    return CADRE_OK;
}

cadre_status sparse_shape_of(
    const int64_t dims[], uint32_t rank, cadre_tensor **ret_dense_shape, struct cadre_error *error)
{
    const int64_t count = rank;
    CADRE_TRY(tensor_from_data(CADRE_I64, 1, &count, dims, ret_dense_shape, error));
    tensor_set_composite(*ret_dense_shape, CADRE_COMPOSITE_SPARSE);
    return CADRE_OK;
}

/* --- cutting --- */

struct rows_wanted {
    int64_t first;
    int64_t count;
};

static bool is_wanted(const struct rows_wanted *rows, int64_t row)
{
    return row >= rows->first && row - rows->first < rows->count;
}

/* A run of adjacent values in `tensors` whose rows are wanted: from *at on, which is moved behind
 * them. 0: there are no more. */
static int64_t next_run(cadre_tensor *const tensors[], const struct rows_wanted *rows, int64_t *at)
{
    const int64_t rank = cadre_tensor_dim(tensors[SPARSE_INDICES], 1);
    const int64_t count = cadre_tensor_rows(tensors[SPARSE_INDICES]);
    const int64_t *index = numbers_of(tensors[SPARSE_INDICES]);
    while (*at < count && !is_wanted(rows, index[*at * rank])) {
        (*at)++;
    }
    const int64_t first = *at;
    while (*at < count && is_wanted(rows, index[*at * rank])) {
        (*at)++;
    }
    return *at - first;
}

/* The wanted values; of several runs a copy. */
static cadre_status take_values(cadre_tensor *const tensors[], const struct rows_wanted *rows,
    size_t runs, cadre_tensor **ret_values, struct cadre_error *error)
{
    int64_t at = 0;
    if (runs <= 1) {
        const int64_t count = next_run(tensors, rows, &at);
        return tensor_view_rows(tensors[SPARSE_VALUES], at - count, count, ret_values, error);
    }
    CADRE_FREE_AT_EXIT cadre_tensor **views = calloc(runs, sizeof views[0]);
    cadre_status status = views == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                              "no memory for %zu runs of sparse values", runs)
                                        : CADRE_OK;
    size_t made = 0;
    for (; status == CADRE_OK && made < runs; made++) {
        const int64_t count = next_run(tensors, rows, &at);
        status = tensor_view_rows(tensors[SPARSE_VALUES], at - count, count, &views[made], error);
    }
    if (status == CADRE_OK) {
        status = tensor_concat_rows(views, runs, ret_values, error);
    }
    for (size_t i = 0; i < made; i++) {
        cadre_tensor_release(views[i]);
    }
    return status;
}

static cadre_status take_indices(cadre_tensor *const tensors[], const struct rows_wanted *rows,
    int64_t count, cadre_tensor **ret_indices, struct cadre_error *error)
{
    const int64_t rank = cadre_tensor_dim(tensors[SPARSE_INDICES], 1);
    const int64_t dims[] = {count, rank};
    const int64_t *from = numbers_of(tensors[SPARSE_INDICES]);
    CADRE_TRY(tensor_create_unset(CADRE_I64, 2, dims, ret_indices, error));
    int64_t *to = cadre_tensor_data(*ret_indices);
    int64_t at = 0;
    for (int64_t run = next_run(tensors, rows, &at); run > 0; run = next_run(tensors, rows, &at)) {
        memcpy(to, from + (at - run) * rank, (size_t)(run * rank) * sizeof to[0]);
        for (int64_t i = 0; i < run; i++, to += rank) {
            to[0] -= rows->first;
        }
    }
    return CADRE_OK;
}

cadre_status sparse_slice(cadre_tensor *const tensors[], int64_t first, int64_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    const struct rows_wanted rows = {.first = first, .count = count};
    const uint32_t rank = (uint32_t)cadre_tensor_count(tensors[SPARSE_SHAPE]);
    int64_t dims[CADRE_RANK_MAX];
    int64_t values = 0;
    int64_t at = 0;
    size_t runs = 0;
    for (int64_t run = next_run(tensors, &rows, &at); run > 0;
         run = next_run(tensors, &rows, &at)) {
        values += run;
        runs++;
    }
    memcpy(dims, numbers_of(tensors[SPARSE_SHAPE]), rank * sizeof dims[0]);
    dims[0] = count;
    cadre_status status = take_indices(tensors, &rows, values, &ret_tensors[SPARSE_INDICES], error);
    if (status == CADRE_OK) {
        status = take_values(tensors, &rows, runs, &ret_tensors[SPARSE_VALUES], error);
    }
    if (status == CADRE_OK) {
        status = sparse_shape_of(dims, rank, &ret_tensors[SPARSE_SHAPE], error);
    }
    if (status != CADRE_OK) {
        components_release(ret_tensors, SPARSE_COMPONENTS);
    }
    return status;
}

/* --- joining --- */

/* The shape of the values so far with a value of this shape behind them. */
static cadre_status add_shape(
    int64_t all[], const int64_t part[], uint32_t rank, struct cadre_error *error)
{
    if (__builtin_add_overflow(all[0], part[0], &all[0])) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "sparse parts have more rows than can be counted");
    }
    for (uint32_t axis = 1; axis < rank; axis++) {
        all[axis] = part[axis] > all[axis] ? part[axis] : all[axis];
    }
    return CADRE_OK;
}

/* Writes the indices of `count` values, from `indices` on, with their rows among all rows. */
static cadre_status number_rows(int64_t *indices, const int64_t *const shapes[],
    const int64_t sizes[], size_t count, uint32_t rank, int64_t all[], struct cadre_error *error)
{
    memset(all, 0, CADRE_RANK_MAX * sizeof all[0]);
    for (size_t i = 0; i < count; i++) {
        const int64_t before = all[0];
        CADRE_TRY(add_shape(all, shapes[i], rank, error));
        for (int64_t k = 0; k < sizes[i]; k++, indices += rank) {
            if (__builtin_add_overflow(indices[0], before, &indices[0])) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "sparse parts have more rows than can be counted");
            }
        }
    }
    return CADRE_OK;
}

cadre_status sparse_indices_concat(cadre_tensor *indices, const cadre_tensor *dense_shapes,
    const int64_t sizes[], size_t count, cadre_tensor **ret_dense_shape, struct cadre_error *error)
{
    const uint32_t rank = (uint32_t)cadre_tensor_dim(indices, 1);
    int64_t left = cadre_tensor_rows(indices);
    int64_t all[CADRE_RANK_MAX];
    *ret_dense_shape = NULL;
    for (size_t i = 0; i < count; i++) {
        left -= sizes[i];
    }
    if (rank < 1 || rank > CADRE_RANK_MAX || left != 0 ||
        cadre_tensor_count(dense_shapes) / rank != (int64_t)count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the parts of sparse values differ in the dimensions of their dense shape");
    }
    CADRE_FREE_AT_EXIT const int64_t **shapes = calloc(count, sizeof shapes[0]);
    if (shapes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu dense shapes", count);
    }
    for (size_t i = 0; i < count; i++) {
        shapes[i] = numbers_of(dense_shapes) + i * rank;
    }
    CADRE_TRY(number_rows(cadre_tensor_data(indices), shapes, sizes, count, rank, all, error));
    return sparse_shape_of(all, rank, ret_dense_shape, error);
}

/* All have dense shapes of as many dimensions. */
static cadre_status join_indices(uint32_t component, const cadre_element elements[], size_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *sizes = calloc(count, sizeof sizes[0]);
    CADRE_FREE_AT_EXIT const int64_t **shapes = calloc(count, sizeof shapes[0]);
    if (sizes == NULL || shapes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to join %zu sparse pieces", count);
    }
    for (size_t i = 0; i < count; i++) {
        sizes[i] = cadre_tensor_rows(elements[i].tensors[component + SPARSE_INDICES]);
        shapes[i] = numbers_of(elements[i].tensors[component + SPARSE_SHAPE]);
    }
    cadre_tensor **indices = &ret_tensors[SPARSE_INDICES];
    int64_t all[CADRE_RANK_MAX];
    CADRE_TRY(components_concat(elements, count, component + SPARSE_INDICES, indices, error));
    const uint32_t rank = (uint32_t)cadre_tensor_dim(*indices, 1);
    CADRE_TRY(number_rows(cadre_tensor_data(*indices), shapes, sizes, count, rank, all, error));
    return sparse_shape_of(all, rank, &ret_tensors[SPARSE_SHAPE], error);
}

cadre_status sparse_concat(uint32_t component, const cadre_element elements[], size_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    cadre_status status = join_indices(component, elements, count, ret_tensors, error);
    if (status == CADRE_OK) {
        status = components_concat(
            elements, count, component + SPARSE_VALUES, &ret_tensors[SPARSE_VALUES], error);
    }
    if (status != CADRE_OK) {
        components_release(ret_tensors, SPARSE_COMPONENTS);
    }
    return status;
}
