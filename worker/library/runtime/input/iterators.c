/* SPDX-License-Identifier: Apache-2.0
 * Iterators: further ways through one dataset, at a time and one after the other. Each is a stream
 * of its own in the ledger, so that two of them may be in the middle of the data at a time, and its
 * number is its epoch there. A stream that was released is the next iterator's: programs that make
 * and release them alike have the same streams, whenever they come. The program calls it. */
#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_distributed_dataset *iterators_find(const cadre_strategy *strategy, const char *name)
{
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        if (strcmp(strategy->input->datasets[i]->name, name) == 0) {
            return strategy->input->datasets[i];
        }
    }
    return NULL;
}

/* The first that the program does not have; NULL: there is none. */
static cadre_distributed_dataset *find_free(const cadre_distributed_dataset *distributed)
{
    const struct input_part *input = distributed->strategy->input;
    for (uint32_t i = 0; i < input->dataset_count; i++) {
        const struct iterating *iterating = &input->datasets[i]->iterating;
        if (iterating->of == distributed && !iterating->taken) {
            return input->datasets[i];
        }
    }
    return NULL;
}

cadre_status iterator_receive(cadre_strategy *strategy, const char *name, const char *of,
    uint64_t steps, struct cadre_error *error)
{
    cadre_distributed_dataset *iterator = iterators_find(strategy, name);
    cadre_distributed_dataset *distributed = iterators_find(strategy, of);
    if (distributed == NULL || distributed->iterating.of != NULL) {
        return CADRE_OK; /* of a dataset that this program does not have */
    }
    if (iterator == NULL) {
        CADRE_TRY(distributed_make_iterator(distributed, &iterator, error));
    }
    if (iterator->iterating.of == distributed && !iterator->iterating.taken) {
        iterator->steps_per_epoch = steps;
        iterator->steps = distributed_steps_now(iterator);
    }
    return CADRE_OK;
}

/* --- entering --- */

/* A warm task's program passes over what the others have finished. */
static bool is_over(const void *user)
{
    const cadre_distributed_dataset *iterator = user;
    struct stream_position position;
    if (!task_warm_stream(iterator->strategy->task, iterator->stream, &position)) {
        return false;
    }
    uint64_t number = iterator->iterating.number;
    return position.epoch > number ||
           (position.epoch == number && position.steps > 0 && position.applied >= position.steps);
}

cadre_status iterator_enter(cadre_distributed_dataset *iterator, struct cadre_error *error)
{
    struct iterating *iterating = &iterator->iterating;
    const struct dataset_position *at = &iterator->at;
    bool over = false;
    CADRE_ASSERT(iterating->taken);
    if (iterating->entered) {
        return CADRE_OK;
    }
    CADRE_TRY(strategy_check(iterator->strategy, error));
    CADRE_TRY(join_job(iterator->strategy, iterator->stream, is_over, iterator, &over, error));
    bool again = at->epochs_begun == iterating->number + 1;
    iterating->entered = true;
    iterating->passed = over || at->epochs_begun > iterating->number + 1 || (again && !at->open);
    return iterating->passed ? CADRE_OK
                             : distributed_start(iterator, iterating->number, again, error);
}

/* --- public --- */

static cadre_status iterators_iterate(cadre_distributed_dataset *distributed, uint64_t number,
    uint64_t steps, cadre_distributed_dataset **ret_iterator, struct cadre_error *error)
{
    if (distributed->iterating.of != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_distributed_iterate was called with an iterator of dataset '%s'; call it with "
            "the dataset",
            distributed->iterating.of->name);
    }
    if (number < distributed->numbers || number >= LIMIT_POSITION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "iterator %" PRIu64 " of dataset '%s': the next number is %" PRIu64
            ", or any above it; each iterator has one of its own, since it is the epoch that the "
            "ledger counts",
            number, distributed->name, distributed->numbers);
    }
    if (steps >= LIMIT_POSITION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu64 " steps of an iterator are too many; give less than %llu, or 0 for as many "
            "as there are",
            steps, LIMIT_POSITION);
    }
    CADRE_TRY(strategy_check(distributed->strategy, error));
    cadre_distributed_dataset *iterator = find_free(distributed);
    if (iterator == NULL) {
        CADRE_TRY(distributed_make_iterator(distributed, &iterator, error));
    }
    distributed->numbers = number + 1;
    iterator->steps_per_epoch = steps > 0 ? steps : distributed->steps_per_epoch;
    iterator->epochs = UINT64_MAX; /* how many there will be is unknown */
    iterator->iterating = (struct iterating){.of = distributed, .taken = true, .number = number};
    iterator->steps = distributed_steps_of(iterator, number);
    *ret_iterator = iterator;
    return CADRE_OK;
}

cadre_status cadre_distributed_iterate(cadre_distributed_dataset *distributed, uint64_t number,
    uint64_t steps, cadre_distributed_dataset **ret_iterator)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_iterator, __func__, "ret_iterator", &error);
    if (status == CADRE_OK) {
        *ret_iterator = NULL;
        status = distributed_require(distributed, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = strategy_require(distributed->strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = iterators_iterate(distributed, number, steps, ret_iterator, &error);
    }
    return api_return(status, &error);
}

static void iterators_release(cadre_distributed_dataset *iterator)
{
    struct iterating *iterating = &iterator->iterating;
    distributed_drop_batch(iterator);
    if (iterator->prefetcher != NULL) {
        input_prefetcher_cancel(iterator->prefetcher);
    }
    iterator->reads_epoch = UINT64_MAX;
    if (iterating->entered && !iterating->passed) {
        iterator->at.open = false;
    }
    iterating->taken = false;
}

void cadre_distributed_release(cadre_distributed_dataset *iterator)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    if (iterator == NULL) {
        return;
    }
    cadre_status status = distributed_require(iterator, __func__, &error);
    if (status == CADRE_OK) {
        status = strategy_require(iterator->strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && iterator->iterating.of == NULL) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "dataset '%s' is no iterator and ends with its strategy; do not release it",
            iterator->name);
    }
    if (status == CADRE_OK) {
        iterators_release(iterator);
    }
    api_return(status, &error);
}
