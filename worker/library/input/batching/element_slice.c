/* SPDX-License-Identifier: Apache-2.0
 * Cuts and joins elements by rows. Called by the nodes that batch, rebatch and unbatch, and by the
 * distribution, which makes empty elements with it; owns nothing. */
#include "worker/library/input/batching/element_slice.h"

#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"

void element_reference(const cadre_element *element, cadre_element *ret_element)
{
    *ret_element = *element;
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor_retain(element->tensors[i]);
    }
}

/* One plain component: unknown dimensions are 0, and the first one where `no_rows` or all are
 * known. */
static cadre_status make_plain(const cadre_tensor_spec *spec, bool no_rows,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX] = {0};
    bool all_known = true;
    for (uint32_t axis = 0; axis < spec->rank; axis++) {
        bool known = spec->dims[axis] != CADRE_DIMENSION_ANY;
        dims[axis] = known ? spec->dims[axis] : 0;
        all_known = all_known && known;
    }
    dims[0] = no_rows || all_known ? 0 : dims[0];
    return tensor_create(spec->dtype, spec->rank, dims, ret_tensor, error);
}

static cadre_status make_without(const cadre_element_spec *spec, bool no_rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    struct composite at = {.count = 0};
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        cadre_tensor **to = &ret_element->tensors[i];
        cadre_status status = at.kind == CADRE_COMPOSITE_NONE
                                  ? make_plain(&spec->tensors[i], no_rows, to, error)
                                  : composite_empty(spec, &at, to, error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + at.count;
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

cadre_status element_spec_check_divisible(
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

void element_spec_split(cadre_element_spec *spec, uint64_t pieces)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        const int64_t rows = composite_spec_rows(spec, &at);
        const bool even = rows != CADRE_DIMENSION_ANY && (uint64_t)rows % pieces == 0;
        composite_spec_set_rows(
            spec, &at, even ? (int64_t)((uint64_t)rows / pieces) : CADRE_DIMENSION_ANY);
    }
}

cadre_status element_row_count(
    const cadre_element *element, int64_t *ret_rows, struct cadre_error *error)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < element->count; i += at.count) {
        at = composite_of_element(element, i);
        char text[COMPOSITE_TEXT_BYTES];
        if (at.kind == CADRE_COMPOSITE_NONE && cadre_tensor_rank(element->tensors[i]) == 0) {
            return refuse_scalar(i, error);
        }
        cadre_status status = composite_check(at.kind, element->tensors + i, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "%s of a batch", composite_text(&at, text));
        }
        int64_t rows = composite_rows(at.kind, element->tensors + i);
        if (i > 0 && rows != *ret_rows) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s of a batch has %" PRId64 " rows and the first has %" PRId64
                "; components that are cut together agree in their rows",
                composite_text(&at, text), rows, *ret_rows);
        }
        *ret_rows = rows;
    }
    return CADRE_OK;
}

int64_t element_first_rows(const cadre_element *element)
{
    const struct composite first = composite_of_element(element, 0);
    return composite_rows(first.kind, element->tensors);
}

/* Rows `range` of one composite, whose places in `ret_element` are the next ones. */
static cadre_status cut_next(const cadre_element *element, const struct composite *at,
    struct row_range range, cadre_element *ret_element, struct cadre_error *error)
{
    cadre_status status = composite_slice(at->kind, element->tensors + at->first, range.first,
        range.count, ret_element->tensors + at->first, error);
    if (status == CADRE_OK) {
        ret_element->count = at->first + at->count;
        return CADRE_OK;
    }
    char text[COMPOSITE_TEXT_BYTES];
    cadre_element_release(ret_element);
    /* OUT_OF_RANGE means the end of data, and nothing else. */
    return cadre_error_wrap(error, status == CADRE_OUT_OF_RANGE ? CADRE_INVALID_ARGUMENT : status,
        "%s of a batch", composite_text(at, text));
}

cadre_status element_slice(const cadre_element *element, struct row_range range,
    cadre_element *ret_element, struct cadre_error *error)
{
    struct composite at = {.count = 0};
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < element->count; i += at.count) {
        at = composite_of_element(element, i);
        CADRE_TRY(cut_next(element, &at, range, ret_element, error));
    }
    return CADRE_OK;
}

cadre_status element_slice_piece(const cadre_element *element, uint64_t pieces, uint64_t piece,
    cadre_element *ret_element, struct cadre_error *error)
{
    struct composite at = {.count = 0};
    *ret_element = (cadre_element){0};
    for (uint32_t i = 0; i < element->count; i += at.count) {
        at = composite_of_element(element, i);
        if (at.kind == CADRE_COMPOSITE_NONE && cadre_tensor_rank(element->tensors[i]) == 0) {
            cadre_element_release(ret_element);
            return refuse_scalar(i, error);
        }
        struct row_range range =
            rebatch_split_piece(composite_rows(at.kind, element->tensors + i), pieces, piece);
        CADRE_TRY(cut_next(element, &at, range, ret_element, error));
    }
    return CADRE_OK;
}

cadre_status element_concat(const cadre_element elements[], size_t count,
    cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    *ret_element = (cadre_element){0};
    if (count == 1) {
        element_reference(&elements[0], ret_element);
        return CADRE_OK;
    }
    for (size_t i = 1; i < count; i++) {
        if (elements[i].count != elements[0].count) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a batch has %" PRIu32 " components and another %" PRIu32, elements[i].count,
                elements[0].count);
        }
    }
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < elements[0].count; i += at.count) {
        at = composite_of_element(&elements[0], i);
        cadre_status status =
            composite_concat(&at, elements, count, ret_element->tensors + i, error);
        if (status != CADRE_OK) {
            char text[COMPOSITE_TEXT_BYTES];
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status, "%s of %zu batches cannot be joined",
                composite_text(&at, text), count);
        }
        ret_element->count = i + at.count;
    }
    return CADRE_OK;
}

cadre_status id_list_slice(const struct id_list *from, int64_t rows, struct row_range range,
    struct id_list *ids, struct cadre_error *error)
{
    if (from->count == (size_t)rows) {
        return id_list_add_range(ids, from, (size_t)range.first, (size_t)range.count, error);
    }
    bool with_first = range.first == 0 && range.count > 0;
    return id_list_add_range(ids, from, 0, with_first ? from->count : 0, error);
}

cadre_status id_list_slice_piece(const struct id_list *from, uint64_t pieces, uint64_t piece,
    struct id_list *ids, struct cadre_error *error)
{
    struct row_range own = rebatch_split_piece((int64_t)from->count, pieces, piece);
    return id_list_add_range(ids, from, (size_t)own.first, (size_t)own.count, error);
}
