/* SPDX-License-Identifier: Apache-2.0
 * The program's way through a distributed dataset: epochs and batches, and how it gets back into an
 * epoch that others, or a task before it, are in the middle of. */
#include <inttypes.h>

#include "worker/device/argument.h"
#include "worker/runtime/border.h"
#include "worker/runtime/input.h"
#include "worker/runtime/join.h"
#include "worker/runtime/strategy.h"
#include "worker/runtime/values.h"

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

/* --- epochs --- */

/* Whether steps of the current epoch are left. Where only reading tells they may be. */
static bool is_partly_applied(const cadre_distributed_dataset *distributed)
{
    return distributed->at.open && distributed->at.epochs_begun > 0 &&
           (distributed->steps < 0 || distributed->at.applied < (uint64_t)distributed->steps);
}

/* An epoch that is all applied is found again when the program, after it, was in the middle of
 * another dataset: its evaluation. */
static bool leads_to_another(const cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = distributed->strategy;
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        const cadre_distributed_dataset *other = strategy->datasets[i];
        if (other != distributed && is_partly_applied(other) &&
            other->at.serial > distributed->at.serial) {
            return distributed->at.open;
        }
    }
    return false;
}

/* The state came from elsewhere, and no step was applied since: the program is led to where that
 * stands. False: the epoch is not entered again. */
static bool reenter(cadre_distributed_dataset *distributed)
{
    bool again = distributed->reenters && distributed->at.epochs_begun > 0 &&
                 (is_partly_applied(distributed) || leads_to_another(distributed));
    distributed->reenters = false;
    return again;
}

static void begin(cadre_distributed_dataset *distributed)
{
    distributed->at = (struct dataset_position){
        .epochs_begun = distributed->at.epochs_begun + 1,
        .open = true,
        .serial = ++distributed->strategy->serial_last,
        .feed = {.provable = true},
    };
}

struct wanted {
    const cadre_distributed_dataset *distributed;
    uint64_t epochs;
};

/* A warm task's program passes over what the others are done with. */
static bool is_over(const void *user)
{
    const struct wanted *wanted = user;
    const cadre_distributed_dataset *distributed = wanted->distributed;
    struct stream_position position;
    return task_warm_stream(distributed->strategy->task, distributed->stream, &position) &&
           position.epoch + 1 >= wanted->epochs && position.steps > 0 &&
           position.applied >= position.steps;
}

/* *ret_begun: there is an epoch to run. */
static cadre_status next_epoch(cadre_distributed_dataset *distributed, uint64_t epochs,
    bool *ret_begun, struct cadre_error *error)
{
    cadre_strategy *strategy = distributed->strategy;
    const struct wanted wanted = {.distributed = distributed, .epochs = epochs};
    bool over = epochs == 0;
    *ret_begun = false;
    if (!over) {
        CADRE_TRY(join_job(strategy, distributed->stream, is_over, &wanted, &over, error));
    }
    if (over) {
        return CADRE_OK;
    }
    bool again = distributed->at.epochs_begun <= epochs && reenter(distributed);
    if (!again && distributed->at.epochs_begun >= epochs) {
        distributed->at.open = false;
        return CADRE_OK;
    }
    drop_batch(distributed);
    if (!again) {
        begin(distributed);
    }
    distributed->epochs = epochs;
    distributed->next = distributed->at.applied;
    uint64_t epoch = distributed->at.epochs_begun - 1;
    /* The prefetcher may be reading the epoch before: it must not share the input. */
    input_prefetcher_cancel(distributed->prefetcher);
    distributed->reads_epoch = UINT64_MAX;
    distributed->steps = distributed_input_steps(distributed->input, epoch);
    distributed_seek(distributed, epoch, distributed->next);
    reports_epoch(strategy, distributed);
    *ret_begun = true;
    return CADRE_OK;
}

bool cadre_next_epoch(cadre_distributed_dataset *distributed, uint64_t epochs, uint64_t *ret_epoch)
{
    struct cadre_error error = {0};
    if (distributed_require(distributed, __func__, &error) != CADRE_OK) {
        border(error.code, &error);
        return false;
    }
    cadre_status status = strategy_enter(distributed->strategy, __func__, &error);
    bool begun = false;
    if (status == CADRE_OK && distributed->failed.code == CADRE_OK) {
        status = next_epoch(distributed, epochs, &begun, &error);
    }
    if (status != CADRE_OK) {
        border(sticky(distributed, &error), &error);
        return false;
    }
    if (begun && ret_epoch != NULL) {
        *ret_epoch = distributed->at.epochs_begun - 1;
    }
    return begun;
}

/* --- batches --- */

/* A value of the program's with the tensors of the input's batch. */
static cadre_status make_batch(cadre_distributed_dataset *distributed,
    struct distributed_batch *batch, cadre_per_replica **ret_value, struct cadre_error *error)
{
    cadre_per_replica *value = per_replica_new(batch->replicas, batch->elements[0].count);
    if (value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch");
    }
    value->source =
        (struct batch_source){.dataset = distributed, .epoch = batch->epoch, .step = batch->step};
    batch_take_over(value, batch);
    *ret_value = value;
    return CADRE_OK;
}

static cadre_status next(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    cadre_status status = distributed_require(distributed, "cadre_next", error);
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
    if (distributed->at.epochs_begun == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "dataset '%s' is in no epoch; call cadre_next_epoch before cadre_next",
            distributed->name);
    }
    drop_batch(distributed);
    struct distributed_batch batch = {0};
    status = distributed_read(
        distributed, distributed->at.epochs_begun - 1, distributed->next, &batch, error);
    if (status == CADRE_OK) {
        distributed->next++;
        status = make_batch(distributed, &batch, &distributed->batch, error);
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
    if (distributed_require(distributed, __func__, &error) == CADRE_OK) {
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
    bool begun = distributed_lives(distributed) && distributed->at.epochs_begun > 0;
    return begun ? distributed->at.epochs_begun - 1 : 0;
}

uint64_t cadre_step(const cadre_distributed_dataset *distributed)
{
    return distributed_lives(distributed) ? distributed->at.applied : 0;
}
