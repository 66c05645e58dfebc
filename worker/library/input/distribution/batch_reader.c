/* SPDX-License-Identifier: Apache-2.0
 * Reading global batches and rows of them; see batch_reader.h. */
#include "worker/library/input/distribution/batch_reader.h"

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
    struct batch_reader *reader, struct element_position position, struct cadre_error *error)
{
    if (reader->holds && reader->held.index == position.index &&
        reader->held.epoch == position.epoch) {
        return CADRE_OK;
    }
    drop_held(reader);
    if (reader->data->indexable) {
        int64_t cardinality = dataset_cardinality(reader->data);
        if (cardinality >= 0 && position.index >= (uint64_t)cardinality) {
            return iterator_end(error);
        }
        CADRE_TRY(dataset_at(reader->data, position, &reader->element, &reader->ids, error));
    } else {
        CADRE_TRY(
            element_stream_read(&reader->stream, position, &reader->element, &reader->ids, error));
    }
    reader->held = position;
    reader->holds = true;
    return CADRE_OK;
}

int64_t batch_reader_held_rows(const struct batch_reader *reader)
{
    CADRE_ASSERT(reader->holds);
    return element_first_rows(&reader->element);
}

/* True when rows of the batch can be read without the rest. */
static bool reads_rows(struct batch_reader *reader, struct element_position position)
{
    return reader->data->indexable &&
           dataset_rows(reader->data, position) != CADRE_CARDINALITY_UNKNOWN;
}

cadre_status batch_reader_piece(struct batch_reader *reader, struct element_position position,
    uint64_t pieces, uint64_t piece, const cadre_element_spec *spec, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (!reads_rows(reader, position)) {
        CADRE_TRY(batch_reader_hold(reader, position, error));
        CADRE_TRY(id_list_slice_piece(&reader->ids, pieces, piece, ids, error));
        return element_slice_piece(&reader->element, pieces, piece, ret_element, error);
    }
    struct row_range range =
        rebatch_split_piece(dataset_rows(reader->data, position), pieces, piece);
    if (range.count == 0) {
        return element_make_empty(spec, ret_element, error);
    }
    return dataset_at_rows(
        reader->data, position, range.first, range.count, ret_element, ids, error);
}
