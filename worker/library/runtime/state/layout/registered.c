/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/layout/registered.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

bool registered_has_name(const cadre_strategy *strategy, const char *name)
{
    size_t prefix = strlen(REGISTERED_PREFIX);
    if (strncmp(name, REGISTERED_PREFIX, prefix) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        if (strcmp(strategy->state_part->registered[i].name, name + prefix) == 0) {
            return true;
        }
    }
    return false;
}

void registered_free(cadre_strategy *strategy)
{
    CADRE_ASSERT(
        strategy->state_part->registered_count == 0 || strategy->state_part->registered != NULL);
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        free(strategy->state_part->registered[i].kept);
        free(strategy->state_part->registered[i].given);
    }
    free(strategy->state_part->registered);
    strategy->state_part->registered = NULL;
    strategy->state_part->registered_count = 0;
}

/* --- the point of the loop --- */

const void *registered_data(const struct registered_state *state)
{
    CADRE_ASSERT(!state->waits || state->given != NULL);
    return state->waits ? state->given : state->pointer;
}

static void registered_drop(struct registered_state *state)
{
    free(state->given);
    state->given = NULL;
    state->waits = false;
}

void registered_received(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        struct registered_state *state = &strategy->state_part->registered[i];
        if (strategy->state_part->captured_at == LOOP_BETWEEN_STEPS || state->given == NULL) {
            registered_drop(state);
        } else {
            memcpy(state->given, state->pointer, state->size);
            state->waits = true;
        }
    }
}

void registered_deliver(cadre_strategy *strategy, enum loop_point loop_point)
{
    if (strategy->state_part->captured_at == LOOP_BETWEEN_STEPS ||
        loop_point < strategy->state_part->captured_at) {
        return;
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        struct registered_state *state = &strategy->state_part->registered[i];
        if (state->waits) {
            memcpy(state->pointer, state->given, state->size);
        }
        registered_drop(state);
    }
    strategy->state_part->captured_at = LOOP_BETWEEN_STEPS;
}
