/* SPDX-License-Identifier: Apache-2.0
 * The transformation that stacks consecutive elements. Some rows of a batch can be had without the
 * others, which is what lets each worker read its own samples only. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/batching/batch_builder.h"
#include "worker/library/device/machine_memory.h"
#include "worker/library/input/node/node.h"

#define POSITIONS_AT_ONCE 256

/* Rows that are asked for at once. */
#define ROWS_AT_ONCE 65536

struct batch_dataset {
    cadre_dataset base;
    int64_t size;
    bool drop_remainder;
    _Atomic uint64_t row_bytes; /* of an element that was read by index; 0: none was */
};

/* A batch that no memory can hold is refused before it has taken all there is. */
static cadre_status check_size(int64_t count, uint64_t row_bytes, struct cadre_error *error)
{
    uint64_t total = 0;
    uint64_t memory = machine_memory();
    if (__builtin_mul_overflow((uint64_t)count, row_bytes, &total) || total > memory) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "batch: %" PRId64 " elements of about %" PRIu64
            " bytes do not fit into this machine's memory of %" PRIu64
            " bytes; give a smaller batch size",
            count, row_bytes, memory);
    }
    return CADRE_OK;
}

static int64_t batch_rows(const cadre_dataset *self, struct element_position position)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    if (elements < 0) {
        return batch->size;
    }
    int64_t left = elements - (int64_t)position.index * batch->size;
    return left < batch->size ? left : batch->size;
}

/* Elements [first, first + count) of the input, stacked. */
static cadre_status batch_gather(cadre_dataset *input, struct element_position first, size_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    size_t bytes = count * sizeof(struct element_position);
    struct element_position *positions = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
    if (positions == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "batch: no memory for %zu places", count);
    }
    for (size_t i = 0; i < count; i++) {
        positions[i] = (struct element_position){.index = first.index + i, .epoch = first.epoch};
    }
    cadre_status status = dataset_gather(input, positions, count, ret_element, ids, error);
    tensor_memory_give(TENSOR_MEMORY_HOST, positions, bytes);
    return status;
}

/* Of the first batch that is ever read one element comes alone: it tells what a batch takes. */
static cadre_status read_first(struct batch_dataset *batch, struct element_position from,
    int64_t count, struct batch_builder *builder, struct id_list *ids, struct cadre_error *error)
{
    cadre_element first = {0};
    CADRE_TRY(batch_gather(batch->base.input, from, 1, &first, ids, error));
    uint64_t row_bytes = element_memory_bytes(&first);
    CADRE_TRY(batch_builder_add(builder, &first, 1, error));
    CADRE_TRY(check_size(count, row_bytes, error));
    atomic_store_explicit(&batch->row_bytes, row_bytes, memory_order_relaxed);
    return CADRE_OK;
}

static cadre_status read_at(struct batch_dataset *batch, struct element_position from,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    uint64_t row_bytes = atomic_load_explicit(&batch->row_bytes, memory_order_relaxed);
    CADRE_CLEANUP(batch_builder_clear) struct batch_builder builder = {0};
    if (row_bytes == 0) {
        CADRE_TRY(read_first(batch, from, count, &builder, ids, error));
        from.index++;
    } else {
        CADRE_TRY(check_size(count, row_bytes, error));
        if (count <= ROWS_AT_ONCE) {
            return batch_gather(batch->base.input, from, (size_t)count, ret_element, ids, error);
        }
    }
    while (builder.rows < count) {
        cadre_element part = {0};
        int64_t left = count - builder.rows;
        size_t rows = (size_t)(left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        CADRE_TRY(batch_gather(batch->base.input, from, rows, &part, ids, error));
        CADRE_TRY(batch_builder_add(&builder, &part, rows, error));
        from.index += rows;
    }
    cadre_status status = batch_builder_finish(&builder, ret_element, error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "batch");
}

static cadre_status batch_at_rows(cadre_dataset *self, struct element_position position,
    int64_t first, int64_t count, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    struct batch_dataset *batch = (struct batch_dataset *)self;
    struct element_position from = {.epoch = position.epoch};
    from.index = position.index * (uint64_t)batch->size + (uint64_t)first;
    return read_at(batch, from, count, ret_element, ids, error);
}

static cadre_status batch_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    return batch_at_rows(self, position, 0, batch_rows(self, position), ret_element, ids, error);
}

