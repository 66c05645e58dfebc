/* SPDX-License-Identifier: Apache-2.0
 * All variables that there are in the process, by address: what a function is given may be one that
 * has ended with its strategy. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/elsewhere.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_living.h"

static struct {
    pthread_mutex_t lock;
    const cadre_variable **all; /* in order of address */
    size_t count;
    size_t capacity;
} living = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock: where it stands or would stand. */
static size_t place_of(const cadre_variable *variable)
{
    size_t low = 0;
    size_t high = living.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)living.all[middle] < (uintptr_t)variable) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool variable_begins(const cadre_variable *variable)
{
    pthread_mutex_lock(&living.lock);
    bool room = living.count < living.capacity;
    if (!room) {
        size_t capacity = living.capacity == 0 ? 16 : living.capacity * 2;
        const cadre_variable **grown = realloc(living.all, capacity * sizeof *grown);
        room = grown != NULL;
        living.all = room ? grown : living.all;
        living.capacity = room ? capacity : living.capacity;
    }
    if (room) {
        size_t at = place_of(variable);
        CADRE_ASSERT(at == living.count || living.all[at] != variable);
        memmove(living.all + at + 1, living.all + at, (living.count - at) * sizeof living.all[0]);
        living.all[at] = variable;
        living.count++;
    }
    pthread_mutex_unlock(&living.lock);
    return room;
}

void variable_ends(const cadre_variable *variable)
{
    pthread_mutex_lock(&living.lock);
    size_t at = place_of(variable);
    if (at < living.count && living.all[at] == variable) {
        living.count--;
        memmove(living.all + at, living.all + at + 1, (living.count - at) * sizeof living.all[0]);
    }
    if (living.count == 0) {
        free(living.all);
        living.all = NULL;
        living.capacity = 0;
    }
    pthread_mutex_unlock(&living.lock);
}

bool variable_lives(const cadre_variable *variable)
{
    pthread_mutex_lock(&living.lock);
    size_t at = place_of(variable);
    bool lives = at < living.count && living.all[at] == variable;
    CADRE_ASSERT(at <= living.count);
    pthread_mutex_unlock(&living.lock);
    return lives;
}

cadre_status variable_require_living(
    const cadre_variable *variable, const char *function, struct cadre_error *error)
{
    return variable_lives(variable) ? CADRE_OK
                                    : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                                          "%s was called with a variable that is gone: its "
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
    cadre_status status = variable_require_living(variable, function, error);
    if (status == CADRE_OK) {
        status = variable_require_here(variable, function, EITHER, error);
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
    CADRE_TRY(variable_require_living(variable, function, error));
    CADRE_TRY(variable_require_here(variable, function, EITHER, error));
    if (variable->kind != CADRE_VARIABLE_REGULAR && variable->strategy != replica->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: variable '%s' is of another strategy than the replica; use one of its own",
            function, variable->name);
    }
    return CADRE_OK;
}
