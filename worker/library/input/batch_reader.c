/* SPDX-License-Identifier: Apache-2.0
 * Reading global batches and rows of them; see batch_reader.h. */
#include "worker/library/input/batch_reader.h"

#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

static void drop_held(struct batch_reader *reader)
{
    cadre_element_release(&reader->element);
    reader->ids.count = 0;
    reader->holds = false;
}

void batch_reader_finish(struct batch_reader *reader)
{
    drop_held(reader);
    id_list_clear(&reader->ids);
    element_stream_finish(&reader->stream);
    *reader = (struct batch_reader){0};
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
        CADRE_TRY(
            element_stream_read(&reader->stream, place, &reader->element, &reader->ids, error));
    }
    reader->held = place;
    reader->holds = true;
    return CADRE_OK;
}

int64_t batch_reader_held_rows(const struct batch_reader *reader)
{
    CADRE_ASSERT(reader->holds);
    return element_first_rows(&reader->element);
}

/* True when rows of the batch can be read without the rest. */
static bool reads_rows(struct batch_reader *reader, struct place place)
{
    return reader->data->indexable &&
           dataset_rows(reader->data, place) != CADRE_CARDINALITY_UNKNOWN;
}

cadre_status batch_reader_piece(struct batch_reader *reader, struct place place, uint64_t pieces,
    uint64_t piece, const cadre_element_spec *spec, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (!reads_rows(reader, place)) {
        CADRE_TRY(batch_reader_hold(reader, place, error));
        CADRE_TRY(ids_cut_piece(&reader->ids, pieces, piece, ids, error));
        return element_cut_piece(&reader->element, pieces, piece, ret_element, error);
    }
    struct row_range range = split_piece(dataset_rows(reader->data, place), pieces, piece);
    if (range.count == 0) {
        return element_make_empty(spec, ret_element, error);
    }
    return dataset_at_rows(reader->data, place, range.first, range.count, ret_element, ids, error);
}
