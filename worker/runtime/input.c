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

/* What every public `function` with a distributed dataset asks first. */
static cadre_status require_distributed(
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

void distributed_free(cadre_distributed_dataset *distributed)
{
    if (distributed != NULL) {
        input_prefetcher_free(distributed->prefetcher);
        distributed_input_close(distributed->input);
        cadre_per_replica_release(distributed->batch);
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

static cadre_status open_input(cadre_distributed_dataset *distributed, cadre_dataset *data,
    const cadre_input_options *options, struct cadre_error *error)
{
    const cadre_strategy *strategy = distributed->strategy;
    struct distributed_layout layout = {
        .workers = strategy->roster.member_count,
        .worker_index = strategy->roster.rank,
        .replicas = strategy->local_replicas,
        .policy = options->auto_shard,
        .name = distributed->name,
    };
    cadre_status status = distributed_input_open(data, &layout, &distributed->input, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "distribute the dataset '%s'", distributed->name);
    }
    uint32_t depth = options->prefetch;
    if (depth == 0) {
        depth = distributed_input_prefetch_depth(distributed->input);
    }
    depth = depth == 0 ? PREFETCH_DEFAULT : depth;
    if (depth > INPUT_PREFETCH_DEPTH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "dataset '%s': %" PRIu32 " batches were to be read ahead; at most %d are possible",
            distributed->name, depth, INPUT_PREFETCH_DEPTH_MAX);
    }
    return input_prefetcher_create(distributed->input, depth, &distributed->prefetcher, error);
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
    distributed->stream = strategy->dataset_count;
    return CADRE_OK;
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
    cadre_status status = choose_name(strategy, options->name, distributed->name, error);
    if (status == CADRE_OK) {
        status = open_input(distributed, data, options, error);
    }
    if (status == CADRE_OK) {
        distributed->steps = distributed_input_steps(distributed->input, 0);
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
            .epoch = distributed->epochs_begun - 1,
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
    bool known = goes_on && old->steps == cursor.steps && strategy->cursor_end >= end;
    if (!known) {
        strategy->cursor = cursor;
        strategy->cursor_end = end;
        task_ready(strategy->task, &cursor, end);
    }
}

/* --- iteration --- */

static cadre_status sticky(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (distributed->failed.code == CADRE_OK) {
        distributed->failed = *error;
    }
    return error->code;
}

static void drop_batch(cadre_distributed_dataset *distributed)
{
    cadre_per_replica_release(distributed->batch);
    distributed->batch = NULL;
}

bool cadre_next_epoch(cadre_distributed_dataset *distributed, uint64_t epochs, uint64_t *ret_epoch)
{
    struct cadre_error error = {0};
    if (require_distributed(distributed, __func__, &error) != CADRE_OK) {
        border(error.code, &error);
        return false;
    }
    cadre_strategy *strategy = distributed->strategy;
    cadre_status status = strategy_enter(strategy, __func__, &error);
    if (status != CADRE_OK) {
        border(sticky(distributed, &error), &error);
        return false;
    }
    if (distributed->failed.code != CADRE_OK || distributed->epochs_begun >= epochs) {
        return false;
    }
    drop_batch(distributed);
    uint64_t epoch = distributed->epochs_begun++;
    distributed->epochs = epochs;
    distributed->applied = 0;
    /* The prefetcher may be reading the epoch before: it must not share the input. */
    input_prefetcher_cancel(distributed->prefetcher);
    distributed->steps = distributed_input_steps(distributed->input, epoch);
    input_prefetcher_start(distributed->prefetcher, epoch, 0);
    reports_epoch(strategy, distributed);
    if (ret_epoch != NULL) {
        *ret_epoch = epoch;
    }
    return true;
}

/* Moves the tensors from the input's batch to a value of the program's. */
static cadre_status take_over(cadre_distributed_dataset *distributed,
    struct distributed_batch *batch, cadre_per_replica **ret_value, struct cadre_error *error)
{
    uint32_t components = batch->elements[0].count;
    cadre_per_replica *value = per_replica_new(batch->replicas, components);
    if (value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch");
    }
    for (uint32_t replica = 0; replica < batch->replicas; replica++) {
        for (uint32_t i = 0; i < components; i++) {
            cadre_tensor **from = &batch->elements[replica].tensors[i];
            *per_replica_at(value, i, replica) = *from;
            *from = NULL;
        }
        batch->elements[replica].count = 0;
    }
    value->source = (struct batch_source){.dataset = distributed,
        .epoch = batch->epoch,
        .step = batch->step,
        .global_rows = (int64_t)batch->global_rows,
        .fed = batch->fed};
    *ret_value = value;
    return CADRE_OK;
}

static cadre_status next(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    cadre_status status = require_distributed(distributed, "cadre_next", error);
    if (status == CADRE_OK) {
        status = strategy_require(distributed->strategy, "cadre_next", error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (distributed->failed.code != CADRE_OK) {
        *error = distributed->failed;
        return error->code;
    }
    if (distributed->epochs_begun == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "dataset '%s' is in no epoch; call cadre_next_epoch before cadre_next",
            distributed->name);
    }
    drop_batch(distributed);
    struct distributed_batch batch = {0};
    status = input_prefetcher_take(distributed->prefetcher, &batch, error);
    if (status == CADRE_OK) {
        status = take_over(distributed, &batch, &distributed->batch, error);
        distributed_batch_clear(&batch);
    }
    if (status != CADRE_OK && status != CADRE_OUT_OF_RANGE) {
        sticky(distributed, error);
    }
    return status;
}

cadre_status cadre_next(cadre_distributed_dataset *distributed, cadre_per_replica **ret_batch)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_batch, __func__, "ret_batch", &error);
    if (status == CADRE_OK) {
        *ret_batch = NULL;
        status = next(distributed, &error);
    }
    if (status == CADRE_OK) {
        *ret_batch = distributed->batch;
    }
    return border(status, &error);
}

/* --- looking at it --- */

cadre_status cadre_distributed_status(const cadre_distributed_dataset *distributed)
{
    struct cadre_error error = {0};
    if (require_distributed(distributed, __func__, &error) == CADRE_OK) {
        error = distributed->failed;
    }
    return border(error.code, &error);
}

int64_t cadre_distributed_steps(const cadre_distributed_dataset *distributed)
{
    return distributed_lives(distributed) ? distributed->steps : CADRE_CARDINALITY_UNKNOWN;
}

uint64_t cadre_epoch(const cadre_distributed_dataset *distributed)
{
    bool begun = distributed_lives(distributed) && distributed->epochs_begun > 0;
    return begun ? distributed->epochs_begun - 1 : 0;
}

uint64_t cadre_step(const cadre_distributed_dataset *distributed)
{
    return distributed_lives(distributed) ? distributed->applied : 0;
}
