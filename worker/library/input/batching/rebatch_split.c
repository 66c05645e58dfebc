/* SPDX-License-Identifier: Apache-2.0
 * The split rule as a transformation: element j is piece j mod k of batch j / k. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/input/batching/element_slice.h"
#include "worker/library/input/batching/rebatch_dataset.h"

struct split_dataset {
    cadre_dataset base;
    uint64_t pieces;
};

struct split_iterator {
    cadre_iterator base;
    uint64_t given; /* pieces of the batch that is held; 0: none is held */
    cadre_element held;
    struct id_list ids;
};

static uint64_t pieces_of(const cadre_dataset *self)
{
    return ((const struct split_dataset *)self)->pieces;
}

/* --- by index --- */

/* Of a batch whose rows only reading tells. */
static cadre_status cut_whole(cadre_dataset *self, struct element_position position, uint64_t piece,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    cadre_element whole = {0};
    struct id_list all = {0};
    cadre_status status = dataset_at(self->input, position, &whole, &all, error);
    if (status == CADRE_OK) {
        status = id_list_slice_piece(&all, pieces_of(self), piece, ids, error);
    }
    if (status == CADRE_OK) {
        status = element_slice_piece(&whole, pieces_of(self), piece, ret_element, error);
    }
    cadre_element_release(&whole);
    id_list_clear(&all);
    return status;
}

static cadre_status split_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    uint64_t pieces = pieces_of(self);
    uint64_t piece = position.index % pieces;
    position.index /= pieces;
    int64_t rows = dataset_rows(self->input, position);
    if (rows == CADRE_CARDINALITY_UNKNOWN) {
        return cut_whole(self, position, piece, ret_element, ids, error);
    }
    struct row_range range = rebatch_split_piece(rows, pieces, piece);
    if (range.count == 0) {
        cadre_element_spec spec = {0};
        CADRE_TRY(dataset_spec(self->input, &spec, error));
        return element_make_empty(&spec, ret_element, error);
    }
    return dataset_at_rows(
        self->input, position, range.first, range.count, ret_element, ids, error);
}

static cadre_status split_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    uint64_t pieces = pieces_of(self);
    struct id_list all = {0};
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        struct element_position batch = {
            .index = positions[i].index / pieces, .epoch = positions[i].epoch};
        all.count = 0;
        status = dataset_ids_at(self->input, &batch, 1, &all, error);
        if (status == CADRE_OK) {
            status = id_list_slice_piece(&all, pieces, positions[i].index % pieces, ids, error);
        }
    }
    id_list_clear(&all);
    return status;
}

/* --- in order --- */

static void drop_held(struct split_iterator *iterator)
{
    cadre_element_release(&iterator->held);
    iterator->ids.count = 0;
    iterator->given = 0;
}

static cadre_status split_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct split_iterator *iterator = (struct split_iterator *)self;
    uint64_t pieces = pieces_of(self->data);
    if (iterator->given == 0) {
        CADRE_TRY(iterator_next(self->input, &iterator->held, &iterator->ids, error));
    }
    CADRE_TRY(id_list_slice_piece(&iterator->ids, pieces, iterator->given, ids, error));
    CADRE_TRY(element_slice_piece(&iterator->held, pieces, iterator->given, ret_element, error));
    iterator->given++;
    if (iterator->given == pieces) {
        drop_held(iterator);
    }
    return CADRE_OK;
}

static cadre_status split_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct split_iterator *iterator = (struct split_iterator *)self;
    uint64_t pieces = pieces_of(self->data);
    uint64_t batches = 0;
    *ret_skipped = 0;
    if (iterator->given > 0) {
        uint64_t left = pieces - iterator->given;
        if (count < left) {
            iterator->given += count;
            *ret_skipped = count;
            return CADRE_OK;
        }
        drop_held(iterator);
        *ret_skipped = left;
    }
    uint64_t whole = (count - *ret_skipped) / pieces;
    CADRE_TRY(iterator_skip(self->input, whole, &batches, error));
    *ret_skipped += batches * pieces;
    if (batches < whole || *ret_skipped == count) {
        return CADRE_OK;
    }
    cadre_status status = iterator_next(self->input, &iterator->held, &iterator->ids, error);
    if (status == CADRE_OUT_OF_RANGE) {
        return CADRE_OK;
    }
    CADRE_TRY(status);
    iterator->given = count - *ret_skipped;
    *ret_skipped = count;
    return CADRE_OK;
}

