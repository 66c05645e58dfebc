/* SPDX-License-Identifier: Apache-2.0
 * The sizes rule: each worker has all rows in one stream and cuts it by its list of sizes. Workers
 * hold copies of the same rows; only the sizes are shared out. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/device/tensor.h"
#include "worker/input/rule.h"

static struct size_list list_of(const struct distributed_input *input, uint32_t worker)
{
    return size_list_make(input->batch_rows, input->workers, input->replicas, worker);
}

/* Adds up the rows of an epoch: without reading where the batching is known, else by reading all.
 */
static cadre_status count_rows(
    struct distributed_input *input, uint64_t epoch, int64_t *ret_total, struct cadre_error *error)
{
    int64_t cardinality = dataset_cardinality(input->data);
    int64_t total = 0;
    *ret_total = INT64_MAX;
    if (cardinality == CADRE_CARDINALITY_INFINITE) {
        return CADRE_OK;
    }
    struct place place = {.epoch = epoch};
    for (;; place.index++) {
        if (cardinality >= 0 && place.index >= (uint64_t)cardinality) {
            break;
        }
        int64_t rows = batch_reader_rows(&input->reader, place);
        if (rows == CADRE_CARDINALITY_UNKNOWN) {
            cadre_status status = batch_reader_hold(&input->reader, place, error);
            if (status == CADRE_OUT_OF_RANGE) {
                break;
            }
            CADRE_TRY(status);
            rows = batch_reader_held_rows(&input->reader);
        }
        if (__builtin_add_overflow(total, rows, &total)) {
            return CADRE_OK;
        }
    }
    *ret_total = total;
    return CADRE_OK;
}

/* Steps of `total` rows: until no worker has a piece left. */
static uint64_t steps_of(const struct distributed_input *input, int64_t total)
{
    uint64_t most = 0;
    if (total == INT64_MAX) {
        return UINT64_MAX;
    }
    for (uint32_t worker = 0; worker < input->workers; worker++) {
        struct size_list list = list_of(input, worker);
        uint64_t pieces = size_list_pieces(&list, total);
        uint64_t steps = pieces / input->replicas + (pieces % input->replicas != 0 ? 1 : 0);
        most = steps > most ? steps : most;
    }
    return most;
}

static cadre_status begin_epoch(
    struct distributed_input *input, uint64_t epoch, struct cadre_error *error)
{
    struct row_stream *stream = &input->stream;
    if (stream->counted && stream->at.epoch == epoch) {
        return CADRE_OK;
    }
    stream->counted = false;
    CADRE_TRY(count_rows(input, epoch, &stream->total, error));
    stream->steps = steps_of(input, stream->total);
    stream->at = (struct place){.epoch = epoch};
    stream->first_row = 0;
    stream->counted = true;
    return CADRE_OK;
}

static cadre_status rows_at(struct distributed_input *input, struct place place, int64_t *ret_rows,
    struct cadre_error *error)
{
    *ret_rows = batch_reader_rows(&input->reader, place);
    if (*ret_rows == CADRE_CARDINALITY_UNKNOWN) {
        CADRE_TRY(batch_reader_hold(&input->reader, place, error));
        *ret_rows = batch_reader_held_rows(&input->reader);
    }
    return CADRE_OK;
}

/* Parts of consecutive batches that make up one piece. */
struct parts {
    cadre_element *elements;
    size_t count;
};

static void parts_clear(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        cadre_element_clear(&parts->elements[i]);
    }
    free(parts->elements);
}

static cadre_status parts_join(
    const struct parts *parts, cadre_element *ret_element, struct cadre_error *error)
{
    uint32_t components = parts->elements[0].count;
    if (parts->count == 1) {
        element_share(&parts->elements[0], ret_element);
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(parts->count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to join %zu batches", parts->count);
    }
    for (uint32_t component = 0; component < components; component++) {
        for (size_t i = 0; i < parts->count; i++) {
            tensors[i] = parts->elements[i].tensors[component];
        }
        cadre_status status =
            tensor_concat_rows(tensors, parts->count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return status;
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

/* Reads rows [range.first, range.first + range.count) of the stream, count >= 1, inside the total.
 */
static cadre_status read_rows(struct distributed_input *input, struct row_range range,
    cadre_element *ret_element, struct cadre_error *error)
{
    struct row_stream *stream = &input->stream;
    CADRE_CLEANUP(parts_clear) struct parts parts = {0};
    if (range.first < stream->first_row) {
        stream->at.index = 0;
        stream->first_row = 0;
    }
    while (range.count > 0) {
        int64_t rows = 0;
        CADRE_TRY(rows_at(input, stream->at, &rows, error));
        if (range.first >= stream->first_row + rows) {
            stream->first_row += rows;
            stream->at.index++;
            continue;
        }
        struct row_range part = {.first = range.first - stream->first_row};
        part.count = rows - part.first < range.count ? rows - part.first : range.count;
        cadre_element *elements =
            realloc(parts.elements, (parts.count + 1) * sizeof parts.elements[0]);
        if (elements == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a piece");
        }
        parts.elements = elements;
        CADRE_TRY(batch_reader_part(
            &input->reader, stream->at, part, &elements[parts.count], &input->ids, error));
        parts.count++;
        range.first += part.count;
        range.count -= part.count;
    }
    return parts_join(&parts, ret_element, error);
}

static int64_t sizes_steps(struct distributed_input *input, uint64_t epoch)
{
    struct place first = {.epoch = epoch};
    int64_t cardinality = dataset_cardinality(input->data);
    if (cardinality == CADRE_CARDINALITY_INFINITE) {
        return CADRE_CARDINALITY_INFINITE;
    }
    bool known = cardinality == 0 || (cardinality > 0 && batch_reader_rows(&input->reader, first) !=
                                                             CADRE_CARDINALITY_UNKNOWN);
    struct cadre_error error = {0};
    int64_t total = 0;
    if (!known || count_rows(input, epoch, &total, &error) != CADRE_OK) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    return (int64_t)steps_of(input, total);
}

static cadre_status sizes_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    CADRE_TRY(begin_epoch(input, batch->epoch, error));
    int64_t total = input->stream.total;
    if (batch->step >= input->stream.steps) {
        return iterator_end(error);
    }
    uint64_t first = batch->step * input->replicas;
    struct size_list own = list_of(input, input->worker_index);
    for (uint32_t r = 0; r < input->replicas; r++) {
        struct row_range range = size_list_piece(&own, first + r, total);
        CADRE_TRY(range.count == 0 ? element_make_empty(&input->spec, &batch->elements[r], error)
                                   : read_rows(input, range, &batch->elements[r], error));
    }
    for (uint32_t worker = 0; worker < input->workers; worker++) {
        struct size_list list = list_of(input, worker);
        int64_t from = size_list_rows_before(&list, first);
        int64_t to = size_list_rows_before(&list, first + input->replicas);
        batch->global_rows += (uint64_t)((to < total ? to : total) - (from < total ? from : total));
    }
    return CADRE_OK;
}

const struct input_rule rule_sizes_own = {.steps = sizes_steps, .fill = sizes_fill};
