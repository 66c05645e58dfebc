/* SPDX-License-Identifier: Apache-2.0
 * cadre_distribute_dataset: options are checked, and a dataset becomes a distributed one of a
 * strategy. The program calls it; iterators.c for its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/input/node/node.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Of datasets, without their iterators. */
static uint32_t datasets_of(const cadre_strategy *strategy)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        count += strategy->input->datasets[i]->iterating.of == NULL ? 1 : 0;
    }
    return count;
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
        snprintf(name, LIMIT_NAME_BYTES, "dataset-%" PRIu32, datasets_of(strategy) + 1);
    }
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        if (strcmp(strategy->input->datasets[i]->name, name) == 0) {
            return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                "a dataset '%s' is distributed in this strategy; give the new one another name",
                name);
        }
    }
    return CADRE_OK;
}

/* Which of the options go together: semantics of tf.distribute.InputOptions. */
static cadre_status check_options(const cadre_strategy *strategy,
    const cadre_input_options *options, bool of_function, struct cadre_error *error)
{
    bool per_replica = options->replication_mode == CADRE_PER_REPLICA;
    if (options->replication_mode != CADRE_PER_WORKER && !per_replica) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a replication mode; use CADRE_PER_WORKER or CADRE_PER_REPLICA",
            (int)options->replication_mode);
    }
    if (options->rebatch != CADRE_REBATCH_SPLIT && options->rebatch != CADRE_REBATCH_TENSORFLOW) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a way of cutting batches; use CADRE_REBATCH_SPLIT or "
            "CADRE_REBATCH_TENSORFLOW",
            (int)options->rebatch);
    }
    if (options->copy_to_device && !per_replica) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "copy_to_device puts each replica's pipeline on its device, and with "
            "CADRE_PER_WORKER there is one for all; use CADRE_PER_REPLICA with it");
    }
    if (options->copy_to_device && !options->keep_on_host) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "with copy_to_device batches are on the device already; set keep_on_host with it");
    }
    if (per_replica && !of_function) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "CADRE_PER_REPLICA is for pipelines that a function makes; use "
            "cadre_distribute_datasets_from_function, or CADRE_PER_WORKER");
    }
    uint32_t tasks = strategy->environment->tasks;
    if (per_replica && (tasks > 1 || strategy_tasks(strategy) > 1)) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "CADRE_PER_REPLICA is for a job of one worker, and this one has %" PRIu32
            "; use CADRE_PER_WORKER",
            tasks);
    }
    if (options->steps_per_epoch >= LIMIT_POSITION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an epoch of %" PRIu64 " steps is too long; give less than %llu, or 0 for as many as "
            "there are",
            options->steps_per_epoch, LIMIT_POSITION);
    }
    return CADRE_OK;
}

static cadre_status keep_dataset(
    cadre_strategy *strategy, cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (strategy->input->dataset_count == strategy->input->dataset_capacity) {
        uint32_t capacity =
            strategy->input->dataset_capacity == 0 ? 4 : strategy->input->dataset_capacity * 2;
        cadre_distributed_dataset **grown =
            realloc(strategy->input->datasets, capacity * sizeof strategy->input->datasets[0]);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for one more distributed dataset");
        }
        strategy->input->datasets = grown;
        strategy->input->dataset_capacity = capacity;
    }
    CADRE_ASSERT(distributed->stream == strategy->input->dataset_count + 1);
    strategy->input->datasets[strategy->input->dataset_count++] = distributed;
    return CADRE_OK;
}

static cadre_status announce_stream(
    cadre_strategy *strategy, cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (strategy->input->dataset_count >= LIMIT_STREAMS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s would be one more than %d distributed datasets and iterators, the most of a job: "
            "distribute one once and take its epochs one after the other; release iterators",
            distributed->name, LIMIT_STREAMS);
    }
    distributed->stream = strategy->input->dataset_count + 1;
    CADRE_ASSERT(distributed->input != NULL);
    const struct task_stream stream = {.stream = distributed->stream,
        .name = distributed->name,
        .samples = distributed_input_source_samples(distributed->input),
        .shares = distributed_input_shares(distributed->input)};
    return task_stream(strategy->task, &stream, error);
}

static cadre_status distribute_describe(
    cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    if (distributed->data == NULL) {
        return CADRE_OK; /* each task may have another number */
    }
    CADRE_TRY(dataset_status(distributed->data, error));
    distributed->pipeline = dataset_describe(distributed->data);
    return distributed->pipeline != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory to describe the dataset '%s'", distributed->name);
}

