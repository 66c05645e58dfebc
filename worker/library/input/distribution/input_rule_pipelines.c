/* SPDX-License-Identifier: Apache-2.0
 * A pipeline of the worker's own: a step is its next elements, one for each replica; or one of each
 * replica's pipeline. What has ended gives dummies. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "worker/library/input/distribution/distributed_input_internal.h"

void worker_pipelines_clear(struct worker_pipelines *own)
{
    for (uint32_t i = 0; i < own->count; i++) {
        element_stream_finish(&own->streams[i]);
        cadre_dataset_release(own->data[i]);
    }
    free(own->streams);
    free(own->data);
    *own = (struct worker_pipelines){0};
}

cadre_status worker_pipelines_init(struct worker_pipelines *own, cadre_dataset *const data[],
    uint32_t count, struct replay *replay, struct cadre_error *error)
{
    cadre_dataset **kept = calloc(count, sizeof kept[0]);
    struct element_stream *streams = calloc(count, sizeof streams[0]);
    if (kept == NULL || streams == NULL) {
        free(kept);
        free(streams);
        for (uint32_t i = 0; i < count; i++) {
            cadre_dataset_release(data[i]);
        }
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRIu32 " pipelines", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = data[i];
        streams[i] = (struct element_stream){.data = data[i], .replay = replay};
    }
    *own = (struct worker_pipelines){.data = kept, .streams = streams, .count = count};
    return CADRE_OK;
}

static struct worker_pipelines *pipelines_of(struct distributed_input *input, uint64_t epoch)
{
    bool assigned = input->assigned.count > 0 && input->consumption.assigned.epoch == epoch;
    return assigned ? &input->assigned : &input->own;
}

static uint32_t elements_of(
    const struct distributed_input *input, const struct worker_pipelines *own)
{
    return own->count == 1 ? input->replicas : 1;
}

/* The element of replica `r`, or a dummy. */
static cadre_status fill_replica(struct distributed_input *input, struct worker_pipelines *own,
    struct distributed_batch *batch, uint32_t r, struct cadre_error *error)
{
    uint64_t step = batch->step - own->first_step;
    bool alone = own->count > 1 || input->replicas == 1;
    struct element_position position = {
        .index = alone ? step : step * input->replicas + r, .epoch = batch->epoch};
    struct element_stream *stream = &own->streams[own->count > 1 ? r : 0];
    cadre_element *element = &batch->elements[r];
    cadre_status status = element_stream_read(stream, position, element, &input->ids, error);
    if (status == CADRE_OUT_OF_RANGE) {
        return element_make_dummy(&input->spec, element, error);
    }
    if (status == CADRE_OK) {
        batch->present++;
        batch->own_rows += (uint64_t)element_first_rows(element);
    }
    return status;
}

static uint64_t passes_of(const struct distributed_input *input)
{
    return input->own.streams[0].passes +
           (input->assigned.count > 0 ? input->assigned.streams[0].passes : 0);
}

/* The fault that the digests are there for: the replica gets what it got before once more, and what
 * it should have got is lost. */
static cadre_status give_again(struct distributed_input *input, struct worker_pipelines *own,
    struct distributed_batch *batch, struct cadre_error *error)
{
    struct element_position position = {
        .index = batch->step - own->first_step, .epoch = batch->epoch};
    if (input->replicas > 1 || position.index == 0 || batch->present == 0) {
        return CADRE_OK;
    }
    position.index--;
    input->ids.count = 0;
    cadre_element_release(&batch->elements[0]);
    CADRE_TRY(
        element_stream_read(&own->streams[0], position, &batch->elements[0], &input->ids, error));
    input->passes = passes_of(input);
    return CADRE_OK;
}

