/* SPDX-License-Identifier: Apache-2.0
 * Ragged values: the row splits are the indices in the values where each row begins. Called by
 * composite.c and composite_public.c. */
#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/composite/components.h"
#include "worker/library/device/tensor.h"

static const int64_t *splits_of(const cadre_tensor *row_splits)
{
    return cadre_tensor_const_data(row_splits);
}

static cadre_status ragged_check_splits(
    const cadre_tensor *row_splits, int64_t values, struct cadre_error *error)
{
    CADRE_TRY(component_check(row_splits, "row splits", 1, error));
    const int64_t count = cadre_tensor_count(row_splits);
    const int64_t *splits = splits_of(row_splits);
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "row splits are empty; they have one entry more than there are rows");
    }
    if (splits[0] != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "row splits begin with %" PRId64 "; the first row begins at 0", splits[0]);
    }
    for (int64_t i = 1; i < count; i++) {
        if (splits[i] < splits[i - 1]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "row splits fall from %" PRId64 " to %" PRId64 " at row %" PRId64
                "; no row ends before it begins",
                splits[i - 1], splits[i], i - 1);
        }
    }
    if (splits[count - 1] != values) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "row splits end with %" PRId64 ", and there are %" PRId64
            " values; the last row ends with the last value",
            splits[count - 1], values);
    }
    return CADRE_OK;
}

cadre_status ragged_check(cadre_tensor *const tensors[], struct cadre_error *error)
{
    if (cadre_tensor_rank(tensors[RAGGED_VALUES]) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the values of ragged rows are a scalar; they have a first dimension");
    }
    return ragged_check_splits(
        tensors[RAGGED_SPLITS], cadre_tensor_rows(tensors[RAGGED_VALUES]), error);
}

cadre_status ragged_row(
    cadre_tensor *const tensors[], int64_t row, cadre_tensor **ret_row, struct cadre_error *error)
{
    cadre_tensor *values = tensors[RAGGED_VALUES];
    const cadre_tensor *row_splits = tensors[RAGGED_SPLITS];
    CADRE_TRY(component_check(row_splits, "row splits", 1, error));
    const int64_t rows = cadre_tensor_count(row_splits) - 1;
    if (row < 0 || row >= rows) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "row %" PRId64 " is outside of %" PRId64 " ragged rows", row, rows < 0 ? 0 : rows);
    }
    const int64_t *splits = splits_of(row_splits);
    const int64_t first = splits[row];
    const int64_t end = splits[row + 1];
    if (cadre_tensor_rank(values) == 0 || first < 0 || end < first ||
        end > cadre_tensor_rows(values)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "row %" PRId64 " goes from value %" PRId64 " to %" PRId64 " of %" PRId64
            ", which cannot be; give the row splits of these values",
            row, first, end, cadre_tensor_rows(values));
    }
    return tensor_view_rows(values, first, end - first, ret_row, error);
}

/* Row splits without contents. */
static cadre_status splits_create(
    int64_t entries, cadre_tensor **ret_row_splits, struct cadre_error *error)
{
    CADRE_TRY(tensor_create_unset(CADRE_I64, 1, &entries, ret_row_splits, error));
    tensor_set_composite(*ret_row_splits, CADRE_COMPOSITE_RAGGED);
    return CADRE_OK;
}

cadre_status ragged_splits_of(const int64_t lengths[], int64_t count, cadre_tensor **ret_row_splits,
    struct cadre_error *error)
{
    CADRE_TRY(splits_create(count + 1, ret_row_splits, error));
    int64_t *splits = cadre_tensor_data(*ret_row_splits);
    splits[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        CADRE_ASSERT(lengths[i] >= 0);
        splits[i + 1] = splits[i] + lengths[i];
    }
    return CADRE_OK;
}

cadre_status ragged_slice(cadre_tensor *const tensors[], int64_t first, int64_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    const int64_t *splits = splits_of(tensors[RAGGED_SPLITS]);
    const int64_t begin = splits[first];
    CADRE_TRY(tensor_view_rows(tensors[RAGGED_VALUES], begin, splits[first + count] - begin,
        &ret_tensors[RAGGED_VALUES], error));
    cadre_status status = splits_create(count + 1, &ret_tensors[RAGGED_SPLITS], error);
    if (status != CADRE_OK) {
        components_release(ret_tensors, RAGGED_COMPONENTS);
        return status;
    }
    int64_t *own = cadre_tensor_data(ret_tensors[RAGGED_SPLITS]);
    for (int64_t i = 0; i <= count; i++) {
        own[i] = splits[first + i] - begin;
    }
    return CADRE_OK;
}

/* The entries cannot overflow, because their sum is a count of values in memory. */
struct splits_writer {
    int64_t *to;
    int64_t entries; /* so far, with the first 0 */
};

static cadre_status splits_add(
    struct splits_writer *writer, const int64_t *splits, int64_t count, struct cadre_error *error)
{
    const int64_t before = writer->to[writer->entries - 1];
    for (int64_t i = 1; i < count; i++) {
        if (__builtin_add_overflow(before, splits[i], &writer->to[writer->entries++])) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "ragged values have more rows than can be counted");
        }
    }
    return CADRE_OK;
}

cadre_status ragged_splits_concat(const cadre_tensor *row_splits, const int64_t sizes[],
    size_t count, cadre_tensor **ret_row_splits, struct cadre_error *error)
{
    const int64_t *from = splits_of(row_splits);
    int64_t left = cadre_tensor_count(row_splits);
    const int64_t entries = left - (int64_t)count + 1;
    *ret_row_splits = NULL;
    for (size_t i = 0; i < count; i++) {
        left -= sizes[i];
        if (sizes[i] < 1 || left < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "part %zu of ragged values has %" PRId64 " row splits, which cannot be", i,
                sizes[i]);
        }
    }
    CADRE_TRY(splits_create(entries, ret_row_splits, error));
    struct splits_writer writer = {.to = cadre_tensor_data(*ret_row_splits), .entries = 1};
    writer.to[0] = 0;
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        status = splits_add(&writer, from, sizes[i], error);
        from += sizes[i];
    }
    if (status != CADRE_OK) {
        components_release(ret_row_splits, 1);
    }
    return status;
}

cadre_status ragged_concat(uint32_t component, const cadre_element elements[], size_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    int64_t entries = 1;
    for (size_t i = 0; i < count; i++) {
        entries += cadre_tensor_count(elements[i].tensors[component + RAGGED_SPLITS]) - 1;
    }
    CADRE_TRY(components_concat(elements, count, component, &ret_tensors[RAGGED_VALUES], error));
    cadre_status status = splits_create(entries, &ret_tensors[RAGGED_SPLITS], error);
    struct splits_writer writer = {.entries = 1};
    if (status == CADRE_OK) {
        writer.to = cadre_tensor_data(ret_tensors[RAGGED_SPLITS]);
        writer.to[0] = 0;
    }
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        const cadre_tensor *own = elements[i].tensors[component + RAGGED_SPLITS];
        status = splits_add(&writer, splits_of(own), cadre_tensor_count(own), error);
    }
    if (status != CADRE_OK) {
        components_release(ret_tensors, RAGGED_COMPONENTS);
    }
    return status;
}