/* Checks the options and what is in `made` already. */
static cadre_status distribute_distribute(cadre_strategy *strategy,
    const cadre_distributed_dataset *made, const cadre_input_options *options,
    cadre_distributed_dataset **ret_distributed, struct cadre_error *error)
{
    CADRE_TRY(check_options(strategy, options, made->function != NULL, error));
    CADRE_ASSERT((made->data == NULL) != (made->function == NULL));
    cadre_distributed_dataset *distributed = calloc(1, sizeof *distributed);
    if (distributed == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a distributed dataset");
    }
    *distributed = *made;
    distributed->strategy = strategy;
    distributed->data = cadre_dataset_retain(made->data);
    distributed->policy = options->auto_shard;
    distributed->rebatch = options->rebatch;
    distributed->per_replica = options->replication_mode == CADRE_PER_REPLICA;
    distributed->partial_steps = options->partial_steps;
    distributed->steps_per_epoch = options->steps_per_epoch;
    distributed->depth = options->prefetch;
    distributed->keep_on_host = options->keep_on_host && !options->copy_to_device;
    distributed->device_batches =
        options->per_replica_buffer == 0 ? 1 : options->per_replica_buffer;
    cadre_status status = choose_name(strategy, options->name, distributed->name, error);
    if (status == CADRE_OK) {
        status = distribute_describe(distributed, error);
    }
    if (status == CADRE_OK && made->iterating.of == NULL) {
        status = pipelines_compare(distributed, error); /* the layout may be another one after it */
    }
    if (status == CADRE_OK) {
        status = distributed_open(distributed, error);
    }
    if (status == CADRE_OK) {
        distributed->steps = distributed_steps_now(distributed);
        status = announce_stream(strategy, distributed, error);
    }
    if (status == CADRE_OK) {
        status = keep_dataset(strategy, distributed, error);
    }
    if (status == CADRE_OK && made->iterating.of == NULL) {
        files_distributed(distributed);
    }
    if (status != CADRE_OK) {
        distributed_free(distributed);
        return status;
    }
    *ret_distributed = distributed;
    return CADRE_OK;
}

cadre_status distributed_make_iterator(cadre_distributed_dataset *distributed,
    cadre_distributed_dataset **ret_iterator, struct cadre_error *error)
{
    cadre_strategy *strategy = distributed->strategy;
    char name[LIMIT_NAME_BYTES + 16];
    uint32_t number = 1;
    CADRE_ASSERT(distributed->iterating.of == NULL);
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        number += strategy->input->datasets[i]->iterating.of == distributed ? 1 : 0;
    }
    snprintf(name, sizeof name, "%s/%" PRIu32, distributed->name, number);
    const cadre_input_options options = {.name = name,
        .auto_shard = distributed->policy,
        .rebatch = distributed->rebatch,
        .partial_steps = distributed->partial_steps,
        .prefetch = distributed->depth,
        .steps_per_epoch = distributed->steps_per_epoch,
        .replication_mode = distributed->per_replica ? CADRE_PER_REPLICA : CADRE_PER_WORKER,
        .keep_on_host = distributed->keep_on_host,
        .per_replica_buffer = distributed->device_batches};
    const cadre_distributed_dataset made = {.iterating = {.of = distributed},
        .data = distributed->data,
        .function = distributed->function,
        .user = distributed->user,
        .began = distributed->began,
        .warned_files = true,
        .warned_policy = true,
        .warned_left = true};
    return distribute_distribute(strategy, &made, &options, ret_iterator, error);
}

/* --- public --- */

static const cadre_input_options defaults = {0};

cadre_status cadre_distribute_dataset(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_input_options *options, cadre_distributed_dataset **ret_distributed)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_distributed, __func__, "ret_distributed", &error);
    if (status == CADRE_OK) {
        *ret_distributed = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && data == NULL) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "the dataset is NULL: there was no memory to build it, or none was given");
    }
    if (status == CADRE_OK) {
        const cadre_distributed_dataset made = {.data = data};
        status = distribute_distribute(
            strategy, &made, options == NULL ? &defaults : options, ret_distributed, &error);
    }
    cadre_dataset_release(data);
    return api_return(status, &error);
}

cadre_status cadre_distribute_datasets_from_function(cadre_strategy *strategy,
    cadre_input_function function, void *user, const cadre_input_options *options,
    cadre_distributed_dataset **ret_distributed)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_distributed, __func__, "ret_distributed", &error);
    if (status == CADRE_OK) {
        *ret_distributed = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && function == NULL) {
        status = argument_require(NULL, __func__, "function", &error);
    }
    if (status == CADRE_OK) {
        const cadre_distributed_dataset made = {.function = function, .user = user};
        status = distribute_distribute(
            strategy, &made, options == NULL ? &defaults : options, ret_distributed, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_per_replica_batch_size(
    const cadre_input_context *context, int64_t global_batch, int64_t *ret_size)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_size, __func__, "ret_size", &error);
    if (status == CADRE_OK) {
        *ret_size = 0;
        status = argument_require(context, __func__, "context", &error);
    }
    if (status == CADRE_OK && (global_batch <= 0 || context->num_replicas_in_sync == 0)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a global batch of %" PRId64 " for %" PRIu32 " replicas: both must be positive",
            global_batch, context->num_replicas_in_sync);
    }
    if (status == CADRE_OK && global_batch % context->num_replicas_in_sync != 0) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a global batch of %" PRId64 " cannot be divided evenly among %" PRIu32
            " replicas; give a multiple of it",
            global_batch, context->num_replicas_in_sync);
    }
    if (status == CADRE_OK) {
        *ret_size = global_batch / context->num_replicas_in_sync;
    }
    return api_return(status, &error);
}
