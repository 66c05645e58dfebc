/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/step.h"

#include "worker/runtime/strategy.h"

void step_begin(
    cadre_strategy *strategy, uint64_t position, int64_t global_rows, uint32_t input_count)
{
    struct step *step = &strategy->step;
    step->position = position;
    step->global_rows = global_rows;
    step->input_count = input_count;
    atomic_store(&step->admitted, false);
    step->some_ended = false;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        strategy->replicas[i].collectives = 0;
        strategy->replicas[i].all_know = false;
        strategy->replicas[i].collective_failed = (struct cadre_error){0};
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

cadre_status step_collective(cadre_replica *replica, uint32_t *ret_index, struct cadre_error *error)
{
    if (replica == NULL || !replica->active) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "a collective was called outside of a replica function; call it from the function "
            "given to cadre_run");
    }
    struct step *step = &replica->strategy->step;
    pthread_mutex_lock(&step->lock);
    uint32_t index = replica->collectives++;
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
    if (status != CADRE_OK && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
    }
    return status;
}

cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, const struct cadre_error *error)
{
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
