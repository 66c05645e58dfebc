/* SPDX-License-Identifier: Apache-2.0
 * The list of a strategy's variables, and the variables that a step creates.
 *
 *     created before the first step   in the list, until the strategy ends
 *     created by a step               fresh: in the list, and used like all others
 *       the step counts               late: in the layout, in checkpoints, in all tasks' state
 *       it is undone                  out of the list, without memory. The program may have its
 *                                     address: functions refuse it until it is created again, and
 *                                     then it is the same object
 *     received with a state           fresh likewise, until all of that state is there */
#ifndef CADRE_RUNTIME_VARIABLE_LIST_H
#define CADRE_RUNTIME_VARIABLE_LIST_H

#include "worker/library/runtime/variables/variable.h"

/* Room for one more: RESOURCE_EXHAUSTED. The list stays as it is until variables_put, because
 * others may read it. */
cadre_status variables_room(cadre_strategy *strategy, struct cadre_error *error);
/* Adds the variable in order of name. */
void variables_put(cadre_strategy *strategy, cadre_variable *variable);

/* From now on it ends with the current step or sync if that is undone; in the list or not yet. */
void variable_mark_fresh(cadre_strategy *strategy, cadre_variable *variable);

/* A variable that was undone and is equal to the plan: cleared, as a new one. NULL: there is
 * none. */
cadre_variable *variables_revive(
    const struct variable_plan *plan, cadre_kind kind, uint32_t components);

/* Ends a variable that is in no list. */
void variable_discard(cadre_variable *variable);

/* The current step or sync is over. `restore`: it was undone. */
void variables_end_fresh(cadre_strategy *strategy, bool restore);

/* Frees the undone ones when the strategy ends. */
void variables_free_undone(cadre_strategy *strategy);

#endif
