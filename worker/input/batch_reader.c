/* SPDX-License-Identifier: Apache-2.0
 * Reading global batches and rows of them; see batch_reader.h. */
#include "worker/input/batch_reader.h"

#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/device/tensor.h"

static void drop_held(struct batch_reader *reader)
{
    cadre_element_clear(&reader->element);
    reader->ids.count = 0;
    reader->holds = false;
}

void batch_reader_finish(struct batch_reader *reader)
{
    drop_held(reader);
    id_list_clear(&reader->ids);
    cadre_iterator_free(reader->iterator);
    *reader = (struct batch_reader){0};
}

int64_t batch_reader_rows(struct batch_reader *reader, struct place place)
{
    int64_t rows = CADRE_CARDINALITY_UNKNOWN;
    if (reader->data->indexable) {
        rows = dataset_rows(reader->data, place);
    }
    if (rows == CADRE_CARDINALITY_UNKNOWN && reader->static_rows != CADRE_DIMENSION_ANY) {
        rows = reader->static_rows;
    }
    return rows;
}

/* Moves the iterator to `place`, from the start of its epoch if it has passed it. */
static cadre_status seek(struct batch_reader *reader, struct place place, struct cadre_error *error)
{
    if (reader->iterator == NULL || reader->next.epoch != place.epoch ||
        reader->next.index > place.index || reader->iterator->stopped.code != CADRE_OK) {
        cadre_iterator_free(reader->iterator);
        reader->iterator = NULL;
        CADRE_TRY(dataset_iterate(reader->data,
            &(struct pass){.epoch = place.epoch, .ordered = true}, &reader->iterator, error));
        reader->next = (struct place){.epoch = place.epoch};
    }
    while (reader->next.index < place.index) {
        cadre_element passed = {0};
        CADRE_TRY(iterator_next(reader->iterator, &passed, NULL, error));
        cadre_element_clear(&passed);
        reader->next.index++;
    }
    return CADRE_OK;
}

cadre_status batch_reader_hold(
    struct batch_reader *reader, struct place place, struct cadre_error *error)
{
    if (reader->holds && reader->held.index == place.index && reader->held.epoch == place.epoch) {
        return CADRE_OK;
    }
    drop_held(reader);
    if (reader->data->indexable) {
        int64_t cardinality = dataset_cardinality(reader->data);
        if (cardinality >= 0 && place.index >= (uint64_t)cardinality) {
            return iterator_end(error);
        }
        CADRE_TRY(dataset_at(reader->data, place, &reader->element, &reader->ids, error));
    } else {
        CADRE_TRY(seek(reader, place, error));
        CADRE_TRY(iterator_next(reader->iterator, &reader->element, &reader->ids, error));
        reader->next.index++;
    }
    reader->held = place;
    reader->holds = true;
    return CADRE_OK;
}

int64_t batch_reader_held_rows(const struct batch_reader *reader)
{
    CADRE_ASSERT(reader->holds);
    return cadre_tensor_rows(reader->element.tensors[0]);
}

/* True when rows of the batch can be read without the rest. */
static bool reads_rows(struct batch_reader *reader, struct place place)
{
    return reader->data->indexable &&
           dataset_rows(reader->data, place) != CADRE_CARDINALITY_UNKNOWN;
}

static cadre_status cut_held(const struct batch_reader *reader, uint64_t pieces, uint64_t piece,
    cadre_element *ret_element, struct cadre_error *error)
{
    for (uint32_t i = 0; i < reader->element.count; i++) {
        cadre_tensor *whole = reader->element.tensors[i];
        if (cadre_tensor_rank(whole) == 0) {
            cadre_element_clear(ret_element);
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " is a scalar, which cannot be divided among %" PRIu64
                " replicas; call cadre_dataset_batch first",
                i, pieces);
        }
        struct row_range range = split_piece(cadre_tensor_rows(whole), pieces, piece);
        cadre_status status =
            tensor_view_rows(whole, range.first, range.count, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

cadre_status batch_reader_piece(struct batch_reader *reader, struct place place, uint64_t pieces,
    uint64_t piece, const cadre_element_spec *spec, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (!reads_rows(reader, place)) {
        CADRE_TRY(batch_reader_hold(reader, place, error));
        struct row_range own = split_piece((int64_t)reader->ids.count, pieces, piece);
        CADRE_TRY(
            id_list_add_range(ids, &reader->ids, (size_t)own.first, (size_t)own.count, error));
        return cut_held(reader, pieces, piece, ret_element, error);
    }
    struct row_range range = split_piece(dataset_rows(reader->data, place), pieces, piece);
    if (range.count == 0) {
        return element_make_empty(spec, ret_element, error);
    }
    return dataset_at_rows(reader->data, place, range.first, range.count, ret_element, ids, error);
}

cadre_status batch_reader_part(struct batch_reader *reader, struct place place,
    struct row_range range, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (reads_rows(reader, place)) {
        return dataset_at_rows(
            reader->data, place, range.first, range.count, ret_element, ids, error);
    }
    CADRE_TRY(batch_reader_hold(reader, place, error));
    for (uint32_t i = 0; i < reader->element.count; i++) {
        cadre_status status = tensor_view_rows(
            reader->element.tensors[i], range.first, range.count, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return cadre_error_wrap(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " of batch %" PRIu64 " differs from the shape its dataset has",
                i, place.index);
        }
        ret_element->count = i + 1;
    }
    if (reader->ids.count == (size_t)batch_reader_held_rows(reader)) {
        return id_list_add_range(
            ids, &reader->ids, (size_t)range.first, (size_t)range.count, error);
    }
    /* Rows that are not samples: the batch's ids go with its first row. */
    return id_list_add_range(ids, &reader->ids, 0, range.first == 0 ? reader->ids.count : 0, error);
}
