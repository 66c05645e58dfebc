/* SPDX-License-Identifier: Apache-2.0
 * Composite values as dense tensors. Called by composite_public.c. */
#include "worker/library/composite/to_dense.h"

#include <inttypes.h>
#include <string.h>

#include "worker/library/composite/components.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

static cadre_status check_default(
    const cadre_tensor *value, const cadre_tensor *values, struct cadre_error *error)
{
    if (value == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(tensor_require_host(value, "default_value", error));
    if (cadre_tensor_rank(value) != 0 || cadre_tensor_dtype(value) != cadre_tensor_dtype(values)) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "default_value is %s; it is a scalar of the values' type, %s",
            tensor_shape_text(cadre_tensor_dtype(value), cadre_tensor_rank(value),
                cadre_tensor_dims(value), shape),
            cadre_dtype_name(cadre_tensor_dtype(values)));
    }
    return CADRE_OK;
}

/* The elements of a dense tensor while they are filled; strings point into `values` and the default
 * until a copy owns their bytes. */
struct dense_filler {
    cadre_tensor *dense;
    char *to;
    const char *from;
    const char *fill;
    size_t size; /* bytes of an element */
};

static cadre_status filler_open(const cadre_tensor *values, const cadre_tensor *default_value,
    uint32_t rank, const int64_t *dims, struct dense_filler *filler, struct cadre_error *error)
{
    static const char zeros[sizeof(cadre_string)];
    static const cadre_string empty = {.bytes = "", .size = 0};
    const cadre_dtype dtype = cadre_tensor_dtype(values);
    const void *nothing = dtype == CADRE_STRING ? (const void *)&empty : zeros;
    *filler = (struct dense_filler){.from = cadre_tensor_const_data(values),
        .fill = default_value == NULL ? nothing : cadre_tensor_const_data(default_value),
        .size = cadre_dtype_bytes(dtype)};
    CADRE_TRY(tensor_create(dtype, rank, dims, &filler->dense, error));
    filler->to = cadre_tensor_data(filler->dense);
    return CADRE_OK;
}

static void filler_fill(struct dense_filler *filler, int64_t count)
{
    for (int64_t i = 0; i < count; i++, filler->to += filler->size) {
        memcpy(filler->to, filler->fill, filler->size);
    }
}

static void filler_copy(struct dense_filler *filler, int64_t first, int64_t count)
{
    const size_t bytes = (size_t)count * filler->size;
    if (bytes > 0) {
        memcpy(filler->to, filler->from + (size_t)first * filler->size, bytes);
    }
    filler->to += bytes;
}

/* Makes strings that own their bytes. */
static cadre_status filler_close(
    struct dense_filler *filler, cadre_tensor **ret_dense, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    if (cadre_tensor_dtype(filler->dense) == CADRE_STRING) {
        status = tensor_copy(filler->dense, ret_dense, error);
        cadre_tensor_release(filler->dense);
    } else {
        *ret_dense = filler->dense;
    }
    return status;
}

/* --- ragged --- */

cadre_status ragged_densify(cadre_tensor *const tensors[], int64_t width,
    const cadre_tensor *default_value, cadre_tensor **ret_dense, struct cadre_error *error)
{
    const cadre_tensor *values = tensors[RAGGED_VALUES];
    const uint32_t rank = cadre_tensor_rank(values);
    int64_t dims[CADRE_RANK_MAX];
    CADRE_TRY(ragged_check(tensors, error));
    CADRE_TRY(tensor_require_host(values, "ragged values", error));
    CADRE_TRY(check_default(default_value, values, error));
    if (rank == CADRE_RANK_MAX || width < CADRE_DIMENSION_ANY) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "ragged values of %" PRIu32 " dimensions cannot be %" PRId64
            " values wide; at most %d dimensions, and a width of 0 or more or CADRE_DIMENSION_ANY",
            rank, width, CADRE_RANK_MAX - 1);
    }
    const int64_t *splits = cadre_tensor_const_data(tensors[RAGGED_SPLITS]);
    dims[0] = composite_rows(CADRE_COMPOSITE_RAGGED, tensors);
    dims[1] = width == CADRE_DIMENSION_ANY ? 0 : width;
    for (int64_t i = 0; width == CADRE_DIMENSION_ANY && i < dims[0]; i++) {
        const int64_t length = splits[i + 1] - splits[i];
        dims[1] = length > dims[1] ? length : dims[1];
    }
    for (uint32_t axis = 1; axis < rank; axis++) {
        dims[axis + 1] = cadre_tensor_dim(values, axis);
    }
    struct dense_filler filler;
    CADRE_TRY(filler_open(values, default_value, rank + 1, dims, &filler, error));
    const int64_t count = cadre_tensor_count(filler.dense); /* 0: nothing to fill */
    const int64_t inner = count == 0 ? 0 : count / dims[0] / dims[1];
    for (int64_t i = 0; i < dims[0]; i++) {
        const int64_t length = splits[i + 1] - splits[i];
        const int64_t taken = length < dims[1] ? length : dims[1];
        filler_copy(&filler, splits[i] * inner, taken * inner);
        filler_fill(&filler, (dims[1] - taken) * inner);
    }
    return filler_close(&filler, ret_dense, error);
}

/* --- sparse --- */

/* The index of the element in the dense tensor; its size was checked. */
static int64_t offset_of(const int64_t *index, const int64_t *dims, int64_t rank)
{
    int64_t offset = 0;
    for (int64_t axis = 0; axis < rank; axis++) {
        offset = offset * dims[axis] + index[axis];
    }
    return offset;
}

cadre_status sparse_densify(cadre_tensor *const tensors[], const cadre_tensor *default_value,
    cadre_tensor **ret_dense, struct cadre_error *error)
{
    CADRE_TRY(sparse_check(tensors, error));
    CADRE_TRY(check_default(default_value, tensors[SPARSE_VALUES], error));
    const int64_t rank = cadre_tensor_count(tensors[SPARSE_SHAPE]);
    const int64_t *dims = cadre_tensor_const_data(tensors[SPARSE_SHAPE]);
    const int64_t *index = cadre_tensor_const_data(tensors[SPARSE_INDICES]);
    struct dense_filler filler;
    CADRE_TRY(
        filler_open(tensors[SPARSE_VALUES], default_value, (uint32_t)rank, dims, &filler, error));
    int64_t next = 0;
    for (int64_t k = 0; k < cadre_tensor_rows(tensors[SPARSE_VALUES]); k++, index += rank) {
        const int64_t offset = offset_of(index, dims, rank);
        if (offset < next) {
            cadre_tensor_release(filler.dense);
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "index %" PRId64 " of a sparse value does not come behind the one before it; "
                "indices are in row-major order, each once",
                k);
        }
        filler_fill(&filler, offset - next);
        filler_copy(&filler, k, 1);
        next = offset + 1;
    }
    filler_fill(&filler, cadre_tensor_count(filler.dense) - next);
    return filler_close(&filler, ret_dense, error);
}
