/* SPDX-License-Identifier: Apache-2.0
 * Variables by name: those of a strategy, and those that servers hold. */
#include <stdio.h>

#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"

#define NAMES_BYTES 320 /* of a message */

/* "'a', 'b', ...". */
static void list_names(const cadre_strategy *strategy, char text[NAMES_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < strategy->variables->count && used < NAMES_BYTES; i++) {
        size_t left = NAMES_BYTES - used;
        bool room = left > LIMIT_NAME_BYTES + 16; /* for this name, and the dots behind it */
        used += (size_t)snprintf(text + used, left, "%s%s%.127s%s", used == 0 ? "" : ", ",
            room ? "'" : "", room ? strategy->variables->list[i]->name : "...", room ? "'" : "");
        if (!room) {
            return;
        }
    }
}

static cadre_status variable_find_refuse(
    const cadre_strategy *strategy, const char *name, struct cadre_error *error)
{
    char names[NAMES_BYTES];
    list_names(strategy, names);
    return names[0] == '\0'
               ? cadre_error_set(error, CADRE_NOT_FOUND,
                     "there is no variable '%.127s' in this strategy, and none yet; create it",
                     name)
               : cadre_error_set(error, CADRE_NOT_FOUND,
                     "there is no variable '%.127s' in this strategy; there are %s", name, names);
}

/* A worker by hand has the chief's strategy, but not what only the chief may use. */
static cadre_status variable_find_find(const cadre_strategy *strategy, const char *name,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    bool attempts = strategy_is_registered(strategy);
    bool own = attempts && !strategy_is_on_worker(strategy);
    if (strategy != NULL && !attempts) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_variable_find('%.127s') was called with a strategy that has ended, and its "
            "variables with it; call it before",
            name);
    }
    *ret_variable = own ? variable_lookup(strategy, name) : NULL;
    if (*ret_variable != NULL) {
        return CADRE_OK;
    }
    if (remote_variable_ops() != NULL && (!attempts || !own || strategy->worker != NULL ||
                                             strategy->kind == STRATEGY_PARAMETER_SERVER)) {
        return remote_variable_ops()->find(name, ret_variable, error);
    }
    return attempts ? variable_find_refuse(strategy, name, error)
                    : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                          "cadre_variable_find('%.127s') was called outside of any strategy, where "
                          "variables are the program's own; give a strategy",
                          name);
}

cadre_status cadre_variable_find(
    const cadre_strategy *strategy, const char *name, cadre_variable **ret_variable)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_variable, __func__, "ret_variable", &error);
    if (status == CADRE_OK) {
        *ret_variable = NULL;
        status = argument_require(name, __func__, "name", &error);
    }
    if (status == CADRE_OK) {
        const cadre_strategy *of = strategy != NULL ? strategy : strategy_current();
        status =
            variable_find_find(strategy_is_default(of) ? NULL : of, name, ret_variable, &error);
    }
    return api_return(status, &error);
}
