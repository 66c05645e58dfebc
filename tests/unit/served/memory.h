/* SPDX-License-Identifier: Apache-2.0
 * Variables on servers, read into and changed from plain memory of a test: as programs do it, by
 * tensors over that. */
#ifndef CADRE_TESTS_SERVED_MEMORY_H
#define CADRE_TESTS_SERVED_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "cadre/optimizer.h"
#include "cadre/served.h"

/* Builds an optimizer for it; which may be released, for the servers have it. */
static inline cadre_status memory_train(
    cadre_strategy *strategy, cadre_variable *variable, const cadre_optimizer_options *options)
{
    cadre_optimizer *optimizer = NULL;
    cadre_status status = cadre_optimizer_create(strategy, options, &optimizer);
    if (status == CADRE_OK) {
        status = cadre_optimizer_build(optimizer, &variable, 1);
    }
    cadre_optimizer_release(optimizer);
    return status;
}

static inline size_t memory_bytes(const cadre_variable *variable)
{
    return (size_t)cadre_variable_count(variable) *
           cadre_dtype_bytes(cadre_variable_dtype(variable));
}

/* Over memory for all of it, or, with ids, for that many rows. NULL for NULL, but of no rows. */
static inline cadre_tensor *memory_over(
    const cadre_variable *variable, const cadre_tensor *ids, const void *memory)
{
    int64_t dims[CADRE_RANK_MAX] = {0};
    cadre_tensor *tensor = NULL;
    uint32_t rank = cadre_variable_rank(variable);
    if (rank > 0) {
        memcpy(dims, cadre_variable_dims(variable), rank * sizeof dims[0]);
    }
    if (ids != NULL) {
        dims[0] = cadre_tensor_count(ids);
        memory = dims[0] == 0 && memory == NULL ? dims : memory;
    }
    (void)cadre_tensor_over(
        cadre_variable_dtype(variable), rank, dims, (void *)(uintptr_t)memory, NULL, NULL, &tensor);
    return tensor;
}

static inline cadre_tensor *memory_ids(const int64_t *ids, size_t count)
{
    const int64_t dims[] = {(int64_t)count};
    cadre_tensor *tensor = NULL;
    ids = count == 0 && ids == NULL ? dims : ids;
    (void)cadre_tensor_over(CADRE_I64, 1, dims, (void *)(uintptr_t)ids, NULL, NULL, &tensor);
    return tensor;
}

/* After so many synchronous steps. */
static inline cadre_status memory_pull_step(cadre_variable *variable, uint64_t step, void *into)
{
    const cadre_read_options options = {.into = memory_over(variable, NULL, into), .step = step};
    cadre_status status = cadre_variable_value(NULL, variable, &options, NULL);
    cadre_tensor_release(options.into);
    return status;
}

static inline cadre_status memory_pull(cadre_variable *variable, void *into)
{
    return memory_pull_step(variable, 0, into);
}

static inline cadre_status memory_gather(
    cadre_variable *variable, const int64_t *numbers, size_t count, void *into)
{
    cadre_tensor *ids = memory_ids(numbers, count);
    const cadre_read_options options = {.into = memory_over(variable, ids, into)};
    cadre_status status = cadre_variable_gather(NULL, variable, ids, &options, NULL);
    cadre_tensor_release(options.into);
    cadre_tensor_release(ids);
    return status;
}

/* A gradient, and at once what the variable is afterwards into `into`, unless that is NULL. */
static inline cadre_status memory_push_pull(
    cadre_variable *variable, const void *gradient, void *into, const cadre_push_options *options)
{
    cadre_push_options own = options != NULL ? *options : (cadre_push_options){0};
    cadre_tensor *values = memory_over(variable, NULL, gradient);
    own.into = into == NULL ? NULL : memory_over(variable, NULL, into);
    cadre_status status =
        cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, values, NULL, &own);
    cadre_tensor_release(own.into);
    cadre_tensor_release(values);
    return status;
}

static inline cadre_status memory_push(
    cadre_variable *variable, const void *gradient, const cadre_push_options *options)
{
    return memory_push_pull(variable, gradient, NULL, options);
}

static inline cadre_status memory_push_rows(cadre_variable *variable, const int64_t *numbers,
    size_t count, const void *rows, const cadre_push_options *options)
{
    cadre_tensor *ids = memory_ids(numbers, count);
    cadre_tensor *values = memory_over(variable, ids, rows);
    cadre_status status =
        cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, values, ids, options);
    cadre_tensor_release(values);
    cadre_tensor_release(ids);
    return status;
}

/* The number of the server that a shard is on; UINT32_MAX: there is no such shard. */
static inline uint32_t memory_server(const cadre_variable *variable, uint32_t shard)
{
    const char *device = cadre_variable_device(variable, shard);
    const char *task = device == NULL ? NULL : strstr(device, "task:");
    return task == NULL ? UINT32_MAX : (uint32_t)strtoul(task + strlen("task:"), NULL, 10);
}

#endif