static cadre_status split_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    struct split_iterator *iterator = (struct split_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->given, error));
    if (iterator->given == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_write_element(writer, &iterator->held, error));
    return iterator_state_write_ids(writer, &iterator->ids, error);
}

static cadre_status split_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct split_iterator *iterator = (struct split_iterator *)self;
    uint64_t given = 0;
    CADRE_TRY(iterator_state_read_number(reader, &given, error));
    if (given >= pieces_of(self->data)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is piece %" PRIu64 " of a batch of %" PRIu64 " pieces", given,
            pieces_of(self->data));
    }
    if (given > 0) {
        CADRE_TRY(iterator_state_read_element(reader, &iterator->held, error));
        CADRE_TRY(iterator_state_read_ids(reader, &iterator->ids, error));
    }
    iterator->given = given;
    return CADRE_OK;
}

static void split_destroy(cadre_iterator *self)
{
    struct split_iterator *iterator = (struct split_iterator *)self;
    cadre_element_release(&iterator->held);
    id_list_clear(&iterator->ids);
}

static const struct iterator_ops split_iterator_ops = {
    .next = split_next,
    .skip = split_skip,
    .save = split_save,
    .restore = split_restore,
    .destroy = split_destroy,
};

static cadre_status split_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(struct split_iterator), &split_iterator_ops, self, pass, pass, ret_iterator, error);
}

/* --- the node --- */

static cadre_status split_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    int64_t pieces = (int64_t)pieces_of(self);
    CADRE_TRY(element_spec_check_divisible(&inputs[0], pieces_of(self), error));
    *ret_spec = inputs[0];
    element_spec_split(ret_spec, (uint64_t)pieces);
    return CADRE_OK;
}

static int64_t split_cardinality(const cadre_dataset *self)
{
    int64_t batches = dataset_cardinality(self->input);
    int64_t pieces = 0;
    if (batches < 0) {
        return batches;
    }
    return __builtin_mul_overflow(batches, (int64_t)pieces_of(self), &pieces)
               ? CADRE_CARDINALITY_INFINITE
               : pieces;
}

static cadre_dataset *split_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return dataset_rebatch_split(inputs[0], pieces_of(self));
}

static void split_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "each batch in %" PRIu64 " pieces", pieces_of(self));
}

static const struct dataset_ops split_ops = {
    .name = "rebatch",
    .rebuild = split_rebuild,
    .describe = split_describe,
    .spec = split_spec,
    .cardinality = split_cardinality,
    .at = split_at,
    .ids_at = split_ids_at,
    .iterate = split_iterate,
};

static bool maker_tells_rows(const cadre_dataset *data)
{
    while (data->ops->locate != NULL) {
        data = data->input;
    }
    return data->ops->rows != NULL;
}

cadre_dataset *dataset_rebatch_split(cadre_dataset *data, uint64_t pieces)
{
    struct cadre_error error = {0};
    cadre_element_spec spec = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (pieces < 1 || pieces > INT64_MAX) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "rebatch: %" PRIu64 " pieces of each batch; give at least 1", pieces);
        return dataset_failed(data, &error);
    }
    if (dataset_spec(data, &spec, &error) == CADRE_OK) {
        element_spec_check_divisible(&spec, pieces, &error);
    }
    if (error.code != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct split_dataset *split = dataset_new(sizeof *split, &split_ops, data);
    if (split == NULL) {
        return NULL;
    }
    split->pieces = pieces;
    /* Where only reading tells how many rows a batch has, each would be read for each piece. */
    split->base.indexable = data->indexable && maker_tells_rows(data);
    return &split->base;
}
