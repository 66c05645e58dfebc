/* SPDX-License-Identifier: Apache-2.0
 * Regular variables: of no strategy. */
#ifndef CADRE_RUNTIME_VARIABLE_PLAIN_H
#define CADRE_RUNTIME_VARIABLE_PLAIN_H

#include "worker/library/runtime/variables/variable.h"

/* With its initial value; the caller's, for cadre_variable_release. */
cadre_status plain_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);

/* Locks all regular variables against writes until plain_close; returns the value (NULL: of
 * strings). */
void *plain_open(cadre_variable *variable);
/* Locks them without opening one, to write several. */
void plain_lock(void);
/* Unlocks them. */
void plain_close(void);

#endif
