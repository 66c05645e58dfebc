/* SPDX-License-Identifier: Apache-2.0
 * The transformation that puts elements of different shapes into one sparse value: each of their
 * numbers with the place where it stood. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/batching/uneven_batch.h"

struct sparse_dataset {
    struct uneven_batch batch;
    uint32_t rank; /* of a row */
    int64_t dims[CADRE_RANK_MAX];
};

/* --- a batch --- */

/* The shape of all rows together, and how many numbers they have. */
static cadre_status sparse_batch_measure(const struct sparse_dataset *sparse,
    const struct element_stack *rows, int64_t shape[CADRE_RANK_MAX], int64_t *ret_values,
    struct cadre_error *error)
{
    shape[0] = (int64_t)rows->count;
    for (uint32_t axis = 0; axis < sparse->rank; axis++) {
        shape[axis + 1] = sparse->dims[axis] == CADRE_DIMENSION_ANY ? 0 : sparse->dims[axis];
    }
    *ret_values = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const cadre_tensor *row = rows->elements[i].tensors[0];
        bool fits = rows->elements[i].count == 1 && cadre_tensor_rank(row) == sparse->rank;
        for (uint32_t axis = 0; fits && axis < sparse->rank; axis++) {
            const int64_t size = cadre_tensor_dim(row, axis);
            fits = sparse->dims[axis] == CADRE_DIMENSION_ANY || size <= sparse->dims[axis];
            shape[axis + 1] = size > shape[axis + 1] ? size : shape[axis + 1];
        }
        if (!fits) {
            char own[TENSOR_SHAPE_TEXT_BYTES];
            char limit[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "sparse_batch: element %zu of a batch is %s, and a row was said to be within %s; "
                "it has as many dimensions, none larger",
                i,
                tensor_shape_text(
                    cadre_tensor_dtype(row), cadre_tensor_rank(row), cadre_tensor_dims(row), own),
                tensor_shape_text(cadre_tensor_dtype(row), sparse->rank, sparse->dims, limit));
        }
        *ret_values += cadre_tensor_count(row); /* all are in memory */
    }
    return CADRE_OK;
}

/* The indices of all numbers of one row, in their order; returns the place behind them. */
static int64_t *number_row(const cadre_tensor *row, int64_t number, int64_t *to)
{
    const uint32_t rank = cadre_tensor_rank(row);
    int64_t index[CADRE_RANK_MAX] = {0};
    for (int64_t k = 0; k < cadre_tensor_count(row); k++) {
        *to++ = number;
        memcpy(to, index, rank * sizeof to[0]);
        to += rank;
        for (uint32_t axis = rank; axis-- > 0;) {
            index[axis]++;
            if (index[axis] < cadre_tensor_dim(row, axis)) {
                break;
            }
            index[axis] = 0;
        }
    }
    return to;
}

static cadre_status make_indices(const struct sparse_dataset *sparse,
    const struct element_stack *rows, int64_t values, cadre_tensor **ret_indices,
    struct cadre_error *error)
{
    const int64_t dims[] = {values, (int64_t)sparse->rank + 1};
    CADRE_TRY(tensor_create_unset(CADRE_I64, 2, dims, ret_indices, error));
    int64_t *to = cadre_tensor_data(*ret_indices);
    for (size_t i = 0; i < rows->count; i++) {
        to = number_row(rows->elements[i].tensors[0], (int64_t)i, to);
    }
    return CADRE_OK;
}

static cadre_status make_values(
    const struct element_stack *rows, cadre_tensor **ret_values, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT cadre_tensor **flat = calloc(rows->count, sizeof flat[0]);
    cadre_status status = flat == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                             "no memory for %zu elements", rows->count)
                                       : CADRE_OK;
    size_t made = 0;
    for (; status == CADRE_OK && made < rows->count; made++) {
        status = tensor_view_flat(rows->elements[made].tensors[0], &flat[made], error);
    }
    if (status == CADRE_OK) {
        status = tensor_concat_rows(flat, rows->count, ret_values, error);
    }
    for (size_t i = 0; i < made; i++) {
        cadre_tensor_release(flat[i]);
    }
    return status;
}

static cadre_status sparse_stack(struct uneven_batch *batch, const struct element_stack *rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    const struct sparse_dataset *sparse = (const struct sparse_dataset *)batch;
    int64_t shape[CADRE_RANK_MAX];
    int64_t values = 0;
    CADRE_TRY(sparse_batch_measure(sparse, rows, shape, &values, error));
    cadre_tensor **tensors = ret_element->tensors;
    cadre_status status = make_indices(sparse, rows, values, &tensors[0], error);
    status = status == CADRE_OK ? make_values(rows, &tensors[1], error) : status;
    status =
        status == CADRE_OK ? sparse_shape_of(shape, sparse->rank + 1, &tensors[2], error) : status;
    ret_element->count = 3;
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return cadre_error_wrap(error, status, "sparse_batch");
    }
    return CADRE_OK;
}

