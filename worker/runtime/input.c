/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/device/argument.h"
#include "worker/runtime/border.h"
#include "worker/runtime/name.h"
#include "worker/runtime/strategy.h"
#include "worker/runtime/values.h"

#define PREFETCH_DEFAULT 2

bool distributed_lives(const cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = strategy_current();
    for (uint32_t i = 0; strategy != NULL && i < strategy->dataset_count; i++) {
        if (strategy->datasets[i] == distributed) {
            return true;
        }
    }
    return false;
}

cadre_status distributed_require(
    const cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error)
{
    cadre_status status = argument_require(distributed, function, "distributed", error);
    if (status == CADRE_OK && !distributed_lives(distributed)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with a distributed dataset of a strategy that has ended; call it before "
            "cadre_finish",
            function);
    }
    return status;
}

/* --- creation --- */

static void close_input(cadre_distributed_dataset *distributed)
{
    input_prefetcher_free(distributed->prefetcher);
    distributed_input_close(distributed->input);
    distributed->prefetcher = NULL;
    distributed->input = NULL;
}

void distributed_free(cadre_distributed_dataset *distributed)
{
    if (distributed != NULL) {
        close_input(distributed);
        cadre_per_replica_release(distributed->batch);
        cadre_dataset_release(distributed->data);
        free(distributed);
    }
}

static cadre_status choose_name(const cadre_strategy *strategy, const char *wanted,
    char name[LIMIT_NAME_BYTES], struct cadre_error *error)
{
    if (wanted != NULL) {
        cadre_status status = name_check("distributed dataset", wanted, error);
        if (status != CADRE_OK) {
            return status;
        }
        memcpy(name, wanted, strlen(wanted) + 1);
    } else {
        snprintf(name, LIMIT_NAME_BYTES, "dataset-%" PRIu32, strategy->dataset_count + 1);
    }
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        if (strcmp(strategy->datasets[i]->name, name) == 0) {
            return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                "a dataset '%s' is distributed in this strategy; give the new one another name",
                name);
        }
    }
    return CADRE_OK;
}

/* For the layout of the generation. */
static cadre_status open_input(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    const cadre_strategy *strategy = distributed->strategy;
    struct distributed_layout layout = {
        .workers = strategy->roster.member_count,
        .worker_index = strategy->roster.rank,
        .replicas = strategy->local_replicas,
        .policy = distributed->policy,
        .name = distributed->name,
        .proves = strategy->roster.rank == 0,
    };
    cadre_status status =
        distributed_input_open(distributed->data, &layout, &distributed->input, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "distribute the dataset '%s'", distributed->name);
    }
    distributed->layout = strategy->layout;
    if (distributed->depth == 0) {
        distributed->depth = distributed_input_prefetch_depth(distributed->input);
    }
    if (distributed->depth == 0) {
        distributed->depth = PREFETCH_DEFAULT;
    }
    if (distributed->depth > INPUT_PREFETCH_DEPTH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "dataset '%s': %" PRIu32 " batches were to be read ahead; at most %d are possible",
            distributed->name, distributed->depth, INPUT_PREFETCH_DEPTH_MAX);
    }
    distributed->reads_epoch = UINT64_MAX; /* nothing yet */
    return input_prefetcher_create(
        distributed->input, distributed->depth, &distributed->prefetcher, error);
}

static cadre_status keep_dataset(
    cadre_strategy *strategy, cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (strategy->dataset_count == strategy->dataset_capacity) {
        uint32_t capacity = strategy->dataset_capacity == 0 ? 4 : strategy->dataset_capacity * 2;
        cadre_distributed_dataset **grown =
            realloc(strategy->datasets, capacity * sizeof strategy->datasets[0]);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for one more distributed dataset");
        }
        strategy->datasets = grown;
        strategy->dataset_capacity = capacity;
    }
    strategy->datasets[strategy->dataset_count++] = distributed;
    return CADRE_OK;
}

static cadre_status tell_stream(
    cadre_strategy *strategy, cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (strategy->dataset_count >= LIMIT_STREAMS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s would be one more than %d distributed datasets, the most of a job: distribute one "
            "once and take its epochs one after the other",
            distributed->name, LIMIT_STREAMS);
    }
    distributed->stream = strategy->dataset_count + 1;
    const struct task_stream stream = {.stream = distributed->stream,
        .name = distributed->name,
        .samples = distributed_input_source_samples(distributed->input),
        .shares = distributed_input_shares(distributed->input)};
    return task_stream(strategy->task, &stream, error);
}

static cadre_status distribute(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_input_options *options, cadre_distributed_dataset **ret_distributed,
    struct cadre_error *error)
{
    cadre_distributed_dataset *distributed = calloc(1, sizeof *distributed);
    if (distributed == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a distributed dataset");
    }
    distributed->strategy = strategy;
    distributed->data = cadre_dataset_retain(data);
    distributed->policy = options->auto_shard;
    distributed->depth = options->prefetch;
    cadre_status status = choose_name(strategy, options->name, distributed->name, error);
    if (status == CADRE_OK) {
        status = open_input(distributed, error);
    }
    if (status == CADRE_OK) {
        distributed->steps = distributed_input_steps(distributed->input, 0);
        status = tell_stream(strategy, distributed, error);
    }
    if (status == CADRE_OK) {
        status = keep_dataset(strategy, distributed, error);
    }
    if (status != CADRE_OK) {
        distributed_free(distributed);
        return status;
    }
    *ret_distributed = distributed;
    return CADRE_OK;
}

