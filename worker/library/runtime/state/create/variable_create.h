/* SPDX-License-Identifier: Apache-2.0
 * Creating variables, and giving existing ones their values of a checkpoint. */
#ifndef CADRE_RUNTIME_CREATE_VARIABLE_CREATE_H
#define CADRE_RUNTIME_CREATE_VARIABLE_CREATE_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
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

/* --- variable_create_late.c: in a job that is under way --- */

/* Between steps, by a step of the ledger: on all tasks, or on none. The plan's name is final (see
 * variable_name.h); `existing` has that name, and is then only returned; or it is NULL. */
cadre_status variable_create_late(const struct variable_plan *plan, cadre_variable *existing,
    cadre_variable **ret_variable, struct cadre_error *error);

/* In a replica function, as a part of its step; the plan's name is the program's. */
cadre_status variable_create_in_function(cadre_replica *replica, const struct variable_plan *plan,
    cadre_variable **ret_variable, struct cadre_error *error);

/* --- variable_in_step.c: a step creates a variable; all replicas of all tasks meet in it, twice.
 *
 *     local replica 0    makes it, with all components of this task; the chief's finds its value
 *     they meet          the same variable on all, and no task failed
 *     local replica 0    puts it into the list
 *     they meet          the value goes to all; from here on it is a variable like others
 *
 * It is fresh until the step counts (variable_list.h), so a step that is undone takes it along. */

/* In a replica's thread, as two of its step's collectives; the plan was checked, its name is final
 * and free. An error fails the step. */
cadre_status variable_in_step_create(cadre_replica *replica, const struct variable_plan *plan,
    bool in_function, cadre_variable **ret_variable, struct cadre_error *error);

/* The step is over, no replica runs: frees what is left of one that failed half way. */
void variable_in_step_end(struct variable_in_step *in_step);

/* --- creation_note.c: how tasks find that they create different ones --- */

/* A key of all that must be equal on all tasks. */
uint64_t creation_key(const struct variable_plan *plan);

/* "cadre_variable_create('w', f32 [2, 3], SUM) as variable 3"; `nth` 0: without that. Returns
 * `text`. */
const char *creation_text(
    const struct variable_plan *plan, uint32_t nth, char text[STRATEGY_CALL_TEXT_BYTES]);

/* INVALID_ARGUMENT: the existing variable is another one than is planned. */
cadre_status creation_fits(
    const struct variable_plan *plan, const cadre_variable *variable, struct cadre_error *error);

#endif
