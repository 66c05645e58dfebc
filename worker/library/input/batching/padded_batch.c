/* SPDX-License-Identifier: Apache-2.0
 * The transformation that stacks consecutive elements of different shapes, padded to one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/batching/pad.h"
#include "worker/library/input/batching/uneven_batch.h"

struct padded_dataset {
    struct uneven_batch batch;
    bool has_shapes;
    cadre_element_spec shapes;
    bool has_values;
    cadre_tensor *values[CADRE_ELEMENT_TENSORS_MAX]; /* NULL: zero */
};

static void padded_destroy(cadre_dataset *self)
{
    struct padded_dataset *padded = (struct padded_dataset *)self;
    for (uint32_t i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        cadre_tensor_release(padded->values[i]);
    }
}

/* The components and their ranks are those of the shapes that were given. */
static cadre_status check_element(const struct padded_dataset *padded, const cadre_element *element,
    size_t number, struct cadre_error *error)
{
    if (!padded->has_shapes) {
        return CADRE_OK;
    }
    if (element->count != padded->shapes.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: element %zu has %" PRIu32
            " components, and shapes were given for %" PRIu32,
            number, element->count, padded->shapes.count);
    }
    for (uint32_t i = 0; i < element->count; i++) {
        uint32_t rank = cadre_tensor_rank(element->tensors[i]);
        if (rank != padded->shapes.tensors[i].rank) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "padded_batch: component %" PRIu32 " of element %zu has %" PRIu32
                " dimensions, and a shape of %" PRIu32 " was given",
                i, number, rank, padded->shapes.tensors[i].rank);
        }
    }
    return CADRE_OK;
}

static cadre_status padded_stack(struct uneven_batch *batch, const struct element_stack *rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)batch;
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(rows->count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "padded_batch: no memory for %zu elements", rows->count);
    }
    uint32_t components = rows->elements[0].count;
    for (size_t i = 0; i < rows->count; i++) {
        CADRE_TRY(check_element(padded, &rows->elements[i], i, error));
    }
    for (uint32_t component = 0; component < components; component++) {
        const int64_t *shape = padded->has_shapes ? padded->shapes.tensors[component].dims : NULL;
        for (size_t i = 0; i < rows->count; i++) {
            tensors[i] = rows->elements[i].tensors[component];
        }
        cadre_status status = pad_stack(tensors, rows->count, shape, padded->values[component],
            &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status, "padded_batch: component %" PRIu32, component);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

/* --- what it is --- */

/* One component: a new first dimension, and what the others are padded to where that is known. */
static cadre_status component_spec(const struct padded_dataset *padded, uint32_t i,
    const cadre_tensor_spec *from, cadre_tensor_spec *to, struct cadre_error *error)
{
    const cadre_tensor_spec *shape = padded->has_shapes ? &padded->shapes.tensors[i] : NULL;
    if (from->rank == CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: component %" PRIu32 " has %d dimensions already, which is the limit", i,
            CADRE_RANK_MAX);
    }
    if (shape != NULL && shape->rank != from->rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: component %" PRIu32 " has %" PRIu32
            " dimensions, and a shape of %" PRIu32 " was given",
            i, from->rank, shape->rank);
    }
    to->dtype = from->dtype;
    to->rank = from->rank + 1;
    to->dims[0] = uneven_rows(&padded->batch.base);
    for (uint32_t axis = 0; axis < from->rank; axis++) {
        bool given = shape != NULL && shape->dims[axis] != CADRE_DIMENSION_ANY;
        to->dims[axis + 1] = given ? shape->dims[axis] : from->dims[axis];
    }
    return CADRE_OK;
}

static cadre_status padded_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    CADRE_TRY(element_spec_check_plain(&inputs[0], "padded_batch", error));
    if (padded->has_shapes && padded->shapes.count != inputs[0].count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: elements of %" PRIu32 " components, and shapes were given for %" PRIu32,
            inputs[0].count, padded->shapes.count);
    }
    *ret_spec = (cadre_element_spec){.count = inputs[0].count, .names = inputs[0].names};
    for (uint32_t i = 0; i < inputs[0].count; i++) {
        CADRE_TRY(component_spec(padded, i, &inputs[0].tensors[i], &ret_spec->tensors[i], error));
    }
    return CADRE_OK;
}

static cadre_dataset *padded_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    const cadre_padded_batch_options options = {
        .shapes = padded->has_shapes ? &padded->shapes : NULL,
        .values = padded->has_values ? padded->values : NULL,
    };
    return cadre_dataset_padded_batch(
        inputs[0], padded->batch.size, &options, padded->batch.drop_remainder);
}

