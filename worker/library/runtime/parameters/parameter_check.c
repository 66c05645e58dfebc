/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/parameter_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

static bool is_of(const cadre_tensor *tensor, cadre_dtype dtype, uint32_t rank, const int64_t *dims)
{
    return cadre_tensor_dtype(tensor) == dtype && cadre_tensor_rank(tensor) == rank &&
           (rank == 0 || memcmp(cadre_tensor_dims(tensor), dims, rank * sizeof dims[0]) == 0);
}

static const char *text_of(const cadre_tensor *tensor, char text[TENSOR_SHAPE_TEXT_BYTES])
{
    return tensor_shape_text(
        cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), text);
}

cadre_status parameter_check_value(const cadre_parameter *parameter, const char *what,
    const cadre_tensor *value, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    if (is_of(value, parameter->dtype, parameter->rank, parameter->dims)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the %s of '%s' is %s and the parameter %s; give one of the parameter's type and shape",
        what, parameter->name, text_of(value, is),
        tensor_shape_text(parameter->dtype, parameter->rank, parameter->dims, wanted));
}

cadre_status parameter_check_rows(const cadre_parameter *parameter, struct cadre_error *error)
{
    return parameter->rank > 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "parameter '%s' is a scalar, which has no rows; read or assign it as a whole",
                     parameter->name);
}

cadre_status parameter_row_shape(const cadre_parameter *parameter, const cadre_tensor *ids,
    struct row_shape *ret_shape, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(ids);
    uint32_t rank = cadre_tensor_rank(ids);
    CADRE_ASSERT(rank <= CADRE_RANK_MAX);
    CADRE_TRY(parameter_check_rows(parameter, error));
    if (dtype != CADRE_I32 && dtype != CADRE_I64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the row numbers of '%s' are %s; give i32 or i64", parameter->name,
            cadre_dtype_name(dtype));
    }
    ret_shape->rank = rank + parameter->rank - 1;
    if (ret_shape->rank > CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "rows of '%s' for numbers of rank %u would have rank %u; %d is the most",
            parameter->name, rank, ret_shape->rank, CADRE_RANK_MAX);
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        ret_shape->dims[axis] = cadre_tensor_dims(ids)[axis];
    }
    for (uint32_t axis = 1; axis < parameter->rank; axis++) {
        ret_shape->dims[rank + axis - 1] = parameter->dims[axis];
    }
    return CADRE_OK;
}

cadre_status parameter_check_row_values(const cadre_parameter *parameter,
    const struct row_shape *shape, const cadre_tensor *rows, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    if (is_of(rows, parameter->dtype, shape->rank, shape->dims)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the rows for '%s' are %s and have to be %s: the shape of the numbers, then that of a row",
        parameter->name, text_of(rows, is),
        tensor_shape_text(parameter->dtype, shape->rank, shape->dims, wanted));
}

cadre_status parameter_take_ids(const cadre_tensor *ids, const int64_t **ret_ids,
    int64_t **ret_memory, struct cadre_error *error)
{
    CADRE_ASSERT(*ret_memory == NULL);
    int64_t count = cadre_tensor_count(ids);
    if (cadre_tensor_dtype(ids) == CADRE_I64) {
        *ret_ids = cadre_tensor_const_data(ids);
        return CADRE_OK;
    }
    CADRE_ASSERT(cadre_tensor_dtype(ids) == CADRE_I32);
    *ret_memory = malloc(((size_t)count + 1) * sizeof **ret_memory);
    if (*ret_memory == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %lld row numbers", (long long)count);
    }
    const int32_t *narrow = cadre_tensor_const_data(ids);
    for (int64_t i = 0; i < count; i++) {
        (*ret_memory)[i] = narrow[i];
    }
    *ret_ids = *ret_memory;
    return CADRE_OK;
}