/* --- what it is --- */

static cadre_status sparse_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    const struct sparse_dataset *sparse = (const struct sparse_dataset *)self;
    const cadre_tensor_spec *row = &inputs[0].tensors[0];
    const int64_t rank = (int64_t)sparse->rank + 1;
    if (inputs[0].count != 1 || row->rank != sparse->rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "sparse_batch: elements of %" PRIu32 " components, the first of %" PRIu32
            " dimensions; they have one component, of %" PRIu32 " dimensions as was said",
            inputs[0].count, row->rank, sparse->rank);
    }
    *ret_spec = (cadre_element_spec){
        .count = 3,
        .tensors = {{.dtype = CADRE_I64, .rank = 2, .dims = {CADRE_DIMENSION_ANY, rank}},
            {.dtype = row->dtype, .rank = 1, .dims = {CADRE_DIMENSION_ANY}},
            {.dtype = CADRE_I64, .rank = 1, .dims = {rank}, .composite = CADRE_COMPOSITE_SPARSE}},
    };
    if (inputs[0].names == NULL) {
        return CADRE_OK;
    }
    struct names_builder made = {0};
    names_builder_add_sparse(&made, inputs[0].names[0]);
    return names_builder_intern(&made, "sparse_batch", &ret_spec->names, error);
}

static cadre_dataset *sparse_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct sparse_dataset *sparse = (const struct sparse_dataset *)self;
    cadre_tensor_spec shape = {.rank = sparse->rank};
    memcpy(shape.dims, sparse->dims, sizeof shape.dims);
    return cadre_dataset_sparse_batch(
        inputs[0], sparse->batch.size, &shape, sparse->batch.drop_remainder);
}

static void sparse_describe(const cadre_dataset *self, struct description *text)
{
    const struct sparse_dataset *sparse = (const struct sparse_dataset *)self;
    description_add(text, "%" PRId64 "%s, rows within [", sparse->batch.size,
        sparse->batch.drop_remainder ? ", no shorter one at the end" : "");
    for (uint32_t axis = 0; axis < sparse->rank; axis++) {
        description_add(text, "%s%" PRId64, axis > 0 ? " " : "", sparse->dims[axis]);
    }
    description_add(text, "]");
}

static const struct dataset_ops sparse_ops = {
    .name = "sparse_batch",
    .rebuild = sparse_rebuild,
    .describe = sparse_describe,
    .spec = sparse_spec,
    .cardinality = uneven_cardinality,
    .at = uneven_at,
    .ids_at = uneven_ids_at,
    .rows = uneven_count_rows,
    .at_rows = uneven_at_rows,
    .batch_size = uneven_size,
    .iterate = uneven_iterate,
};

static cadre_status check_shape(const cadre_tensor_spec *shape, struct cadre_error *error)
{
    if (shape == NULL || shape->rank < 1 || shape->rank >= CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "sparse_batch: a row shape of %" PRIu32 " dimensions; give 1 to %d",
            shape == NULL ? 0 : shape->rank, CADRE_RANK_MAX - 1);
    }
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        if (shape->dims[axis] < CADRE_DIMENSION_ANY) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "sparse_batch: dimension %" PRIu32 " of a row is to be within %" PRId64
                "; give 0 or more, or CADRE_DIMENSION_ANY",
                axis, shape->dims[axis]);
        }
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_sparse_batch(
    cadre_dataset *data, int64_t size, const cadre_tensor_spec *row_shape, bool drop_remainder)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (uneven_check_size("sparse_batch", size, &error) != CADRE_OK ||
        check_shape(row_shape, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct sparse_dataset *sparse = dataset_new(sizeof *sparse, &sparse_ops, data);
    if (sparse == NULL) {
        return NULL;
    }
    sparse->batch.stack = sparse_stack;
    sparse->batch.size = size;
    sparse->batch.drop_remainder = drop_remainder;
    sparse->batch.rows_alone = true;
    sparse->rank = row_shape->rank;
    memcpy(sparse->dims, row_shape->dims, sizeof sparse->dims);
    for (uint32_t axis = 0; axis < sparse->rank; axis++) {
        /* Else the dense shape depends on all elements of the batch. */
        sparse->batch.rows_alone =
            sparse->batch.rows_alone && sparse->dims[axis] != CADRE_DIMENSION_ANY;
    }
    return &sparse->batch.base;
}
