/* SPDX-License-Identifier: Apache-2.0
 * See variable_list.h. Called by the creation of variables in state/ and at the end of steps. */
#include "worker/library/runtime/variables/variable_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

/* The index of the name, or of its insertion, in the strategy's list, which is in order of name.
 * True: it is there. */
static bool variable_index(const cadre_strategy *strategy, const char *name, uint32_t *ret_index)
{
    uint32_t low = 0;
    uint32_t high = strategy->variables->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(strategy->variables->list[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_index = low;
    CADRE_ASSERT(low <= strategy->variables->count);
    return low < strategy->variables->count &&
           strcmp(strategy->variables->list[low]->name, name) == 0;
}

cadre_variable *variable_lookup(const cadre_strategy *strategy, const char *name)
{
    uint32_t index = 0;
    return variable_index(strategy, name, &index) ? strategy->variables->list[index] : NULL;
}

cadre_status variables_room(cadre_strategy *strategy, struct cadre_error *error)
{
    struct variables_part *part = strategy->variables;
    CADRE_ASSERT(part->count <= part->capacity);
    if (part->count < part->capacity || part->larger != NULL) {
        return CADRE_OK;
    }
    uint32_t capacity = part->capacity == 0 ? 16 : part->capacity * 2;
    part->larger = malloc(capacity * sizeof(cadre_variable *));
    return part->larger != NULL ? CADRE_OK
                                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                      "no memory for %u variables", part->count + 1);
}

static void variable_list_grow(struct variables_part *part)
{
    CADRE_ASSERT(part->larger != NULL);
    if (part->count > 0) {
        memcpy(part->larger, part->list, part->count * sizeof(cadre_variable *));
    }
    free(part->list);
    part->list = part->larger;
    part->larger = NULL;
    part->capacity = part->capacity == 0 ? 16 : part->capacity * 2;
}

void variables_put(cadre_strategy *strategy, cadre_variable *variable)
{
    struct variables_part *part = strategy->variables;
    uint32_t index = 0;
    bool there = variable_index(strategy, variable->name, &index);
    CADRE_ASSERT(!there);
    if (part->count == part->capacity) {
        variable_list_grow(part);
    }
    cadre_variable **at = &part->list[index];
    memmove(at + 1, at, (part->count - index) * sizeof *at);
    *at = variable;
    part->count++;
}

static bool is_in(
    const cadre_strategy *strategy, const cadre_variable *variable, uint32_t *ret_index)
{
    return variable_index(strategy, variable->name, ret_index) &&
           strategy->variables->list[*ret_index] == variable;
}

/* A step that failed before all replicas had received the variable has not added it. */
static void take_out(cadre_strategy *strategy, const cadre_variable *variable)
{
    struct variables_part *part = strategy->variables;
    uint32_t index = 0;
    if (is_in(strategy, variable, &index)) {
        cadre_variable **at = &part->list[index];
        part->count--;
        memmove(at, at + 1, (part->count - index) * sizeof *at);
    }
}

void variable_mark_fresh(cadre_strategy *strategy, cadre_variable *variable)
{
    CADRE_ASSERT(!variable->origin.fresh);
    variable->origin.fresh = true;
    variable->next = strategy->variables->fresh;
    strategy->variables->fresh = variable;
}

/* --- undone ones --- */

static void lay_aside(cadre_variable *variable)
{
    cadre_strategy *strategy = variable->strategy;
    CADRE_ASSERT(strategy != NULL);
    variable_clear(variable);
    variable->strategy = NULL; /* its address in the program is refused by that */
    variable->origin = (struct variable_origin){.again = true};
    variable->next = strategy->variables->undone;
    strategy->variables->undone = variable;
}

cadre_variable *variables_revive(
    const struct variable_plan *plan, cadre_kind kind, uint32_t components)
{
    if (plan->strategy == NULL) {
        return NULL;
    }
    cadre_variable **at = &plan->strategy->variables->undone;
    for (; *at != NULL; at = &(*at)->next) {
        cadre_variable *variable = *at;
        if (strcmp(variable->name, plan->name) == 0 && variable->kind == kind &&
            variable->room == components) {
            *at = variable->next;
            memset(variable, 0, sizeof *variable);
            variable->origin.again = true;
            return variable;
        }
    }
    return NULL;
}

void variable_discard(cadre_variable *variable)
{
    if (variable != NULL && variable->origin.again) {
        lay_aside(variable);
    } else {
        variable_free(variable);
    }
}

/* --- the end of a step or state sync --- */

void variables_end_fresh(cadre_strategy *strategy, bool restore)
{
    struct variables_part *part = strategy->variables;
    while (part->fresh != NULL) {
        cadre_variable *variable = part->fresh;
        part->fresh = variable->next;
        variable->next = NULL;
        variable->origin.fresh = false;
        uint32_t index = 0;
        CADRE_ASSERT(restore || is_in(strategy, variable, &index));
        if (restore) {
            take_out(strategy, variable);
            lay_aside(variable);
        }
    }
}

void variables_free_undone(cadre_strategy *strategy)
{
    struct variables_part *part = strategy->variables;
    while (part->undone != NULL) {
        cadre_variable *variable = part->undone;
        part->undone = variable->next;
        free(variable);
    }
}
