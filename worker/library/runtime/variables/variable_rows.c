/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variable_rows.h"

#include <inttypes.h>
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

cadre_status variable_require_rows(const cadre_variable *variable, struct cadre_error *error)
{
    return variable->rank > 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "variable '%s' is a scalar, which has no rows; read or assign it as a whole",
                     variable->name);
}

cadre_status variable_no_row(const cadre_variable *variable, int64_t row, struct cadre_error *error)
{
    return variable->dims[0] == 0
               ? cadre_error_set(error, CADRE_OUT_OF_RANGE,
                     "there is no row %" PRId64 " in variable '%s': it has none", row,
                     variable->name)
               : cadre_error_set(error, CADRE_OUT_OF_RANGE,
                     "there is no row %" PRId64 " in variable '%s': it has rows 0 to %" PRId64, row,
                     variable->name, variable->dims[0] - 1);
}

cadre_status variable_require_numbers(
    const cadre_variable *variable, const char *function, struct cadre_error *error)
{
    return variable->dtype != CADRE_STRING
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%s: variable '%s' holds strings, which are read as a whole; use "
                     "cadre_variable_value",
                     function, variable->name);
}

cadre_status variable_row_shape(const cadre_variable *variable, const cadre_tensor *ids,
    struct row_shape *ret_shape, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(ids);
    uint32_t rank = cadre_tensor_rank(ids);
    CADRE_ASSERT(rank <= CADRE_RANK_MAX);
    CADRE_TRY(variable_require_rows(variable, error));
    if (dtype != CADRE_I32 && dtype != CADRE_I64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the row numbers of '%s' are %s; give i32 or i64", variable->name,
            cadre_dtype_name(dtype));
    }
    ret_shape->rank = rank + variable->rank - 1;
    if (ret_shape->rank > CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "rows of '%s' for numbers of rank %u would have rank %u; %d is the most",
            variable->name, rank, ret_shape->rank, CADRE_RANK_MAX);
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        ret_shape->dims[axis] = cadre_tensor_dims(ids)[axis];
    }
    for (uint32_t axis = 1; axis < variable->rank; axis++) {
        ret_shape->dims[rank + axis - 1] = variable->dims[axis];
    }
    return CADRE_OK;
}

cadre_status variable_check_row_values(const cadre_variable *variable,
    const struct row_shape *shape, const cadre_tensor *rows, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    if (is_of(rows, variable->dtype, shape->rank, shape->dims)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the rows for '%s' are %s and have to be %s: the shape of the numbers, then that of a row",
        variable->name, text_of(rows, is),
        tensor_shape_text(variable->dtype, shape->rank, shape->dims, wanted));
}

cadre_status variable_take_ids(const cadre_tensor *ids, const int64_t **ret_ids,
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
