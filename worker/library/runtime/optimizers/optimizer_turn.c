/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/optimizers/optimizer_turn.h"

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

void turn_give(struct optimizer_turn *turn)
{
    CADRE_ASSERT(turn->count <= turn->capacity);
    for (size_t i = 0; i < turn->count; i++) {
        cadre_tensor_release(turn->parts[i].gradient);
        cadre_tensor_release(turn->parts[i].rows);
    }
    turn->count = 0;
    turn->attempt = 0;
}

cadre_status turn_open(struct optimizer_turn *turn, size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(turn->count == 0);
    if (count <= turn->capacity) {
        return CADRE_OK;
    }
    free(turn->parts);
    free(turn->tensors);
    turn->parts = calloc(count, sizeof turn->parts[0]);
    turn->tensors = fault_point("optimizer.turn") ? NULL : calloc(count, sizeof(cadre_tensor *));
    turn->capacity = count;
    if (turn->parts == NULL || turn->tensors == NULL) {
        turn->capacity = 0;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu gradients", count);
    }
    return CADRE_OK;
}

void turn_close(struct optimizer_turn *turn)
{
    turn_give(turn);
    free(turn->parts);
    free(turn->tensors);
    turn->parts = NULL;
    turn->tensors = NULL;
    turn->capacity = 0;
}

cadre_status turn_take(cadre_replica *replica, cadre_optimizer *optimizer, size_t count,
    struct optimizer_turn **ret_turn, struct cadre_error *error)
{
    CADRE_ASSERT(replica->local < optimizer->turn_lists);
    uint64_t now = attempt_now(replica);
    struct optimizer_turn *turn = NULL;
    for (struct optimizer_turn *at = optimizer->turns[replica->local]; at != NULL; at = at->next) {
        if (at->attempt != now) {
            turn_give(at); /* of a step that did not count */
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
    CADRE_TRY(turn_open(turn, count, error));
    turn->attempt = now;
    *ret_turn = turn;
    return CADRE_OK;
}

/* The step counts: nothing can fail any more. */
static void apply(cadre_replica *replica, void *user)
{
    struct optimizer_turn *turn = user;
    CADRE_ASSERT(replica->apply.running);
    for (size_t i = 0; i < turn->count; i++) {
        const struct optimizer_part *part = &turn->parts[i];
        if (component_is_updated_by(part->of->variable, replica->local)) {
            struct cadre_error ignored; /* what cannot be launched comes out of the next step */
            update_component(turn->optimizer, part, replica->local, &ignored);
        }
    }
    turn_give(turn);
}

void turn_promise(cadre_replica *replica, struct optimizer_turn *turn)
{
    CADRE_ASSERT(turn->attempt == attempt_now(replica));
    turn->call.function = apply;
    turn->call.user = turn;
    apply_add(replica, &turn->call);
}

void turns_free(cadre_optimizer *optimizer)
{
    for (uint32_t local = 0; local < optimizer->turn_lists; local++) {
        struct optimizer_turn *next = NULL;
        for (struct optimizer_turn *turn = optimizer->turns[local]; turn != NULL; turn = next) {
            next = turn->next;
            turn_close(turn);
            free(turn);
        }
    }
    free(optimizer->turns);
    optimizer->turns = NULL;
    optimizer->turn_lists = 0;
}
