/* SPDX-License-Identifier: Apache-2.0
 * The node functions that padded, ragged and sparse batches share. Called by padded_batch.c,
 * ragged_batch.c and sparse_batch.c, each of which gives the function that stacks rows. */
#include "worker/library/input/batching/uneven_batch.h"

#include <inttypes.h>

#include "common/base/cleanup.h"
#include "worker/library/device/machine_memory.h"
#include "worker/library/input/batching/batch_builder.h"

static struct uneven_batch *batch_of(const cadre_dataset *self)
{
    return (struct uneven_batch *)(uintptr_t)self;
}

cadre_status uneven_check_size(const char *who, int64_t size, struct cadre_error *error)
{
    return size >= 1 ? CADRE_OK
                     : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                           "%s: size %" PRId64 "; a batch has at least 1 element", who, size);
}

int64_t uneven_rows(const cadre_dataset *self)
{
    bool full =
        batch_of(self)->drop_remainder || dataset_cardinality(self) == CADRE_CARDINALITY_INFINITE;
    return full ? batch_of(self)->size : CADRE_DIMENSION_ANY;
}

/* A batch that no memory can hold is refused before it has taken all there is. */
static cadre_status check_memory(
    const cadre_dataset *self, const cadre_element *first, int64_t count, struct cadre_error *error)
{
    uint64_t bytes = sizeof *first + element_memory_bytes(first);
    uint64_t total = 0;
    if (__builtin_mul_overflow((uint64_t)count, bytes, &total) || total > machine_memory()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s: %" PRId64 " elements of about %" PRIu64
            " bytes do not fit into this machine's memory; give a smaller batch size",
            self->ops->name, count, bytes);
    }
    return CADRE_OK;
}

/* All have as many components, and none that are batches already. */
static cadre_status uneven_batch_stack(const cadre_dataset *self, const struct element_stack *rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    cadre_element_spec spec;
    const uint32_t components = rows->elements[0].count;
    element_spec_of(&rows->elements[0], &spec);
    CADRE_TRY(element_spec_check_plain(&spec, self->ops->name, error));
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->elements[i].count != components) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: element %zu has %" PRIu32 " components and the first has %" PRIu32,
                self->ops->name, i, rows->elements[i].count, components);
        }
    }
    return batch_of(self)->stack(batch_of(self), rows, ret_element, error);
}

/* --- by index --- */

static int64_t count_rows(const cadre_dataset *self, uint64_t index)
{
    const int64_t size = batch_of(self)->size;
    const int64_t elements = dataset_cardinality(self->input);
    if (elements < 0) {
        return size;
    }
    const int64_t left = elements - (int64_t)index * size;
    return left < size ? left : size;
}

cadre_status uneven_at_rows(cadre_dataset *self, struct element_position position, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_stack_clear) struct element_stack rows = {0};
    for (int64_t i = 0; i < count; i++) {
        cadre_element element = {0};
        const struct element_position from = {
            .index = position.index * (uint64_t)batch_of(self)->size + (uint64_t)(first + i),
            .epoch = position.epoch,
        };
        CADRE_TRY(dataset_at(self->input, from, &element, ids, error));
        CADRE_TRY(element_stack_add(&rows, &element, error));
        if (i == 0) {
            CADRE_TRY(check_memory(self, &rows.elements[0], count, error));
        }
    }
    return uneven_batch_stack(self, &rows, ret_element, error);
}

cadre_status uneven_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    return uneven_at_rows(
        self, position, 0, count_rows(self, position.index), ret_element, ids, error);
}

cadre_status uneven_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    const uint64_t size = (uint64_t)batch_of(self)->size;
    for (size_t k = 0; k < count; k++) {
        int64_t rows = count_rows(self, positions[k].index);
        for (int64_t i = 0; i < rows; i++) {
            struct element_position from = {
                positions[k].index * size + (uint64_t)i, positions[k].epoch};
            CADRE_TRY(dataset_ids_at(self->input, &from, 1, ids, error));
        }
    }
    return CADRE_OK;
}

int64_t uneven_count_rows(const cadre_dataset *self, struct element_position position)
{
    return batch_of(self)->rows_alone ? count_rows(self, position.index)
                                      : CADRE_CARDINALITY_UNKNOWN;
}

/* --- in order --- */

static cadre_status uneven_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const struct uneven_batch *batch = batch_of(self->data);
    bool endless = dataset_cardinality(self->data->input) == CADRE_CARDINALITY_INFINITE;
    CADRE_CLEANUP(batch_builder_clear) struct batch_builder builder = {.rows = 0};
    while (builder.rows < batch->size) {
        cadre_element element = {0};
        cadre_status status = iterator_next(self->input, &element, ids, error);
        if (status == CADRE_OUT_OF_RANGE && builder.rows > 0 && !batch->drop_remainder) {
            break;
        }
        CADRE_TRY(status);
        status = batch_builder_add(&builder, &element, 1, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "%s", self->data->ops->name);
        }
        if (builder.rows == 1 && endless) {
            CADRE_TRY(check_memory(self->data, &builder.read.elements[0], batch->size, error));
        }
    }
    return uneven_batch_stack(self->data, &builder.read, ret_element, error);
}

static const struct iterator_ops uneven_iterator_ops = {
    .next = uneven_next,
    .save = iterator_save_nothing,
    .restore = iterator_restore_nothing,
};

cadre_status uneven_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(cadre_iterator), &uneven_iterator_ops, self, pass, pass, ret_iterator, error);
}

/* --- what it is --- */

int64_t uneven_cardinality(const cadre_dataset *self)
{
    const struct uneven_batch *batch = batch_of(self);
    int64_t elements = dataset_cardinality(self->input);
    bool partial = elements > 0 && elements % batch->size != 0 && !batch->drop_remainder;
    return elements <= 0 ? elements : elements / batch->size + (partial ? 1 : 0);
}

int64_t uneven_size(const cadre_dataset *self)
{
    return batch_of(self)->size;
}
