/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variable_reset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/replica/collective_key.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status variable_reset_open(cadre_variable *variable, struct cadre_error *error)
{
    CADRE_ASSERT(variable->reset == NULL);
    CADRE_ASSERT(variable->strategy != NULL);
    CADRE_ASSERT(variable->host == NULL);
    struct variable_reset *reset = calloc(1, sizeof *reset);
    if (reset == NULL || (reset->held.value = calloc(1, variable->bytes)) == NULL) {
        free(reset);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for resets of variable '%s'", variable->name);
    }
    variable->reset = reset;
    return CADRE_OK;
}

static struct variable_component *value_of_state(cadre_variable *variable)
{
    return variable->on_read ? &variable->total : &variable->components[0];
}

const struct variable_component *variable_state(const cadre_variable *variable)
{
    if (variable->reset != NULL && variable->reset->done) {
        return &variable->reset->held;
    }
    return variable->on_read ? &variable->total : &variable->components[0];
}

/* --- one variable --- */

static void set_back(cadre_variable *variable)
{
    struct variable_reset *reset = variable->reset;
    struct variable_component *state = value_of_state(variable);
    CADRE_ASSERT(!reset->done);
    CADRE_ASSERT(!state->written);
    between_steps_settle(variable->strategy, variable->components[0].value);
    memcpy(reset->held.value, state->value, variable->bytes);
    reset->held.writes = state->writes; /* a cached hash of that value is one of this value */
    memset(state->value, 0, variable->bytes);
    for (uint32_t i = 0; i < variable->component_count; i++) {
        memset(variable->components[i].value, 0, variable->bytes);
    }
    reset->done = true;
}

/* In a job that goes on from a checkpoint, on the way to its position: the reset was made again,
 * and is in the checkpoint's value, or does not belong to it. */
static void take_back(cadre_variable *variable)
{
    CADRE_ASSERT(variable->reset->done);
    memcpy(value_of_state(variable)->value, variable->reset->held.value, variable->bytes);
    if (variable->on_read) {
        on_read_spread(variable);
    }
    variable->reset->done = false;
}

void variable_reset(cadre_variable *variable)
{
    CADRE_ASSERT(variable->reset != NULL);
    CADRE_ASSERT(!atomic_load(&variable->strategy->step.running));
    cadre_strategy *strategy = variable->strategy;
    variable->reset->awaits = 1;
    if (!variable->reset->done && !strategy_is_catching_up(strategy) &&
        !strategy_is_warm(strategy)) {
        set_back(variable);
    }
}

/* --- all variables --- */

void variable_resets_settle(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        const struct variable_reset *reset = variable->reset;
        if (reset != NULL && reset->awaits != 0 && !reset->done) {
            set_back(variable);
        } else if (reset != NULL && reset->awaits == 0 && reset->done) {
            take_back(variable);
        }
    }
}

void variable_resets_applied(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        if (variable->reset != NULL && variable->reset->awaits != 0) {
            variable->reset->awaits = 0;
            variable->reset->done = false;
            value_of_state(variable)->writes++; /* a step that added nothing has changed it too */
        }
    }
}

void variable_resets_taken_over(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        if (strategy->variables->list[i]->reset != NULL) {
            strategy->variables->list[i]->reset->done = false;
        }
    }
}

uint64_t variable_resets_key(
    const cadre_strategy *strategy, uint64_t key, char text[LIMIT_NAME_BYTES + 32])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->reset == NULL || variable->reset->awaits == 0) {
            continue;
        }
        key = collective_key_text(key, variable->name);
        if (text[0] == '\0') {
            snprintf(text, LIMIT_NAME_BYTES + 32, ", after a reset of '%s'", variable->name);
        }
    }
    return key;
}