cadre_status cadre_distribute_dataset(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_input_options *options, cadre_distributed_dataset **ret_distributed)
{
    static const cadre_input_options defaults = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_distributed, __func__, "ret_distributed", &error);
    if (status == CADRE_OK) {
        *ret_distributed = NULL;
        status = strategy_enter(strategy, __func__, &error);
    }
    if (status == CADRE_OK && data == NULL) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "the dataset is NULL: there was no memory to build it, or none was given");
    }
    if (status == CADRE_OK) {
        status = distribute(
            strategy, data, options == NULL ? &defaults : options, ret_distributed, &error);
    }
    cadre_dataset_release(data);
    return border(status, &error);
}

/* --- the ledger's view --- */

void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position)
{
    struct cursor cursor = {.first = position, .begin = position, .steps = 1};
    uint64_t end = position + 1;
    if (distributed != NULL) {
        cursor = (struct cursor){.stream = distributed->stream,
            .epoch = distributed->at.epochs_begun - 1,
            .first = position >= step ? position - step : 0,
            .begin = position,
            .steps = distributed->steps > 0 ? (uint64_t)distributed->steps : 0};
        if (distributed->steps > 0) {
            end = cursor.first + cursor.steps;
        } else if (distributed->steps == CADRE_CARDINALITY_INFINITE) {
            end = LIMIT_POSITION;
        }
    }
    const struct cursor *old = &strategy->cursor;
    bool goes_on = strategy->cursor_end > 0 && old->stream == cursor.stream &&
                   old->epoch == cursor.epoch && old->first == cursor.first;
    if (goes_on) {
        cursor.begin = old->begin;
    }
    strategy->cursor = cursor;
    strategy->cursor_end = end;
    const struct feed none = {0};
    const struct feed *feed = distributed != NULL ? &distributed->at.feed : &none;
    task_ready(strategy->task, &cursor, feed, end);
}

/* --- another layout --- */

/* What the program will ask for first: the batch that it holds, if it has not run it yet. */
static uint64_t first_asked(const cadre_distributed_dataset *distributed)
{
    const cadre_per_replica *batch = distributed->batch;
    bool holds = batch != NULL && !batch->source.consumed &&
                 batch->source.epoch + 1 == distributed->at.epochs_begun;
    return holds ? batch->source.step : distributed->next;
}

cadre_status distributed_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        cadre_distributed_dataset *distributed = strategy->datasets[i];
        if (distributed->layout == strategy->layout) {
            continue;
        }
        close_input(distributed);
        if (open_input(distributed, error) != CADRE_OK) {
            distributed->failed = *error; /* there is nothing to read from */
            return error->code;
        }
        uint64_t begun = distributed->at.epochs_begun;
        distributed->steps =
            distributed_input_steps(distributed->input, begun == 0 ? 0 : begun - 1);
        if (begun > 0 && distributed->at.open && !distributed->reenters) {
            distributed_seek(distributed, begun - 1, first_asked(distributed));
        }
    }
    return CADRE_OK;
}

cadre_status distributed_refresh(cadre_per_replica *batch, struct cadre_error *error)
{
    cadre_distributed_dataset *distributed = batch->source.dataset;
    if (batch->source.layout == distributed->strategy->layout) {
        return CADRE_OK;
    }
    struct distributed_batch fresh = {0};
    cadre_status status =
        distributed_read(distributed, batch->source.epoch, batch->source.step, &fresh, error);
    if (status == CADRE_OUT_OF_RANGE) {
        /* Pipelines of their own (CADRE_SHARD_OFF) have other steps: what was read stays. */
        batch->source.layout = distributed->strategy->layout;
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        batch_take_over(batch, &fresh);
        distributed_batch_clear(&fresh);
    }
    return status;
}

/* --- reading --- */

void distributed_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step)
{
    if (distributed->reads_epoch != epoch || distributed->reads_step != step) {
        distributed->reads_epoch = epoch;
        distributed->reads_step = step;
        input_prefetcher_start(distributed->prefetcher, epoch, step);
    }
}

cadre_status distributed_read(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error)
{
    distributed_seek(distributed, epoch, step);
    cadre_status status = input_prefetcher_take(distributed->prefetcher, ret_batch, error);
    distributed->reads_step += status == CADRE_OK ? 1 : 0;
    return status;
}

void batch_take_over(cadre_per_replica *value, struct distributed_batch *batch)
{
    for (uint32_t replica = 0; replica < batch->replicas; replica++) {
        for (uint32_t i = 0; i < value->components; i++) {
            cadre_tensor **from = &batch->elements[replica].tensors[i];
            cadre_tensor **to = per_replica_at(value, i, replica);
            cadre_tensor_release(*to);
            *to = *from;
            *from = NULL;
        }
        batch->elements[replica].count = 0;
    }
    struct batch_source *source = &value->source;
    source->global_rows = (int64_t)batch->global_rows;
    source->samples = batch->samples;
    source->fed = batch->fed;
    source->expected = batch->expected;
    source->provable = batch->provable;
    source->layout = source->dataset->strategy->layout;
}
