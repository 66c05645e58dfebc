/* SPDX-License-Identifier: Apache-2.0
 * All variables of the process, by address: the argument of a function may be one that has ended
 * with its strategy. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_registry.h"

static struct {
    pthread_mutex_t lock;
    const cadre_variable **all; /* in order of address */
    size_t count;
    size_t capacity;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The caller holds the lock. The index of the variable, or of its insertion. */
static size_t registry_slot_of(const cadre_variable *variable)
{
    size_t low = 0;
    size_t high = registry.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)registry.all[middle] < (uintptr_t)variable) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool variable_registry_add(const cadre_variable *variable)
{
    pthread_mutex_lock(&registry.lock);
    bool room = registry.count < registry.capacity;
    if (!room) {
        size_t capacity = registry.capacity == 0 ? 16 : registry.capacity * 2;
        const cadre_variable **grown = realloc(registry.all, capacity * sizeof *grown);
        room = grown != NULL;
        registry.all = room ? grown : registry.all;
        registry.capacity = room ? capacity : registry.capacity;
    }
    if (room) {
        size_t at = registry_slot_of(variable);
        CADRE_ASSERT(at == registry.count || registry.all[at] != variable);
        memmove(registry.all + at + 1, registry.all + at,
            (registry.count - at) * sizeof registry.all[0]);
        registry.all[at] = variable;
        registry.count++;
    }
    pthread_mutex_unlock(&registry.lock);
    return room;
}

void variable_registry_remove(const cadre_variable *variable)
{
    pthread_mutex_lock(&registry.lock);
    size_t at = registry_slot_of(variable);
    if (at < registry.count && registry.all[at] == variable) {
        registry.count--;
        memmove(registry.all + at, registry.all + at + 1,
            (registry.count - at) * sizeof registry.all[0]);
    }
    if (registry.count == 0) {
        free(registry.all);
        registry.all = NULL;
        registry.capacity = 0;
    }
    pthread_mutex_unlock(&registry.lock);
}

bool variable_is_registered(const cadre_variable *variable)
{
    pthread_mutex_lock(&registry.lock);
    size_t at = registry_slot_of(variable);
    bool attempts = at < registry.count && registry.all[at] == variable;
    CADRE_ASSERT(at <= registry.count);
    pthread_mutex_unlock(&registry.lock);
    return attempts;
}

cadre_status variable_require_registered(
    const cadre_variable *variable, const char *function, struct cadre_error *error)
{
    return variable_is_registered(variable)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s was called with a variable that has ended: its "
                     "strategy has ended, it was released, or the step that "
                     "created it was undone; call it before, and in a replica "
                     "function create it in each run",
                     function);
}

#define EITHER                                                                                     \
    "cadre_variable_value to read it, and cadre_variable_assign or cadre_variable_push to change " \
    "it"

cadre_status variable_enter(const cadre_variable *variable, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    CADRE_TRY(argument_require(variable, function, "variable", error));
    cadre_status status = variable_require_registered(variable, function, error);
    if (status == CADRE_OK) {
        status = variable_require_local(variable, function, EITHER, error);
    }
    if (status == CADRE_OK && variable->kind != CADRE_VARIABLE_REGULAR) {
        CADRE_TRY(strategy_require_inside(variable->strategy, function, call, error));
        status = strategy_check(variable->strategy, error);
    }
    return status;
}

cadre_status variable_require_own(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct cadre_error *error)
{
    CADRE_TRY(argument_require(variable, function, "variable", error));
    CADRE_TRY(variable_require_registered(variable, function, error));
    CADRE_TRY(variable_require_local(variable, function, EITHER, error));
    if (variable->kind != CADRE_VARIABLE_REGULAR && variable->strategy != replica->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: variable '%s' is of another strategy than the replica; use one of its own",
            function, variable->name);
    }
    return CADRE_OK;
}
