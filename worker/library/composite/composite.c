/* SPDX-License-Identifier: Apache-2.0
 * See composite.h: the functions of all kinds, which call those of one kind. Called by input/ and
 * runtime/. */
#include "worker/library/composite/composite.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/composite/components.h"
#include "worker/library/device/tensor.h"

static struct composite composite_of(cadre_composite second, cadre_composite third, uint32_t first)
{
    struct composite composite = {.kind = CADRE_COMPOSITE_NONE, .first = first, .count = 1};
    if (second == CADRE_COMPOSITE_RAGGED) {
        composite.kind = CADRE_COMPOSITE_RAGGED;
        composite.count = RAGGED_COMPONENTS;
    } else if (third == CADRE_COMPOSITE_SPARSE) {
        composite.kind = CADRE_COMPOSITE_SPARSE;
        composite.count = SPARSE_COMPONENTS;
    }
    return composite;
}

static cadre_composite mark_of(const cadre_element *element, uint32_t i)
{
    return i < element->count ? tensor_composite(element->tensors[i]) : CADRE_COMPOSITE_NONE;
}

struct composite composite_of_element(const cadre_element *element, uint32_t first)
{
    CADRE_ASSERT(first < element->count);
    return composite_of(mark_of(element, first + 1), mark_of(element, first + 2), first);
}

static cadre_composite mark_said(const cadre_element_spec *spec, uint32_t i)
{
    return i < spec->count ? spec->tensors[i].composite : CADRE_COMPOSITE_NONE;
}

struct composite composite_of_spec(const cadre_element_spec *spec, uint32_t first)
{
    CADRE_ASSERT(first < spec->count);
    return composite_of(mark_said(spec, first + 1), mark_said(spec, first + 2), first);
}

const char *composite_text(const struct composite *composite, char text[COMPOSITE_TEXT_BYTES])
{
    const uint32_t last = composite->first + composite->count - 1;
    if (composite->kind == CADRE_COMPOSITE_NONE) {
        snprintf(text, COMPOSITE_TEXT_BYTES, "component %" PRIu32, composite->first);
    } else {
        snprintf(text, COMPOSITE_TEXT_BYTES, "components %" PRIu32 " to %" PRIu32 " (%s)",
            composite->first, last,
            composite->kind == CADRE_COMPOSITE_RAGGED ? "ragged" : "sparse");
    }
    return text;
}

/* --- facts about a value --- */

cadre_status composite_check(
    cadre_composite kind, cadre_tensor *const tensors[], struct cadre_error *error)
{
    switch (kind) {
    case CADRE_COMPOSITE_RAGGED:
        return ragged_check(tensors, error);
    case CADRE_COMPOSITE_SPARSE:
        return sparse_check(tensors, error);
    default:
        return CADRE_OK;
    }
}

int64_t composite_rows(cadre_composite kind, cadre_tensor *const tensors[])
{
    int64_t rows = 0;
    switch (kind) {
    case CADRE_COMPOSITE_RAGGED:
        rows = cadre_tensor_rows(tensors[RAGGED_SPLITS]) - 1;
        break;
    case CADRE_COMPOSITE_SPARSE:
        if (component_check(tensors[SPARSE_SHAPE], "", 1, NULL) == CADRE_OK &&
            cadre_tensor_count(tensors[SPARSE_SHAPE]) > 0) {
            rows = *(const int64_t *)cadre_tensor_const_data(tensors[SPARSE_SHAPE]);
        }
        break;
    default:
        rows = cadre_tensor_rows(tensors[0]);
        break;
    }
    return rows < 0 ? 0 : rows;
}

static bool is_part(const cadre_tensor_spec *part, uint32_t rank)
{
    return part->dtype == CADRE_I64 && part->rank == rank;
}

static bool marks_fit(const cadre_element_spec *spec, uint32_t i)
{
    const cadre_tensor_spec *part = &spec->tensors[i];
    switch (part->composite) {
    case CADRE_COMPOSITE_NONE:
        return true;
    case CADRE_COMPOSITE_RAGGED:
        return i >= 1 && part[-1].rank > 0 && part[-1].composite == CADRE_COMPOSITE_NONE &&
               is_part(part, 1);
    case CADRE_COMPOSITE_SPARSE:
        return i >= 2 && is_part(&part[-2], 2) && part[-2].composite == CADRE_COMPOSITE_NONE &&
               part[-1].rank == 1 && part[-1].composite == CADRE_COMPOSITE_NONE && is_part(part, 1);
    default:
        return false;
    }
}

cadre_status composite_spec_check(
    const cadre_element_spec *spec, const char *who, struct cadre_error *error)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        if (!marks_fit(spec, i)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s %" PRIu32 " is marked as composite %d, and those before it are not its other "
                "parts; cadre/composite.h says what they are",
                who, i, (int)spec->tensors[i].composite);
        }
    }
    return CADRE_OK;
}

