/* SPDX-License-Identifier: Apache-2.0
 * The split rule, shared out (DATA) or per worker (OFF), and the case of a single replica. */
#include "worker/input/rule.h"

#include "common/base/fault.h"

static int64_t batches(struct distributed_input *input, uint64_t epoch)
{
    (void)epoch;
    return dataset_cardinality(input->data);
}

static bool beyond(const struct distributed_input *input, uint64_t index)
{
    int64_t cardinality = dataset_cardinality(input->data);
    return cardinality >= 0 && index >= (uint64_t)cardinality;
}

static cadre_status whole_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct place place = {.index = batch->step, .epoch = batch->epoch};
    CADRE_TRY(batch_reader_hold(&input->reader, place, error));
    const struct batch_reader *reader = &input->reader;
    element_share(&reader->element, &batch->elements[0]);
    batch->global_rows = (uint64_t)batch_reader_held_rows(reader);
    return id_list_add_range(&input->ids, &reader->ids, 0, reader->ids.count, error);
}

/* Replica r of worker w gets piece w + r * workers: the pieces are dealt to the workers in turn. */
static cadre_status data_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct place place = {.index = batch->step, .epoch = batch->epoch};
    uint64_t pieces = (uint64_t)input->workers * input->replicas;
    if (beyond(input, place.index)) {
        return iterator_end(error);
    }
    for (uint32_t r = 0; r < input->replicas; r++) {
        uint64_t piece = input->worker_index + (uint64_t)r * input->workers;
        if (fault_point("input.piece")) {
            piece = (piece + 1) % pieces; /* the fault that the digests are there for */
        }
        CADRE_TRY(batch_reader_piece(&input->reader, place, pieces, piece, &input->spec,
            &batch->elements[r], &input->ids, error));
    }
    /* Known without reading, or else the batch was read and is held. */
    batch->global_rows = (uint64_t)(input->reader.holds ? batch_reader_held_rows(&input->reader)
                                                        : dataset_rows(input->data, place));
    return CADRE_OK;
}

static int64_t own_steps(struct distributed_input *input, uint64_t epoch)
{
    (void)epoch;
    int64_t steps = dataset_cardinality(input->data);
    if (steps > 0 && __builtin_mul_overflow(steps, (int64_t)input->workers, &steps)) {
        return CADRE_CARDINALITY_INFINITE;
    }
    return steps;
}

/* A worker takes all the pieces of each batch itself, so a batch lasts as many steps as there are
 * workers, and all of them hold the same rows. */
static cadre_status own_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct place place = {.index = batch->step / input->workers, .epoch = batch->epoch};
    uint64_t pieces = (uint64_t)input->workers * input->replicas;
    uint64_t first = batch->step % input->workers * input->replicas;
    uint64_t rows = 0;
    if (beyond(input, place.index)) {
        return iterator_end(error);
    }
    for (uint32_t r = 0; r < input->replicas; r++) {
        CADRE_TRY(batch_reader_piece(&input->reader, place, pieces, first + r, &input->spec,
            &batch->elements[r], &input->ids, error));
        rows += (uint64_t)cadre_tensor_rows(batch->elements[r].tensors[0]);
    }
    batch->global_rows = rows * input->workers;
    return CADRE_OK;
}

const struct input_rule rule_whole = {.steps = batches, .fill = whole_fill, .claims_samples = true};
const struct input_rule rule_split_data = {
    .steps = batches, .fill = data_fill, .claims_samples = true};
const struct input_rule rule_split_own = {.steps = own_steps, .fill = own_fill};
