/* SPDX-License-Identifier: Apache-2.0
 * See worker_batches.h. Called by closure.c. */
#include "worker/library/runtime/closures/worker_batches.h"

#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/values/values.h"

/* The way of the first call is that of all. */
static cadre_status open_input(struct worker_batches *batches, cadre_dataset *data,
    const char *name, cadre_feed consumption, uint32_t replicas, struct cadre_error *error)
{
    const struct distributed_layout layout = {.workers = 1, .replicas = replicas, .name = name};
    CADRE_ASSERT(batches->input == NULL);
    batches->consumption = consumption;
    return consumption == CADRE_FEED_PARTS
               ? distributed_input_open(data, &layout, &batches->input, error)
               : distributed_input_open_pipelines(&data, 1, &layout, &batches->input, error);
}

static cadre_status check_consumption(
    const struct worker_batches *batches, cadre_feed consumption, struct cadre_error *error)
{
    if (consumption != CADRE_FEED_ELEMENTS && consumption != CADRE_FEED_PARTS) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a way to feed the replicas of a worker; use CADRE_FEED_ELEMENTS or "
            "CADRE_FEED_PARTS",
            (int)consumption);
    }
    if (batches->input != NULL && consumption != batches->consumption) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "it was read before as %s, and now as %s; read it in one way in all closures",
            batches->consumption == CADRE_FEED_PARTS ? "parts of elements" : "elements",
            consumption == CADRE_FEED_PARTS ? "parts of elements" : "elements");
    }
    return CADRE_OK;
}

/* As cadre_next does: elements of one fixed shape for all replicas or none. */
static cadre_status end_here(const struct worker_batches *batches, const char *name, uint32_t left,
    struct cadre_error *error)
{
    if (left > 0) {
        show_warning("the worker's dataset `%s` ended with %" PRIu32
                     " element%s left, which cadre_closure_batch gives to none of the replicas, as "
                     "all elements have one fixed shape and not all replicas would have one; batch "
                     "without drop_remainder",
            name, left, left == 1 ? "" : "s");
    }
    return cadre_error_set(
        error, CADRE_OUT_OF_RANGE, "it has ended, after %" PRIu64 " steps", batches->step);
}

static cadre_status make_value(const struct worker_batches *batches,
    struct distributed_batch *batch, cadre_per_replica **ret_batch, struct cadre_error *error)
{
    cadre_per_replica *value = per_replica_new(batch->replicas, batch->elements[0].count);
    if (value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "there is no memory for a batch");
    }
    CADRE_ASSERT(batch->staged == NULL); /* no copy of it was begun */
    value->names = distributed_input_spec(batches->input)->names;
    value->source.global_rows = (int64_t)batch->global_rows;
    for (uint32_t replica = 0; replica < batch->replicas; replica++) {
        cadre_element *element = &batch->elements[replica];
        for (uint32_t i = 0; i < element->count; i++) {
            *per_replica_at(value, i, replica) = element->tensors[i];
        }
        element->count = 0;
    }
    per_replica_show(value);
    *ret_batch = value;
    return CADRE_OK;
}

static cadre_status read_step(struct worker_batches *batches, const char *name,
    cadre_per_replica **ret_batch, struct cadre_error *error)
{
    struct distributed_batch batch = {0};
    CADRE_TRY(distributed_input_read(batches->input, 0, batches->step, &batch, error));
    cadre_status status =
        batch.present < batch.replicas && !distributed_input_gives_partial(batches->input)
            ? end_here(batches, name, batch.present, error)
            : make_value(batches, &batch, ret_batch, error);
    distributed_batch_clear(&batch);
    batches->step += status == CADRE_OK ? 1 : 0;
    return status;
}

cadre_status worker_batches_next(struct worker_batches *batches, cadre_dataset *data,
    const char *name, cadre_feed consumption, uint32_t replicas, cadre_per_replica **ret_batch,
    struct cadre_error *error)
{
    CADRE_TRY(check_consumption(batches, consumption, error));
    cadre_status status = batches->ended.code;
    if (status == CADRE_OK && batches->input == NULL) {
        status = open_input(batches, data, name, consumption, replicas, &batches->ended);
    }
    if (status == CADRE_OK) {
        status = read_step(batches, name, ret_batch, &batches->ended);
    }
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    return cadre_error_set(error, status, "dataset `%s`: %s", name, batches->ended.text);
}

void worker_batches_clear(struct worker_batches *batches)
{
    distributed_input_close(batches->input);
    *batches = (struct worker_batches){0};
}