int64_t composite_spec_rows(const cadre_element_spec *spec, const struct composite *composite)
{
    const cadre_tensor_spec *specs = spec->tensors + composite->first;
    int64_t rows = CADRE_DIMENSION_ANY;
    if (composite->kind == CADRE_COMPOSITE_RAGGED) {
        const int64_t entries = specs[RAGGED_SPLITS].dims[0];
        rows = entries > 0 ? entries - 1 : CADRE_DIMENSION_ANY;
    } else if (composite->kind == CADRE_COMPOSITE_NONE && specs[0].rank > 0) {
        rows = specs[0].dims[0];
    }
    return rows;
}

void composite_spec_set_rows(
    cadre_element_spec *spec, const struct composite *composite, int64_t rows)
{
    cadre_tensor_spec *specs = spec->tensors + composite->first;
    const bool known = rows != CADRE_DIMENSION_ANY && rows < INT64_MAX;
    if (composite->kind == CADRE_COMPOSITE_RAGGED) {
        specs[RAGGED_VALUES].dims[0] = CADRE_DIMENSION_ANY;
        specs[RAGGED_SPLITS].dims[0] = known ? rows + 1 : CADRE_DIMENSION_ANY;
    } else if (composite->kind == CADRE_COMPOSITE_SPARSE) {
        specs[SPARSE_INDICES].dims[0] = CADRE_DIMENSION_ANY;
        specs[SPARSE_VALUES].dims[0] = CADRE_DIMENSION_ANY;
    } else if (specs[0].rank > 0) {
        specs[0].dims[0] = rows;
    }
}

void element_spec_set_rows(cadre_element_spec *spec, int64_t rows)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        composite_spec_set_rows(spec, &at, rows);
    }
}

/* --- pieces --- */

cadre_status composite_slice(cadre_composite kind, cadre_tensor *const tensors[], int64_t first,
    int64_t count, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    if (kind == CADRE_COMPOSITE_NONE) {
        return tensor_view_rows(tensors[0], first, count, &ret_tensors[0], error);
    }
    CADRE_TRY(composite_check(kind, tensors, error));
    const int64_t rows = composite_rows(kind, tensors);
    if (first < 0 || count < 0 || first > rows || count > rows - first) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%" PRId64 " rows from row %" PRId64 " on lie outside of %" PRId64 " rows", count,
            first, rows);
    }
    return kind == CADRE_COMPOSITE_RAGGED ? ragged_slice(tensors, first, count, ret_tensors, error)
                                          : sparse_slice(tensors, first, count, ret_tensors, error);
}

cadre_status composite_concat(const struct composite *composite, const cadre_element elements[],
    size_t count, cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    if (composite->kind == CADRE_COMPOSITE_NONE) {
        return components_concat(elements, count, composite->first, ret_tensors, error);
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(composite_check(composite->kind, elements[i].tensors + composite->first, error));
    }
    return composite->kind == CADRE_COMPOSITE_RAGGED
               ? ragged_concat(composite->first, elements, count, ret_tensors, error)
               : sparse_concat(composite->first, elements, count, ret_tensors, error);
}

/* One component, whose first dimension is `rows`. */
static cadre_status empty_part(const cadre_tensor_spec *spec, int64_t rows,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX] = {rows};
    for (uint32_t axis = 1; axis < spec->rank; axis++) {
        dims[axis] = spec->dims[axis] == CADRE_DIMENSION_ANY ? 0 : spec->dims[axis];
    }
    CADRE_TRY(tensor_create(spec->dtype, spec->rank, dims, ret_tensor, error));
    tensor_set_composite(*ret_tensor, spec->composite);
    return CADRE_OK;
}

cadre_status composite_empty(const cadre_element_spec *spec, const struct composite *composite,
    cadre_tensor *ret_tensors[], struct cadre_error *error)
{
    const cadre_tensor_spec *specs = spec->tensors + composite->first;
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < composite->count && status == CADRE_OK; i++) {
        cadre_tensor_spec part = specs[i];
        int64_t rows = 0;
        if (composite->kind == CADRE_COMPOSITE_RAGGED && i == RAGGED_SPLITS) {
            rows = 1;
        } else if (composite->kind == CADRE_COMPOSITE_SPARSE) {
            const int64_t rank = specs[SPARSE_INDICES].dims[1];
            part.dims[1] = rank == CADRE_DIMENSION_ANY ? 1 : rank;
            rows = i == SPARSE_SHAPE ? part.dims[1] : 0;
        }
        status = empty_part(&part, rows, &ret_tensors[i], error);
    }
    if (status != CADRE_OK) {
        components_release(ret_tensors, composite->count);
    }
    return status;
}
