/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/optimizers/pending_update.h"

#include <stdlib.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/optimizers/update_component.h"
#include "worker/library/runtime/step/apply_function.h"
#include "worker/library/runtime/strategy/strategy.h"

static uint64_t attempt_now(const cadre_replica *replica)
{
    return atomic_load_explicit(&replica->strategy->step.begun, memory_order_relaxed);
}

void pending_update_release(struct pending_update *turn)
{
    CADRE_ASSERT(turn->count <= turn->capacity);
    for (size_t i = 0; i < turn->count; i++) {
        cadre_tensor_release(turn->variables[i].gradient);
        cadre_tensor_release(turn->variables[i].rows);
    }
    turn->count = 0;
    turn->attempt = 0;
}

cadre_status pending_update_open(
    struct pending_update *turn, size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(turn->count == 0);
    if (count <= turn->capacity) {
        return CADRE_OK;
    }
    free(turn->variables);
    free(turn->tensors);
    turn->variables = calloc(count, sizeof turn->variables[0]);
    turn->tensors = fault_point("optimizer.turn") ? NULL : calloc(count, sizeof(cadre_tensor *));
    turn->capacity = count;
    if (turn->variables == NULL || turn->tensors == NULL) {
        turn->capacity = 0;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu gradients", count);
    }
    return CADRE_OK;
}

void pending_update_close(struct pending_update *turn)
{
    pending_update_release(turn);
    free(turn->variables);
    free(turn->tensors);
    turn->variables = NULL;
    turn->tensors = NULL;
    turn->capacity = 0;
}

cadre_status pending_update_acquire(cadre_replica *replica, cadre_optimizer *optimizer,
    size_t count, struct pending_update **ret_turn, struct cadre_error *error)
{
    CADRE_ASSERT(replica->local < optimizer->pending_lists);
    uint64_t now = attempt_now(replica);
    struct pending_update *turn = NULL;
    for (struct pending_update *at = optimizer->turns[replica->local]; at != NULL; at = at->next) {
        if (at->attempt != now) {
            pending_update_release(at); /* of a step that did not count */
            turn = at;
        }
    }
    if (turn == NULL) {
        turn = calloc(1, sizeof *turn);
        if (turn == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for an update of %zu variables", count);
        }
        turn->optimizer = optimizer;
        turn->next = optimizer->turns[replica->local];
        optimizer->turns[replica->local] = turn;
    }
    CADRE_TRY(pending_update_open(turn, count, error));
    turn->attempt = now;
    *ret_turn = turn;
    return CADRE_OK;
}

/* The step counts: nothing can fail any more. */
static void pending_update_apply(cadre_replica *replica, void *user)
{
    struct pending_update *turn = user;
    CADRE_ASSERT(replica->apply.running);
    for (size_t i = 0; i < turn->count; i++) {
        const struct pending_update_part *part = &turn->variables[i];
        if (component_is_updated_by(part->of->variable, replica->local)) {
            struct cadre_error ignored; /* a failed launch is returned by the next step */
            update_component(turn->optimizer, part, replica->local, &ignored);
        }
    }
    pending_update_release(turn);
}

void pending_update_schedule(cadre_replica *replica, struct pending_update *turn)
{
    CADRE_ASSERT(turn->attempt == attempt_now(replica));
    turn->call.function = pending_update_apply;
    turn->call.user = turn;
    apply_add(replica, &turn->call);
}

void pending_updates_free(cadre_optimizer *optimizer)
{
    for (uint32_t local = 0; local < optimizer->pending_lists; local++) {
        struct pending_update *next = NULL;
        for (struct pending_update *turn = optimizer->turns[local]; turn != NULL; turn = next) {
            next = turn->next;
            pending_update_close(turn);
            free(turn);
        }
    }
    free(optimizer->turns);
    optimizer->turns = NULL;
    optimizer->pending_lists = 0;
}
