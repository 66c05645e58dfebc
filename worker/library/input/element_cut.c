/* SPDX-License-Identifier: Apache-2.0
 * See element_cut.h. */
#include "worker/library/input/element_cut.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

void element_share(const cadre_element *element, cadre_element *ret_element)
{
    *ret_element = *element;
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor_retain(element->tensors[i]);
    }
}

/* Unknown dimensions are 0, and the first one where `no_rows` or all are known. */
static cadre_status make_without(const cadre_element_spec *spec, bool no_rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < spec->count; i++) {
        const cadre_tensor_spec *tensor = &spec->tensors[i];
        int64_t dims[CADRE_RANK_MAX] = {0};
        bool all_known = true;
        for (uint32_t axis = 0; axis < tensor->rank; axis++) {
            bool known = tensor->dims[axis] != CADRE_DIMENSION_ANY;
            dims[axis] = known ? tensor->dims[axis] : 0;
            all_known = all_known && known;
        }
        dims[0] = no_rows || all_known ? 0 : dims[0];
        cadre_status status =
            tensor_create(tensor->dtype, tensor->rank, dims, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

cadre_status element_make_empty(
    const cadre_element_spec *spec, cadre_element *ret_element, struct cadre_error *error)
{
    return make_without(spec, true, ret_element, error);
}

cadre_status element_make_dummy(
    const cadre_element_spec *spec, cadre_element *ret_element, struct cadre_error *error)
{
    return make_without(spec, false, ret_element, error);
}

static cadre_status refuse_scalar(uint32_t component, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "component %" PRIu32
        " of the dataset is a scalar, which cannot be divided among replicas; call "
        "cadre_dataset_batch first",
        component);
}

cadre_status element_spec_divides(
    const cadre_element_spec *spec, uint64_t pieces, struct cadre_error *error)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        if (spec->tensors[i].rank == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " of the dataset is a scalar, which cannot be divided among "
                "%" PRIu64 " replicas; call cadre_dataset_batch first",
                i, pieces);
        }
    }
    return CADRE_OK;
}

cadre_status element_rows(
    const cadre_element *element, int64_t *ret_rows, struct cadre_error *error)
{
    for (uint32_t i = 0; i < element->count; i++) {
        if (cadre_tensor_rank(element->tensors[i]) == 0) {
            return refuse_scalar(i, error);
        }
        int64_t rows = cadre_tensor_rows(element->tensors[i]);
        if (i > 0 && rows != *ret_rows) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " of a batch has %" PRId64 " rows and the first has %" PRId64
                "; components that are cut together agree in their rows",
                i, rows, *ret_rows);
        }
        *ret_rows = rows;
    }
    return CADRE_OK;
}

cadre_status element_cut(const cadre_element *element, struct row_range range,
    cadre_element *ret_element, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_status status = tensor_view_rows(
            element->tensors[i], range.first, range.count, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status == CADRE_OUT_OF_RANGE /* which means the end of data, and nothing else */
                       ? cadre_error_wrap(
                             error, CADRE_INVALID_ARGUMENT, "component %" PRIu32 " of a batch", i)
                       : status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

cadre_status element_cut_piece(const cadre_element *element, uint64_t pieces, uint64_t piece,
    cadre_element *ret_element, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor *whole = element->tensors[i];
        cadre_status status = cadre_tensor_rank(whole) == 0 ? refuse_scalar(i, error) : CADRE_OK;
        if (status == CADRE_OK) {
            struct row_range range = split_piece(cadre_tensor_rows(whole), pieces, piece);
            status =
                tensor_view_rows(whole, range.first, range.count, &ret_element->tensors[i], error);
        }
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

cadre_status element_join(const cadre_element parts[], size_t count, cadre_element *ret_element,
    struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    *ret_element = (cadre_element){0};
    if (count == 1) {
        element_share(&parts[0], ret_element);
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to join parts of %zu batches", count);
    }
    for (uint32_t component = 0; component < parts[0].count; component++) {
        for (size_t i = 0; i < count; i++) {
            if (parts[i].count != parts[0].count) {
                cadre_element_release(ret_element);
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "a batch has %" PRIu32 " components and another %" PRIu32, parts[i].count,
                    parts[0].count);
            }
            tensors[i] = parts[i].tensors[component];
        }
        cadre_status status =
            tensor_concat_rows(tensors, count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status,
                "component %" PRIu32 " of %zu batches cannot be joined", component, count);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

cadre_status ids_cut(const struct id_list *from, int64_t rows, struct row_range range,
    struct id_list *ids, struct cadre_error *error)
{
    if (from->count == (size_t)rows) {
        return id_list_add_range(ids, from, (size_t)range.first, (size_t)range.count, error);
    }
    bool with_first = range.first == 0 && range.count > 0;
    return id_list_add_range(ids, from, 0, with_first ? from->count : 0, error);
}

cadre_status ids_cut_piece(const struct id_list *from, uint64_t pieces, uint64_t piece,
    struct id_list *ids, struct cadre_error *error)
{
    struct row_range own = split_piece((int64_t)from->count, pieces, piece);
    return id_list_add_range(ids, from, (size_t)own.first, (size_t)own.count, error);
}