static void padded_describe(const cadre_dataset *self, struct description *text)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    description_add(text, "%" PRId64 "%s", padded->batch.size,
        padded->batch.drop_remainder ? ", no shorter one at the end" : "");
    for (uint32_t i = 0; padded->has_shapes && i < padded->shapes.count; i++) {
        description_add(text, "%s[", i == 0 ? ", to " : " ");
        for (uint32_t axis = 0; axis < padded->shapes.tensors[i].rank; axis++) {
            description_add(
                text, "%s%" PRId64, axis > 0 ? " " : "", padded->shapes.tensors[i].dims[axis]);
        }
        description_add(text, "]");
    }
}

static const struct dataset_ops padded_ops = {
    .name = "padded_batch",
    .destroy = padded_destroy,
    .rebuild = padded_rebuild,
    .describe = padded_describe,
    .spec = padded_spec,
    .cardinality = uneven_cardinality,
    .at = uneven_at,
    .ids_at = uneven_ids_at,
    .rows = uneven_count_rows,
    .at_rows = uneven_at_rows,
    .batch_size = uneven_size,
    .iterate = uneven_iterate,
};

static cadre_status check_shapes(const cadre_element_spec *shapes, struct cadre_error *error)
{
    if (shapes->count < 1 || shapes->count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: shapes of %" PRIu32 " components; an element has 1 to %d", shapes->count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < shapes->count; i++) {
        const cadre_tensor_spec *shape = &shapes->tensors[i];
        if (shape->rank > CADRE_RANK_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "padded_batch: the shape of component %" PRIu32 " has %" PRIu32
                " dimensions; the limit is %d",
                i, shape->rank, CADRE_RANK_MAX);
        }
        for (uint32_t axis = 0; axis < shape->rank; axis++) {
            if (shape->dims[axis] < CADRE_DIMENSION_ANY) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "padded_batch: dimension %" PRIu32 " of component %" PRIu32 " is to be %" PRId64
                    "; give 0 or more, or CADRE_DIMENSION_ANY",
                    axis, i, shape->dims[axis]);
            }
        }
    }
    return CADRE_OK;
}

static bool is_fixed(const cadre_element_spec *shapes)
{
    for (uint32_t i = 0; i < shapes->count; i++) {
        for (uint32_t axis = 0; axis < shapes->tensors[i].rank; axis++) {
            if (shapes->tensors[i].dims[axis] == CADRE_DIMENSION_ANY) {
                return false;
            }
        }
    }
    return true;
}

/* How many values were given: one for each component. */
static cadre_status count_values(cadre_dataset *data, const cadre_padded_batch_options *options,
    uint32_t *ret_count, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    if (options->shapes == NULL && options->values != NULL) {
        CADRE_TRY(dataset_spec(data, &spec, error));
    }
    *ret_count = options->values == NULL   ? 0
                 : options->shapes != NULL ? options->shapes->count
                                           : spec.count;
    for (uint32_t i = 0; i < *ret_count; i++) {
        CADRE_TRY(tensor_require_host(options->values[i], "padded_batch", error));
        if (cadre_tensor_rank(options->values[i]) != 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "padded_batch: the value for component %" PRIu32 " is no scalar", i);
        }
    }
    return CADRE_OK;
}

static cadre_status check_options(cadre_dataset *data, int64_t size,
    const cadre_padded_batch_options *options, uint32_t *ret_values, struct cadre_error *error)
{
    CADRE_TRY(uneven_check_size("padded_batch", size, error));
    if (options->shapes != NULL) {
        CADRE_TRY(check_shapes(options->shapes, error));
    }
    return count_values(data, options, ret_values, error);
}

cadre_dataset *cadre_dataset_padded_batch(cadre_dataset *data, int64_t size,
    const cadre_padded_batch_options *options, bool drop_remainder)
{
    struct cadre_error error = {0};
    uint32_t values = 0;
    if (!dataset_usable(data)) {
        return data;
    }
    const cadre_padded_batch_options given =
        options != NULL ? *options : (cadre_padded_batch_options){0};
    if (check_options(data, size, &given, &values, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct padded_dataset *padded = dataset_new(sizeof *padded, &padded_ops, data);
    if (padded == NULL) {
        return NULL;
    }
    padded->batch.stack = padded_stack;
    padded->batch.size = size;
    padded->batch.drop_remainder = drop_remainder;
    /* Else what a dimension is padded to may depend on all elements of the batch. */
    padded->batch.rows_alone = given.shapes != NULL && is_fixed(given.shapes);
    padded->has_shapes = given.shapes != NULL;
    padded->shapes = given.shapes != NULL ? *given.shapes : (cadre_element_spec){0};
    padded->has_values = given.values != NULL;
    for (uint32_t i = 0; i < values; i++) {
        padded->values[i] = cadre_tensor_retain(given.values[i]);
    }
    return &padded->batch.base;
}
