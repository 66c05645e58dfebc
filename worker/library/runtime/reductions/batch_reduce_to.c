/* SPDX-License-Identifier: Apache-2.0
 * cadre_batch_reduce_to: many values at once, in packs; each pack is one collective. */
#include <stdlib.h>

#include "cadre/cross_device.h"
#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/reductions/reductions.h"
#include "worker/library/runtime/reductions/destinations.h"
#include "worker/library/runtime/reductions/custom_ops.h"
#include "worker/library/runtime/reductions/reduce_to.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* The values of a pack are joined to one, whose components go in one collective. */
static cadre_status reduce_pack(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], size_t count, cadre_tensor *results[],
    struct cadre_error *error)
{
    cadre_argument arguments[CADRE_ELEMENT_TENSORS_MAX];
    cadre_per_replica *joined = NULL;
    CADRE_ASSERT(count > 0);
    CADRE_ASSERT(count <= CADRE_ELEMENT_TENSORS_MAX);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = (cadre_argument){.values = (cadre_per_replica *)(uintptr_t)values[i]};
    }
    CADRE_TRY(values_join(strategy, arguments, (uint32_t)count, &joined, error));
    cadre_status status =
        reduce_to_one(strategy, "cadre_batch_reduce_to", op, joined, results, error);
    cadre_per_replica_release(joined);
    return status;
}

static size_t bytes_of(const cadre_per_replica *value)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < value->components; i++) {
        bytes += cadre_tensor_bytes(cadre_local_results(value, i)[0]);
    }
    return bytes;
}

/* The size of a pack by the options. */
static size_t pack_bytes(
    const cadre_cross_device_ops *ops, const cadre_per_replica *const values[], uint32_t count)
{
    size_t all = 0;
    if (ops->bytes_per_pack > 0 || ops->num_packs <= 1) {
        return ops->bytes_per_pack;
    }
    for (uint32_t i = 0; i < count; i++) {
        all += bytes_of(values[i]);
    }
    size_t each = all / ops->num_packs;
    return each == 0 ? 1 : each;
}

/* How many of the next values fit into one pack: by size, by components, of one kind. */
static size_t next_pack(const cadre_per_replica *const values[], size_t count, size_t most_bytes)
{
    size_t length = 0;
    size_t bytes = 0;
    uint32_t components = 0;
    bool plain = per_replica_all_plain(values[0]);
    while (length < count && (most_bytes == 0 || bytes <= most_bytes) &&
           components + values[length]->components <= CADRE_ELEMENT_TENSORS_MAX &&
           per_replica_all_plain(values[length]) == plain) {
        components += values[length]->components;
        bytes += bytes_of(values[length++]);
    }
    return length;
}

static cadre_status reduce_batch(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const uint32_t targets[], uint32_t count,
    cadre_per_replica *ret_values[], struct cadre_error *error)
{
    size_t most = pack_bytes(&strategy->reductions->cross_device, values, count);
    for (size_t at = 0; at < count;) {
        cadre_tensor *results[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
        size_t length = next_pack(values + at, count - at, most);
        CADRE_ASSERT(length > 0);
        CADRE_TRY(reduce_pack(strategy, op, values + at, length, results, error));
        cadre_tensor **next = results;
        for (size_t i = at; i < at + length; i++) {
            uint32_t components = values[i]->components;
            cadre_status status =
                destinations_fill(targets[i], components, next, &ret_values[i], error);
            if (status != CADRE_OK) {
                for (size_t rest = 0; rest < CADRE_ELEMENT_TENSORS_MAX; rest++) {
                    cadre_tensor_release(results[rest]);
                }
                return status;
            }
            next += components;
        }
        at += length;
    }
    return CADRE_OK;
}

/* The values of a batch for which the program's own functions are called. */
struct own_batch {
    uint32_t taken;
    uint32_t *from; /* their indices in the batch */
    const cadre_per_replica **values;
    cadre_destinations *destinations;
    cadre_per_replica **results;
};

static cadre_status own_batch_open(
    uint32_t most, struct own_batch *batch, struct cadre_error *error)
{
    batch->from = calloc((size_t)most + 1, sizeof *batch->from);
    batch->values = calloc((size_t)most + 1, sizeof(cadre_per_replica *));
    batch->destinations = calloc((size_t)most + 1, sizeof *batch->destinations);
    batch->results = calloc((size_t)most + 1, sizeof(cadre_per_replica *));
    return batch->from != NULL && batch->values != NULL && batch->destinations != NULL &&
                   batch->results != NULL
               ? CADRE_OK
               : cadre_error_set(
                     error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch of %u values", most);
}

static void own_batch_close(struct own_batch *batch)
{
    free(batch->from);
    free(batch->values);
    free(batch->destinations);
    free(batch->results);
}

/* The program's own functions get all their values at once; the others go one by one. */
static cadre_status reduce_batch_own(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    const uint32_t targets[], uint32_t count, cadre_per_replica *ret_values[],
    struct cadre_error *error)
{
    struct own_batch batch = {.taken = 0};
    cadre_status status = own_batch_open(count, &batch, error);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        const cadre_destinations *to = destinations == NULL ? NULL : &destinations[i];
        cadre_tensor *results[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
        if (custom_ops_apply(strategy, values[i], to)) {
            batch.from[batch.taken] = i;
            batch.destinations[batch.taken] = to == NULL ? (cadre_destinations){0} : *to;
            batch.values[batch.taken++] = values[i];
            continue;
        }
        status = reduce_pack(strategy, op, values + i, 1, results, error);
        if (status == CADRE_OK) {
            status = destinations_fill(
                targets[i], values[i]->components, results, &ret_values[i], error);
        }
    }
    if (status == CADRE_OK && batch.taken > 0) {
        const struct custom_values own = {.values = batch.values,
            .destinations = batch.destinations,
            .count = batch.taken,
            .batch = true};
        status =
            custom_ops_reduce(strategy, "cadre_batch_reduce_to", op, &own, batch.results, error);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < batch.taken; i++) {
        ret_values[batch.from[i]] = batch.results[i];
    }
    own_batch_close(&batch);
    return status;
}

static cadre_status batch_reduce(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    uint32_t count, cadre_per_replica *ret_values[], struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint32_t *targets = calloc((size_t)count + 1, sizeof *targets);
    if (targets == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch of %u values", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(reduce_to_check(strategy, op, (cadre_per_replica *)(uintptr_t)values[i], error));
        CADRE_TRY(destinations_count(
            strategy, destinations == NULL ? NULL : &destinations[i], &targets[i], error));
    }
    cadre_status status =
        custom_ops_apply(strategy, NULL, NULL)
            ? reduce_batch_own(
                  strategy, op, values, destinations, targets, count, ret_values, error)
            : reduce_batch(strategy, op, values, targets, count, ret_values, error);
    for (uint32_t i = 0; status != CADRE_OK && i < count; i++) {
        cadre_per_replica_release(ret_values[i]);
        ret_values[i] = NULL;
    }
    return status;
}

cadre_status cadre_batch_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    uint32_t count, cadre_per_replica *ret_values[])
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status =
        count == 0 ? CADRE_OK : argument_require(ret_values, __func__, "ret_values", &error);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        ret_values[i] = NULL;
    }
    if (status == CADRE_OK) {
        status = reduce_to_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && count > 0) {
        status = argument_require(values, __func__, "values", &error);
    }
    if (status == CADRE_OK) {
        status = batch_reduce(strategy, op, values, destinations, count, ret_values, &error);
    }
    return api_return(status, &error);
}
