/* SPDX-License-Identifier: Apache-2.0
 * The program's way through the epochs of a distributed dataset, and back into one that others, or
 * a task before it, are in the middle of. The program's cadre_next_epoch calls it. */
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* An epoch that is all applied is entered again when the program, after it, was in the middle of
 * another dataset: its evaluation. */
static bool leads_to_another(const cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = distributed->strategy;
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        const cadre_distributed_dataset *other = strategy->input->datasets[i];
        if (other != distributed && distributed_is_partly_applied(other) &&
            other->at.serial > distributed->at.serial) {
            return distributed->at.open;
        }
    }
    return false;
}

/* The state was received, and no step was applied since: the program re-enters the job at its
 * position. False: the epoch is not entered again. */
static bool input_epochs_reenter(cadre_distributed_dataset *distributed)
{
    bool again = distributed->reenters && distributed->at.epochs_begun > 0 &&
                 (distributed_is_partly_applied(distributed) || leads_to_another(distributed));
    distributed->reenters = false;
    return again;
}

static void input_epochs_begin(cadre_distributed_dataset *distributed, uint64_t epoch)
{
    CADRE_ASSERT(distributed->at.epochs_begun <= epoch);
    distributed->at = (struct dataset_position){
        .epochs_begun = epoch + 1,
        .open = true,
        .workers = distributed->strategy->roster.member_count,
        .serial = ++distributed->strategy->input->serial_last,
        .consumption = {.provable = true},
    };
}

cadre_status distributed_start(
    cadre_distributed_dataset *distributed, uint64_t epoch, bool again, struct cadre_error *error)
{
    cadre_strategy *strategy = distributed->strategy;
    distributed_drop_batch(distributed);
    distributed->exists_until =
        again && strategy_is_catching_up(strategy) ? distributed->at.next : 0;
    if (!again) {
        input_epochs_begin(distributed, epoch);
    }
    CADRE_ASSERT(distributed->at.epochs_begun == epoch + 1);
    distributed->at.next = distributed->at.applied;
    /* The prefetcher may be reading the epoch before: it must not share the input. */
    if (!distributed->endless) {
        input_prefetcher_cancel(distributed->prefetcher);
        distributed->reads_epoch = UINT64_MAX;
    }
    if (!again) {
        CADRE_TRY(distributed_begin(distributed, error));
    }
    distributed->steps = distributed_steps_now(distributed);
    distributed_seek(distributed, epoch, distributed->at.next);
    reports_epoch(strategy, distributed);
    return CADRE_OK;
}

struct wanted {
    const cadre_distributed_dataset *distributed;
    uint64_t epochs;
};

/* A warm task's program passes over what the others have finished. */
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
    bool again = distributed->at.epochs_begun <= epochs && input_epochs_reenter(distributed);
    if (!again && distributed->at.epochs_begun >= epochs) {
        distributed->at.open = false;
        return CADRE_OK;
    }
    distributed->epochs = epochs;
    CADRE_TRY(distributed_start(
        distributed, distributed->at.epochs_begun - (again ? 1 : 0), again, error));
    *ret_begun = true;
    return CADRE_OK;
}

bool cadre_next_epoch(cadre_distributed_dataset *distributed, uint64_t epochs, uint64_t *ret_epoch)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    if (distributed_require(distributed, __func__, &error) != CADRE_OK) {
        api_return(error.code, &error);
        return false;
    }
    cadre_status status = strategy_require(distributed->strategy, __func__, &call, &error);
    bool begun = false;
    if (status == CADRE_OK && distributed->iterating.of != NULL) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%s was called with an iterator, which has one epoch; call cadre_next, and "
            "cadre_distributed_iterate for a new one",
            __func__);
    }
    if (status != CADRE_OK) {
        api_return(status, &error); /* it is in another call, or has ended; or no dataset */
        return false;
    }
    status = strategy_check(distributed->strategy, &error);
    if (status != CADRE_OK && distributed->strategy->left) {
        api_return(status, &error); /* nothing is wrong with the dataset */
        return false;
    }
    if (status == CADRE_OK && distributed->failed.code == CADRE_OK) {
        status = next_epoch(distributed, epochs, &begun, &error);
    }
    if (status != CADRE_OK) {
        api_return(distributed_fail(distributed, &error), &error);
        return false;
    }
    if (begun && ret_epoch != NULL) {
        *ret_epoch = distributed->at.epochs_begun - 1;
    }
    return begun;
}