static cadre_status batch_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self;
    for (size_t k = 0; k < count; k++) {
        struct element_position from[POSITIONS_AT_ONCE];
        size_t filled = 0;
        int64_t rows = batch_rows(self, positions[k]);
        for (int64_t i = 0; i < rows; i++) {
            from[filled++] = (struct element_position){
                .index = positions[k].index * (uint64_t)batch->size + (uint64_t)i,
                .epoch = positions[k].epoch,
            };
            if (filled == POSITIONS_AT_ONCE || i + 1 == rows) {
                CADRE_TRY(dataset_ids_at(self->input, from, filled, ids, error));
                filled = 0;
            }
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
    CADRE_TRY(element_spec_check_plain(input, "batch", error));
    *ret_spec = (cadre_element_spec){.count = input->count, .names = input->names};
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

/* --- in order --- */

enum reading { READING_UNDECIDED, READING_ROWS, READING_EACH };

struct batch_iterator {
    cadre_iterator base;
    enum reading reading;
    bool checked; /* that a batch fits into memory */
    struct batch_builder builder;
};

/* As many elements as a batch may really have; -1: not known. */
static int64_t elements_to_come(const cadre_dataset *self)
{
    int64_t size = ((const struct batch_dataset *)self)->size;
    int64_t elements = dataset_cardinality(self->input);
    if (elements == CADRE_CARDINALITY_INFINITE) {
        return size;
    }
    return elements < 0 ? -1 : elements < size ? elements : size;
}

static cadre_status check_first(
    struct batch_iterator *iterator, uint64_t row_bytes, struct cadre_error *error)
{
    int64_t count = elements_to_come(iterator->base.data);
    iterator->checked = true;
    return count < 0 ? CADRE_OK : check_size(count, row_bytes, error);
}

/* Rows that are alike are taken stacked, where the input has them so. */
static cadre_status batch_decide(struct batch_iterator *iterator, struct cadre_error *error)
{
    cadre_element_spec spec;
    struct cadre_error unsaid = {0}; /* reading meets it again */
    iterator->reading = READING_EACH;
    if (iterator->base.input->ops->next_rows == NULL ||
        dataset_spec(iterator->base.data->input, &spec, &unsaid) != CADRE_OK ||
        !element_spec_is_uniform(&spec)) {
        return CADRE_OK;
    }
    uint64_t row_bytes = 0;
    for (uint32_t i = 0; i < spec.count; i++) {
        int64_t count = 0;
        size_t bytes = 0;
        CADRE_TRY(tensor_shape_check(spec.tensors[i].dtype, spec.tensors[i].rank,
            spec.tensors[i].dims, &count, &bytes, error));
        row_bytes += bytes;
    }
    iterator->reading = READING_ROWS;
    return check_first(iterator, row_bytes, error);
}

/* Reads up to a whole batch; OUT_OF_RANGE when the input ends before. */
static cadre_status read_rows(
    struct batch_iterator *iterator, int64_t size, struct id_list *ids, struct cadre_error *error)
{
    struct batch_builder *builder = &iterator->builder;
    while (builder->rows < size) {
        cadre_element part = {0};
        size_t got = 0;
        int64_t left = size - builder->rows;
        size_t wanted = (size_t)(left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        CADRE_TRY(iterator_next_rows(iterator->base.input, wanted, &part, &got, ids, error));
        CADRE_TRY(batch_builder_add(builder, &part, got, error));
    }
    return CADRE_OK;
}

/* The same element by element; they are not stacked yet. */
static cadre_status read_each(
    struct batch_iterator *iterator, int64_t size, struct id_list *ids, struct cadre_error *error)
{
    struct batch_builder *builder = &iterator->builder;
    while (builder->rows < size) {
        cadre_element element = {0};
        CADRE_TRY(iterator_next(iterator->base.input, &element, ids, error));
        uint64_t bytes = element_memory_bytes(&element);
        CADRE_TRY(batch_builder_add(builder, &element, 1, error));
        if (!iterator->checked) {
            CADRE_TRY(check_first(iterator, bytes, error));
        }
    }
    return CADRE_OK;
}

static cadre_status batch_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct batch_iterator *iterator = (struct batch_iterator *)self;
    const struct batch_dataset *batch = (const struct batch_dataset *)self->data;
    if (iterator->reading == READING_UNDECIDED) {
        CADRE_TRY(batch_decide(iterator, error));
    }
    bool rows = iterator->reading == READING_ROWS;
    size_t ids_before = ids != NULL ? ids->count : 0;
    batch_builder_reset(&iterator->builder);
    cadre_status status = rows ? read_rows(iterator, batch->size, ids, error)
                               : read_each(iterator, batch->size, ids, error);
    if (status == CADRE_OUT_OF_RANGE && iterator->builder.rows > 0 && !batch->drop_remainder) {
        status = CADRE_OK;
    }
    if (status == CADRE_OK) {
        status = rows ? batch_builder_finish(&iterator->builder, ret_element, error)
                      : element_stack_finish(&iterator->builder.read, ret_element, error);
        status = status == CADRE_OK ? status : cadre_error_wrap(error, status, "batch");
    }
    batch_builder_reset(&iterator->builder);
    if (status != CADRE_OK && ids != NULL) {
        ids->count = ids_before; /* elements that were too few for a batch do not count */
    }
    return status;
}

static cadre_status batch_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    const struct batch_dataset *batch = (const struct batch_dataset *)self->data;
    uint64_t size = (uint64_t)batch->size;
    uint64_t elements = 0;
    uint64_t skipped = 0;
    if (__builtin_mul_overflow(count, size, &elements)) {
        elements = UINT64_MAX / size * size;
    }
    CADRE_TRY(iterator_skip(self->input, elements, &skipped, error));
    *ret_skipped = skipped / size + (skipped % size != 0 && !batch->drop_remainder ? 1 : 0);
    return CADRE_OK;
}

/* Between two batches nothing is kept. */
static cadre_status batch_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    (void)self;
    (void)writer;
    (void)error;
    return CADRE_OK;
}

static cadre_status batch_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    (void)self;
    (void)reader;
    (void)error;
    return CADRE_OK;
}

static void batch_destroy(cadre_iterator *self)
{
    batch_builder_clear(&((struct batch_iterator *)self)->builder);
}

static const struct iterator_ops batch_iterator_ops = {
    .next = batch_next,
    .skip = batch_skip,
    .save = batch_save,
    .restore = batch_restore,
    .destroy = batch_destroy,
};

static cadre_status batch_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(struct batch_iterator), &batch_iterator_ops, self, pass, pass, ret_iterator, error);
}

/* --- the node --- */

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
