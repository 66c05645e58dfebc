/* SPDX-License-Identifier: Apache-2.0
 * Creating variables, and giving existing ones their values of a checkpoint. */
#ifndef CADRE_RUNTIME_CREATE_VARIABLE_CREATE_H
#define CADRE_RUNTIME_CREATE_VARIABLE_CREATE_H

#include "common/base/error.h"
#include "worker/library/runtime/variables/variable.h"

/* Functions about all variables of a strategy call it first. FAILED_PRECONDITION: it is the default
 * strategy, which has none. */
cadre_status variable_require_kept(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* The refusals of cadre_variable_create: names that are taken, options that do not go together, a
 * job that has begun. */
cadre_status variable_check_plan(const struct variable_plan *plan, struct cadre_error *error);

/* All of cadre_variable_create, called by the public `function`: plan->strategy is the scope. */
cadre_status variable_create(const struct variable_plan *plan, const char *function,
    cadre_variable **ret_variable, struct cadre_error *error);

/* Creates a variable that passed that check in its strategy. Collective, but of a task that is
 * warm. */
cadre_status variable_create_in(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);

/* Before the first step, in all tasks together: the variable gets its value of the strategy's
 * restoration, if there is one. INVALID_ARGUMENT: it is another one there, and nothing was changed.
 * All other errors are final. */
cadre_status variable_take_restored(cadre_variable *variable, struct cadre_error *error);

#endif