static cadre_status pipelines_report_files(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct worker_pipelines *own = pipelines_of(input, batch->epoch);
    if (!input->can_reshard) {
        return CADRE_OK;
    }
    if (input->passes != passes_of(input)) {
        CADRE_TRY(file_consumption_begin(&input->consumption, batch->epoch, error));
        input->passes = passes_of(input);
    }
    /* With the last of it all of its files are done: no step follows that could say so. */
    element_stream_peek(&own->streams[0]);
    CADRE_TRY(file_consumption_step(
        &input->consumption, &input->ids, own->streams[0].ended, batch, error));
    return fault_point("input.piece") ? give_again(input, own, batch, error) : CADRE_OK;
}

static cadre_status pipelines_fill(
    struct distributed_input *input, struct distributed_batch *batch, struct cadre_error *error)
{
    struct worker_pipelines *own = pipelines_of(input, batch->epoch);
    if (batch->step < own->first_step) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "step %" PRIu64 " is before step %" PRIu64
            ", which the files were divided for when the workers changed",
            batch->step, own->first_step);
    }
    for (uint32_t r = 0; r < input->replicas; r++) {
        CADRE_TRY(fill_replica(input, own, batch, r, error));
    }
    if (batch->present == 0 && !input->agrees) {
        return input->workers == 1
                   ? iterator_end(error)
                   : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                         "the dataset was said to be endless, and the pipeline of worker %" PRIu32
                         " has ended",
                         input->worker_index);
    }
    if (!input->agrees) {
        batch->global_rows = batch->own_rows * input->workers;
    }
    return CADRE_OK;
}

/* Steps of one worker's pipelines. */
static int64_t steps_of(const struct distributed_input *input, const struct worker_pipelines *own)
{
    int64_t limit = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        int64_t elements = dataset_cardinality(own->data[i]);
        if (elements < 0) {
            return elements;
        }
        int64_t each = elements_of(input, own);
        int64_t steps = elements / each + (elements % each != 0 ? 1 : 0);
        limit = steps > limit ? steps : limit;
    }
    return limit;
}

static int64_t pipelines_steps(struct distributed_input *input, uint64_t epoch)
{
    struct worker_pipelines *own = pipelines_of(input, epoch);
    if (input->endless) {
        return CADRE_CARDINALITY_INFINITE;
    }
    bool alike = input->workers == 1 || input->alike;
    return own == &input->assigned || !alike ? CADRE_CARDINALITY_UNKNOWN : steps_of(input, own);
}

static int64_t pipelines_whole_steps(struct distributed_input *input, uint64_t epoch)
{
    const struct worker_pipelines *own = pipelines_of(input, epoch);
    int64_t fewest = INT64_MAX;
    for (uint32_t i = 0; i < own->count; i++) {
        int64_t steps = dataset_cardinality(own->data[i]) / elements_of(input, own);
        fewest = steps >= 0 && steps < fewest ? steps : fewest;
    }
    return fewest;
}

static int64_t pipelines_left(struct distributed_input *input, uint64_t epoch, uint64_t step)
{
    const struct worker_pipelines *own = pipelines_of(input, epoch);
    int64_t left = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        int64_t elements = dataset_cardinality(own->data[i]);
        int64_t given = (int64_t)(step - own->first_step) * elements_of(input, own);
        if (elements < 0) {
            return CADRE_CARDINALITY_UNKNOWN;
        }
        left += elements > given ? elements - given : 0;
    }
    return left;
}

static struct element_stream *pipelines_streams(struct distributed_input *input, uint64_t epoch,
    uint64_t step, uint32_t *ret_count, uint64_t *ret_index)
{
    struct worker_pipelines *own = pipelines_of(input, epoch);
    *ret_count = step < own->first_step ? 0 : own->count;
    *ret_index = step < own->first_step ? 0 : (step - own->first_step) * elements_of(input, own);
    return own->streams;
}

const struct input_rule input_rule_pipelines = {
    .steps = pipelines_steps,
    .whole_steps = pipelines_whole_steps,
    .left = pipelines_left,
    .fill = pipelines_fill,
    .report_files = pipelines_report_files,
    .streams = pipelines_streams,
};
