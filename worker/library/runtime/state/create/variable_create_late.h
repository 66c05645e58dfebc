/* SPDX-License-Identifier: Apache-2.0
 * Variables that are created in a job that is under way. */
#ifndef CADRE_RUNTIME_CREATE_VARIABLE_CREATE_LATE_H
#define CADRE_RUNTIME_CREATE_VARIABLE_CREATE_LATE_H

#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* Between steps, by a step of the ledger: on all tasks, or on none. The plan's name is final (see
 * variable_name.h); `existing` has that name, and is then only returned; or it is NULL. */
cadre_status variable_create_late(const struct variable_plan *plan, cadre_variable *existing,
    cadre_variable **ret_variable, struct cadre_error *error);

/* In a replica function, as a part of its step; the plan's name is the program's. */
cadre_status variable_create_in_function(cadre_replica *replica, const struct variable_plan *plan,
    cadre_variable **ret_variable, struct cadre_error *error);

#endif
