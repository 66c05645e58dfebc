/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/state/registered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/checkpoint.h"
#include "worker/device/argument.h"
#include "worker/runtime/border.h"
#include "worker/runtime/collectives/collective.h"
#include "worker/runtime/name.h"
#include "worker/runtime/strategy.h"

bool registered_stands_as(const cadre_strategy *strategy, const char *name)
{
    size_t prefix = strlen(REGISTERED_PREFIX);
    if (strncmp(name, REGISTERED_PREFIX, prefix) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < strategy->registered_count; i++) {
        if (strcmp(strategy->registered[i].name, name + prefix) == 0) {
            return true;
        }
    }
    return false;
}

void registered_free(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->registered_count; i++) {
        free(strategy->registered[i].kept);
    }
    free(strategy->registered);
    strategy->registered = NULL;
    strategy->registered_count = 0;
}

static cadre_status check(const cadre_strategy *strategy, const char *name, const void *pointer,
    size_t size, struct cadre_error *error)
{
    char stands_as[LIMIT_NAME_BYTES + sizeof REGISTERED_PREFIX];
    cadre_status status = name_check("registered state", name, error);
    if (status != CADRE_OK) {
        return status;
    }
    snprintf(stands_as, sizeof stands_as, REGISTERED_PREFIX "%s", name);
    if (registered_stands_as(strategy, stands_as) ||
        cadre_variable_find(strategy, stands_as) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "the name '%s' is taken, by another registered state or by the variable '%s'; choose "
            "another",
            name, stands_as);
    }
    if (size == 0 || size > (size_t)INT64_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the state '%s' has %zu bytes; give the size of what `pointer` points to", name, size);
    }
    if (strategy_position(strategy) > 0 && !strategy_warm(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state '%s' was registered after the first step; register all before", name);
    }
    return argument_require(pointer, "cadre_state_register", "pointer", error);
}

/* Tasks that register other things would take over each other's bytes. */
static cadre_status meet_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    const struct registered_state *state = user;
    uint64_t key = collective_key(strategy->registered_count, state->size);
    for (const char *c = state->name; *c != '\0'; c++) {
        key = collective_key(key, (uint64_t)(unsigned char)*c);
    }
    cadre_status status = collective_sum(strategy, local, NULL, 0, key, error);
    return status != CADRE_INVALID_ARGUMENT
               ? status
               : cadre_error_wrap(error, status,
                     "state '%s' of %zu bytes: the tasks do not register the same states in the "
                     "same order",
                     state->name, state->size);
}

cadre_status cadre_state_register(
    cadre_strategy *strategy, const char *name, void *pointer, size_t size)
{
    struct cadre_error error = {0};
    struct registered_state state = {.pointer = pointer, .size = size};
    struct registered_state *grown = NULL;
    cadre_status status = strategy_enter(strategy, __func__, &error);
    if (status == CADRE_OK) {
        status = check(strategy, name, pointer, size, &error);
    }
    if (status == CADRE_OK) {
        grown = realloc(
            strategy->registered, (strategy->registered_count + 1) * sizeof *strategy->registered);
        if (grown == NULL) {
            status = cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "no memory for the registered state '%s'", name);
        }
    }
    if (status != CADRE_OK) {
        return border(status, &error);
    }
    strategy->registered = grown;
    memcpy(state.name, name, strlen(name) + 1);
    if (!strategy_warm(strategy)) {
        char what[STRATEGY_WHAT_BYTES];
        snprintf(what, sizeof what, "cadre_state_register of '%.80s' with %zu bytes", name, size);
        status = strategy_outside(strategy, what, meet_here, &state, &error);
    }
    if (status == CADRE_OK) {
        grown[strategy->registered_count++] = state;
    }
    return border(status, &error);
}
