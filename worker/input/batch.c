/* SPDX-License-Identifier: Apache-2.0
 * The transformation that stacks consecutive elements. Some rows of a batch can be had without the
 * others, which is what lets each worker read its own samples only. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/device/tensor.h"
#include "worker/input/node.h"

/* What an element takes besides its values while it waits for its batch, at the least. */
#define ELEMENT_OVERHEAD_BYTES 128

struct batch_dataset {
    cadre_dataset base;
    int64_t size;
    bool drop_remainder;
};

/* Elements gathered for one batch. */
struct gathered {
    cadre_element *elements;
    int64_t count;
    int64_t capacity;
};

static void gathered_clear(struct gathered *gathered)
{
    for (int64_t i = 0; i < gathered->count; i++) {
        cadre_element_clear(&gathered->elements[i]);
    }
    free(gathered->elements);
}

/* Makes room for one more; the capacity follows what comes, not the size that was asked for. */
static cadre_status gathered_grow(struct gathered *gathered, struct cadre_error *error)
{
    if (gathered->count < gathered->capacity) {
        return CADRE_OK;
    }
    int64_t capacity = gathered->capacity == 0 ? 32 : 2 * gathered->capacity;
    cadre_element *elements =
        realloc(gathered->elements, (size_t)capacity * sizeof gathered->elements[0]);
    if (elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "batch: no memory for %" PRId64 " elements", capacity);
    }
    gathered->elements = elements;
    gathered->capacity = capacity;
    return CADRE_OK;
}

/* A batch that no memory can hold is refused before it has taken all there is. */
static cadre_status check_size(const cadre_element *first, int64_t count, struct cadre_error *error)
{
    uint64_t bytes = sizeof *first;
    uint64_t total = 0;
    for (uint32_t i = 0; i < first->count; i++) {
        bytes += cadre_tensor_bytes(first->tensors[i]) + ELEMENT_OVERHEAD_BYTES;
    }
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (__builtin_mul_overflow((uint64_t)count, bytes, &total) || total > memory) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "batch: %" PRId64 " elements of about %" PRIu64
            " bytes do not fit into this machine's memory; give a smaller batch size",
            count, bytes);
    }
    return CADRE_OK;
}

static cadre_status stack(
    const struct gathered *gathered, cadre_element *ret_element, struct cadre_error *error)
{
    uint32_t components = gathered->elements[0].count;
    CADRE_FREE_AT_EXIT cadre_tensor **parts = calloc((size_t)gathered->count, sizeof parts[0]);
    if (parts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "batch: no memory for %" PRId64 " elements", gathered->count);
    }
    for (uint32_t component = 0; component < components; component++) {
        for (int64_t i = 0; i < gathered->count; i++) {
            if (gathered->elements[i].count != components) {
                cadre_element_clear(ret_element);
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "batch: element %" PRId64 " has %" PRIu32
                    " components and the first has %" PRIu32,
                    i, gathered->elements[i].count, components);
            }
            parts[i] = gathered->elements[i].tensors[component];
        }
        cadre_status status =
            tensor_stack(parts, (size_t)gathered->count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return cadre_error_wrap(error, status,
                "batch: component %" PRIu32 " of %" PRId64 " elements cannot be stacked", component,
                gathered->count);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

static int64_t batch_rows(const cadre_dataset *self, struct place place)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    if (elements < 0) {
        return batch->size;
    }
    int64_t left = elements - (int64_t)place.index * batch->size;
    return left < batch->size ? left : batch->size;
}

static cadre_status batch_at_rows(cadre_dataset *self, struct place place, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    CADRE_CLEANUP(gathered_clear) struct gathered gathered = {0};
    struct place from = {.epoch = place.epoch};
    for (int64_t i = 0; i < count; i++) {
        from.index = place.index * (uint64_t)batch->size + (uint64_t)(first + i);
        CADRE_TRY(gathered_grow(&gathered, error));
        CADRE_TRY(dataset_at(self->input, from, &gathered.elements[gathered.count], ids, error));
        gathered.count++;
        if (i == 0) {
            CADRE_TRY(check_size(&gathered.elements[0], count, error));
        }
    }
    return stack(&gathered, ret_element, error);
}

