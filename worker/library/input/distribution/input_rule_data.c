/* SPDX-License-Identifier: Apache-2.0
 * DATA: a step is an element of the dataset. Its pieces are dealt to the workers in turn; with one
 * replica it is the element as it is. */
#include "common/base/fault.h"
#include "worker/library/input/distribution/distributed_input_internal.h"

static int64_t data_steps(struct distributed_input *input, uint64_t epoch)
{
    (void)epoch;
    return dataset_cardinality(input->data);
}

static bool input_rule_data_beyond(const struct distributed_input *input, uint64_t index)
{
    int64_t cardinality = dataset_cardinality(input->data);
    return cardinality >= 0 && index >= (uint64_t)cardinality;
}

static cadre_status fill_whole(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct element_position position = {.index = batch->step, .epoch = batch->epoch};
    CADRE_TRY(batch_reader_hold(&input->reader, position, error));
    const struct batch_reader *reader = &input->reader;
    element_reference(&reader->element, &batch->elements[0]);
    batch->global_rows = (uint64_t)batch_reader_held_rows(reader);
    batch->own_rows = batch->global_rows;
    batch->present = 1;
    return id_list_add_range(&input->ids, &reader->ids, 0, reader->ids.count, error);
}

/* Replica r of worker w gets piece w + r * workers. */
static cadre_status data_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct element_position position = {.index = batch->step, .epoch = batch->epoch};
    uint64_t pieces = (uint64_t)input->workers * input->replicas;
    if (pieces == 1) {
        return fill_whole(input, batch, error);
    }
    if (input_rule_data_beyond(input, position.index)) {
        return iterator_end(error);
    }
    for (uint32_t r = 0; r < input->replicas; r++) {
        uint64_t piece = input->worker_index + (uint64_t)r * input->workers;
        if (fault_point("input.piece")) {
            piece = (piece + 1) % pieces; /* the fault that the digests are there for */
        }
        CADRE_TRY(batch_reader_piece(&input->reader, position, pieces, piece, &input->spec,
            &batch->elements[r], &input->ids, error));
        batch->own_rows += (uint64_t)element_first_rows(&batch->elements[r]);
    }
    batch->present = input->replicas;
    /* Known without reading, or else the batch was read and is held. (One that is held may be of an
     * earlier step, where only some batches have to be read to know their rows.) */
    int64_t rows =
        input->data->indexable ? dataset_rows(input->data, position) : CADRE_CARDINALITY_UNKNOWN;
    rows = rows == CADRE_CARDINALITY_UNKNOWN ? batch_reader_held_rows(&input->reader) : rows;
    batch->global_rows = (uint64_t)rows;
    return CADRE_OK;
}

static struct element_stream *data_streams(struct distributed_input *input, uint64_t epoch,
    uint64_t step, uint32_t *ret_count, uint64_t *ret_index)
{
    (void)epoch;
    *ret_count = input->data->indexable ? 0 : 1;
    *ret_index = step;
    return &input->reader.stream;
}

const struct input_rule input_rule_data = {
    .steps = data_steps, .fill = data_fill, .streams = data_streams};
