/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/step.h"

#include <stdio.h>

#include "worker/device/argument.h"
#include "worker/device/tensor.h"
#include "worker/runtime/border.h"
#include "worker/runtime/strategy.h"

#define STEP_CALL_TEXT_BYTES (TENSOR_SHAPE_TEXT_BYTES + 256)

void step_begin(cadre_strategy *strategy, uint64_t position, int64_t global_rows,
    uint32_t input_count, const struct step_feed *own)
{
    struct step *step = &strategy->step;
    step->position = position;
    step->global_rows = global_rows;
    step->input_count = input_count;
    step->collectives_begun = 0;
    step->own = *own;
    step->feed_known = false;
    atomic_store(&step->admitted, false);
    step->some_ended = false;
    step->disagreement.code = CADRE_OK;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        cadre_replica *replica = &strategy->replicas[i];
        replica->collectives = 0;
        replica->all_know = false;
        replica->feed_told = false;
        replica->collective_failed = (struct cadre_error){0};
    }
    atomic_store(&step->running, true);
}

void step_end(cadre_strategy *strategy)
{
    struct step *step = &strategy->step;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        uint32_t begun = strategy->replicas[i].collectives;
        step->collectives_begun = begun > step->collectives_begun ? begun : step->collectives_begun;
    }
    if (!step->feed_known && strategy->roster.member_count == 1) {
        step->whole = step->own; /* nobody to tell it */
        step->feed_known = true;
    }
    atomic_store(&step->running, false);
}

cadre_status step_require(
    const cadre_replica *replica, const char *function, struct cadre_error *error)
{
    if (replica == NULL && context_replica() != NULL) {
        return argument_require(replica, function, "replica", error);
    }
    if (replica == NULL || !replica->active) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called outside of a replica function; call it from the function given to "
            "cadre_run",
            function);
    }
    return CADRE_OK;
}

void step_refused(cadre_replica *replica, const struct cadre_error *error)
{
    if (replica != NULL && replica->active && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
    }
}

/* --- who calls what --- */

static void describe(const cadre_replica *replica, char text[STEP_CALL_TEXT_BYTES])
{
    const struct step_call *call = &replica->call;
    char root[48] = "";
    char count[64] = "";
    char shape[TENSOR_SHAPE_TEXT_BYTES] = "";
    if (call->root >= 0) {
        snprintf(root, sizeof root, " from replica %lld", (long long)call->root);
    }
    if (call->tensor_count > 1) {
        snprintf(count, sizeof count, "%zu tensors, the first ", call->tensor_count);
    }
    if (call->tensor_count > 0) {
        tensor_shape_text(call->first.dtype, call->first.rank, call->first.dims, shape);
    }
    snprintf(text, STEP_CALL_TEXT_BYTES, "replica %u calls %s%s%s%s%s", replica->id,
        call->function != NULL ? call->function : "none", root,
        call->tensor_count > 0 ? " with " : "", count, shape);
}

/* Under the lock. */
static void compare_calls(cadre_strategy *strategy, const cadre_replica *replica)
{
    struct step *step = &strategy->step;
    for (uint32_t i = 0; i < strategy->local_replicas && step->disagreement.code == CADRE_OK; i++) {
        const cadre_replica *other = &strategy->replicas[i];
        if (other->collectives == replica->collectives && other->call.key != replica->call.key) {
            char theirs[STEP_CALL_TEXT_BYTES];
            char ours[STEP_CALL_TEXT_BYTES];
            describe(other, theirs);
            describe(replica, ours);
            cadre_error_set(&step->disagreement, CADRE_INVALID_ARGUMENT,
                "the replicas disagree in collective call %u of the step: %s, %s; all must make "
                "the same calls with the same types and shapes",
                replica->collectives, theirs, ours);
        }
    }
}

static cadre_status disagree(
    uint32_t more, uint32_t count, uint32_t less, uint32_t less_count, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the replicas disagree: replica %u makes at least %u collective calls in this step, "
        "replica %u makes %u; all must make the same ones",
        more, count, less, less_count);
}

cadre_status step_collective(cadre_replica *replica, const struct step_call *call,
    uint32_t *ret_index, struct cadre_error *error)
{
    struct step *step = &replica->strategy->step;
    pthread_mutex_lock(&step->lock);
    uint32_t index = replica->collectives++;
    replica->call = *call;
    compare_calls(replica->strategy, replica);
    cadre_status status = CADRE_OK;
    if (step->some_ended && step->ended_collectives <= index) {
        status =
            disagree(replica->id, index + 1, step->ended_replica, step->ended_collectives, error);
    }
    pthread_mutex_unlock(&step->lock);
    if (status == CADRE_OK && !atomic_load(&step->admitted)) {
        status = task_admit(replica->strategy->task, step->position, error);
        if (status == CADRE_OK) {
            atomic_store(&step->admitted, true);
        }
    }
    if (ret_index != NULL) {
        *ret_index = index;
    }
    if (status != CADRE_OK) {
        step_refused(replica, error);
    }
    return status;
}

cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, struct cadre_error *error)
{
    struct step *step = &replica->strategy->step;
    if (status == CADRE_INVALID_ARGUMENT) {
        pthread_mutex_lock(&step->lock);
        if (step->disagreement.code != CADRE_OK) {
            *error = step->disagreement;
        } else {
            char ours[STEP_CALL_TEXT_BYTES];
            describe(replica, ours);
            cadre_error_wrap(error, status,
                "%s, and another task calls something else, or the same with another value or "
                "shape, or "
                "cadre_finish; all must do the same",
                ours);
        }
        pthread_mutex_unlock(&step->lock);
    }
    if (status != CADRE_OK && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
        replica->all_know = status == CADRE_INVALID_ARGUMENT;
    }
    return status;
}

cadre_status step_replica_end(cadre_replica *replica, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct step *step = &strategy->step;
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&step->lock);
    for (uint32_t i = 0; i < strategy->local_replicas && status == CADRE_OK; i++) {
        const cadre_replica *other = &strategy->replicas[i];
        if (other->collectives > replica->collectives) {
            status =
                disagree(other->id, other->collectives, replica->id, replica->collectives, error);
        }
    }
    step->some_ended = true;
    step->ended_replica = replica->id;
    step->ended_collectives = replica->collectives;
    pthread_mutex_unlock(&step->lock);
    return status;
}
