/* SPDX-License-Identifier: Apache-2.0
 * A step creates a variable: all replicas of all tasks meet in it, twice.
 *
 *     local replica 0    makes it, with all components of this task; the chief's finds its value
 *     they meet          the same variable on all, and no task failed
 *     local replica 0    puts it into the list
 *     they meet          the value goes to all; from here on it is a variable like others
 *
 * It is fresh until the step counts (variable_list.h), so a step that is undone takes it along. */
#ifndef CADRE_RUNTIME_CREATE_VARIABLE_IN_STEP_H
#define CADRE_RUNTIME_CREATE_VARIABLE_IN_STEP_H

#include "common/base/error.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

/* In a replica's thread, as two of its step's collectives; the plan was checked, its name is final
 * and free. An error fails the step. */
cadre_status variable_in_step_create(cadre_replica *replica, const struct variable_plan *plan,
    bool in_function, cadre_variable **ret_variable, struct cadre_error *error);

/* The step is over, no replica runs: frees what is left of one that failed half way. */
void variable_in_step_end(struct variable_in_step *in_step);

#endif