static cadre_status batch_at(cadre_dataset *self, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    return batch_at_rows(self, place, 0, batch_rows(self, place), ret_element, ids, error);
}

static cadre_status batch_ids_at(cadre_dataset *self, const struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    for (size_t k = 0; k < count; k++) {
        int64_t rows = batch_rows(self, places[k]);
        for (int64_t i = 0; i < rows; i++) {
            struct place from = {.epoch = places[k].epoch};
            from.index = places[k].index * (uint64_t)batch->size + (uint64_t)i;
            CADRE_TRY(dataset_ids_at(self->input, &from, 1, ids, error));
        }
    }
    return CADRE_OK;
}

static int64_t batch_size(const cadre_dataset *self)
{
    return ((const struct batch_dataset *)self)->size;
}

static cadre_status batch_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    const cadre_element_spec *input = &inputs[0];
    *ret_spec = (cadre_element_spec){.count = input->count};
    for (uint32_t i = 0; i < input->count; i++) {
        const cadre_tensor_spec *from = &input->tensors[i];
        cadre_tensor_spec *to = &ret_spec->tensors[i];
        if (from->rank == CADRE_RANK_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "batch: component %" PRIu32 " has %d dimensions already, which is the limit", i,
                CADRE_RANK_MAX);
        }
        to->dtype = from->dtype;
        to->rank = from->rank + 1;
        to->dims[0] =
            batch->drop_remainder || dataset_cardinality(self) == CADRE_CARDINALITY_INFINITE
                ? batch->size
                : CADRE_DIMENSION_ANY;
        memcpy(to->dims + 1, from->dims, from->rank * sizeof from->dims[0]);
    }
    return CADRE_OK;
}

static cadre_status batch_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self->data;
    CADRE_CLEANUP(gathered_clear) struct gathered gathered = {0};
    while (gathered.count < batch->size) {
        CADRE_TRY(gathered_grow(&gathered, error));
        cadre_status status =
            iterator_next(self->input, &gathered.elements[gathered.count], ids, error);
        if (status == CADRE_OUT_OF_RANGE && gathered.count > 0 && !batch->drop_remainder) {
            break;
        }
        CADRE_TRY(status);
        gathered.count++;
        if (gathered.count == 1 &&
            dataset_cardinality(self->data->input) == CADRE_CARDINALITY_INFINITE) {
            CADRE_TRY(check_size(&gathered.elements[0], batch->size, error));
        }
    }
    return stack(&gathered, ret_element, error);
}

static const struct iterator_ops batch_iterator_ops = {.next = batch_next};

static cadre_status batch_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(cadre_iterator), &batch_iterator_ops, self, pass, pass, ret_iterator, error);
}

static int64_t batch_cardinality(const cadre_dataset *self)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    bool partial = elements > 0 && elements % batch->size != 0 && !batch->drop_remainder;
    return elements <= 0 ? elements : elements / batch->size + (partial ? 1 : 0);
}

static cadre_dataset *batch_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    return cadre_dataset_batch(inputs[0], batch->size, batch->drop_remainder);
}

static void batch_describe(const cadre_dataset *self, struct description *text)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    description_add(text, "%" PRId64 "%s", batch->size,
        batch->drop_remainder ? ", no shorter one at the end" : "");
}

static const struct dataset_ops batch_ops = {
    .name = "batch",
    .rebuild = batch_rebuild,
    .describe = batch_describe,
    .spec = batch_spec,
    .cardinality = batch_cardinality,
    .at = batch_at,
    .ids_at = batch_ids_at,
    .rows = batch_rows,
    .at_rows = batch_at_rows,
    .batch_size = batch_size,
    .iterate = batch_iterate,
};

cadre_dataset *cadre_dataset_batch(cadre_dataset *data, int64_t size, bool drop_remainder)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (size < 1) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "batch: size %" PRId64 "; a batch has at least 1 element", size);
        return dataset_failed(data, &error);
    }
    struct batch_dataset *batch = dataset_new(sizeof *batch, &batch_ops, data);
    if (batch == NULL) {
        return NULL;
    }
    batch->size = size;
    batch->drop_remainder = drop_remainder;
    return &batch->base;
}
