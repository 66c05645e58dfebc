/* SPDX-License-Identifier: Apache-2.0
 * The list of a strategy's variables, and what becomes of those that a step creates.
 *
 *     created before the first step   in the list, for good
 *     created by a step               fresh: in the list, and used like all others
 *       the step counts               late: in the layout, in checkpoints, in the state of all
 * tasks it is undone                  out of the list, without memory. The program may have its
 *                                     address: it is a variable that is gone, until it is created
 *                                     again, and then the same
 *     taken over with a state         fresh likewise, until all of that state is there */
#ifndef CADRE_RUNTIME_VARIABLE_LIST_H
#define CADRE_RUNTIME_VARIABLE_LIST_H

#include "worker/library/runtime/variables/variable.h"

/* Room for one more: RESOURCE_EXHAUSTED. Until it is put in the list stays as it is, for others may
 * look into it. */
cadre_status variables_room(cadre_strategy *strategy, struct cadre_error *error);
void variables_put(cadre_strategy *strategy, cadre_variable *variable);

/* From now on it ends with what is under way if that is undone; in the list or not yet. */
void variable_mark_fresh(cadre_strategy *strategy, cadre_variable *variable);

/* A variable that was undone and is what is planned: empty, as one that is new. NULL: there is
 * none.
 */
cadre_variable *variables_revive(
    const struct variable_plan *plan, cadre_kind kind, uint32_t components);

/* One that is in no list comes to nothing. */
void variable_discard(cadre_variable *variable);

/* What was under way is over. `restore`: it was undone. */
void variables_end_fresh(cadre_strategy *strategy, bool restore);

/* The strategy ends. */
void variables_free_undone(cadre_strategy *strategy);

#endif
