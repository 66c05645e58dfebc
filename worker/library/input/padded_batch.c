/* SPDX-License-Identifier: Apache-2.0
 * The transformation that stacks consecutive elements of different shapes. Some rows of a batch can
 * be had without the others only where no dimension depends on them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/batch_parts.h"
#include "worker/library/device/machine_memory.h"
#include "worker/library/input/pad.h"

struct padded_dataset {
    cadre_dataset base;
    int64_t size;
    bool drop_remainder;
    bool fixed; /* all dimensions are given */
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

static cadre_status stack(const struct padded_dataset *padded, const struct element_rows *rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT cadre_tensor **parts = calloc(rows->count, sizeof parts[0]);
    if (parts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "padded_batch: no memory for %zu elements", rows->count);
    }
    uint32_t components = rows->elements[0].count;
    for (size_t i = 0; i < rows->count; i++) {
        CADRE_TRY(check_element(padded, &rows->elements[i], i, error));
        if (rows->elements[i].count != components) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "padded_batch: element %zu has %" PRIu32 " components and the first has %" PRIu32,
                i, rows->elements[i].count, components);
        }
    }
    for (uint32_t component = 0; component < components; component++) {
        const int64_t *shape = padded->has_shapes ? padded->shapes.tensors[component].dims : NULL;
        for (size_t i = 0; i < rows->count; i++) {
            parts[i] = rows->elements[i].tensors[component];
        }
        cadre_status status = pad_stack(parts, rows->count, shape, padded->values[component],
            &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status, "padded_batch: component %" PRIu32, component);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

/* A batch that no memory can hold is refused before it has taken all there is. */
static cadre_status check_size(const cadre_element *first, int64_t count, struct cadre_error *error)
{
    uint64_t bytes = sizeof *first + element_held_bytes(first);
    uint64_t total = 0;
    if (__builtin_mul_overflow((uint64_t)count, bytes, &total) || total > machine_memory()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "padded_batch: %" PRId64 " elements of about %" PRIu64
            " bytes do not fit into this machine's memory; give a smaller batch size",
            count, bytes);
    }
    return CADRE_OK;
}

/* --- by place --- */

static int64_t count_rows(const cadre_dataset *self, uint64_t index)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    if (elements < 0) {
        return padded->size;
    }
    int64_t left = elements - (int64_t)index * padded->size;
    return left < padded->size ? left : padded->size;
}

static cadre_status padded_at_rows(cadre_dataset *self, struct place place, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    CADRE_CLEANUP(element_rows_clear) struct element_rows rows = {0};
    for (int64_t i = 0; i < count; i++) {
        cadre_element element = {0};
        const struct place from = {
            .index = place.index * (uint64_t)padded->size + (uint64_t)(first + i),
            .epoch = place.epoch,
        };
        CADRE_TRY(dataset_at(self->input, from, &element, ids, error));
        CADRE_TRY(element_rows_add(&rows, &element, error));
        if (i == 0) {
            CADRE_TRY(check_size(&rows.elements[0], count, error));
        }
    }
    return stack(padded, &rows, ret_element, error);
}

static cadre_status padded_at(cadre_dataset *self, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    return padded_at_rows(self, place, 0, count_rows(self, place.index), ret_element, ids, error);
}

static cadre_status padded_ids_at(cadre_dataset *self, const struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    uint64_t size = (uint64_t)((const struct padded_dataset *)self)->size;
    for (size_t k = 0; k < count; k++) {
        int64_t rows = count_rows(self, places[k].index);
        for (int64_t i = 0; i < rows; i++) {
            struct place from = {places[k].index * size + (uint64_t)i, places[k].epoch};
            CADRE_TRY(dataset_ids_at(self->input, &from, 1, ids, error));
        }
    }
    return CADRE_OK;
}

/* What a dimension is padded to may depend on all elements of the batch. */
static int64_t padded_rows(const cadre_dataset *self, struct place place)
{
    return ((const struct padded_dataset *)self)->fixed ? count_rows(self, place.index)
                                                        : CADRE_CARDINALITY_UNKNOWN;
}

/* --- in order --- */

static cadre_status padded_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self->data;
    bool endless = dataset_cardinality(self->data->input) == CADRE_CARDINALITY_INFINITE;
    CADRE_CLEANUP(batch_parts_clear) struct batch_parts parts = {.rows = 0};
    while (parts.rows < padded->size) {
        cadre_element element = {0};
        cadre_status status = iterator_next(self->input, &element, ids, error);
        if (status == CADRE_OUT_OF_RANGE && parts.rows > 0 && !padded->drop_remainder) {
            break;
        }
        CADRE_TRY(status);
        status = batch_parts_add(&parts, &element, 1, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "padded_batch");
        }
        if (parts.rows == 1 && endless) {
            CADRE_TRY(check_size(&parts.read.elements[0], padded->size, error));
        }
    }
    return stack(padded, &parts.read, ret_element, error);
}

static const struct iterator_ops padded_iterator_ops = {
    .next = padded_next,
    .save = iterator_save_nothing,
    .restore = iterator_restore_nothing,
};

static cadre_status padded_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(cadre_iterator), &padded_iterator_ops, self, pass, pass, ret_iterator, error);
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
    to->dims[0] =
        padded->drop_remainder || dataset_cardinality(&padded->base) == CADRE_CARDINALITY_INFINITE
            ? padded->size
            : CADRE_DIMENSION_ANY;
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

static int64_t padded_cardinality(const cadre_dataset *self)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    bool partial = elements > 0 && elements % padded->size != 0 && !padded->drop_remainder;
    return elements <= 0 ? elements : elements / padded->size + (partial ? 1 : 0);
}

static int64_t padded_size(const cadre_dataset *self)
{
    return ((const struct padded_dataset *)self)->size;
}

static cadre_dataset *padded_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    const cadre_padded_batch_options options = {
        .shapes = padded->has_shapes ? &padded->shapes : NULL,
        .values = padded->has_values ? padded->values : NULL,
    };
    return cadre_dataset_padded_batch(inputs[0], padded->size, &options, padded->drop_remainder);
}

static void padded_describe(const cadre_dataset *self, struct description *text)
{
    const struct padded_dataset *padded = (const struct padded_dataset *)self;
    description_add(text, "%" PRId64 "%s", padded->size,
        padded->drop_remainder ? ", no shorter one at the end" : "");
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
    .cardinality = padded_cardinality,
    .at = padded_at,
    .ids_at = padded_ids_at,
    .rows = padded_rows,
    .at_rows = padded_at_rows,
    .batch_size = padded_size,
    .iterate = padded_iterate,
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
    if (size < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "padded_batch: size %" PRId64 "; a batch has at least 1 element", size);
    }
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
    padded->size = size;
    padded->drop_remainder = drop_remainder;
    padded->has_shapes = given.shapes != NULL;
    padded->shapes = given.shapes != NULL ? *given.shapes : (cadre_element_spec){0};
    padded->fixed = given.shapes != NULL && is_fixed(given.shapes);
    padded->has_values = given.values != NULL;
    for (uint32_t i = 0; i < values; i++) {
        padded->values[i] = cadre_tensor_retain(given.values[i]);
    }
    return &padded->base;
}
