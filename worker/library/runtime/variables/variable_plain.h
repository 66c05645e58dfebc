/* SPDX-License-Identifier: Apache-2.0
 * Regular variables: of no strategy. */
#ifndef CADRE_RUNTIME_VARIABLE_PLAIN_H
#define CADRE_RUNTIME_VARIABLE_PLAIN_H

#include "worker/library/runtime/variables/variable.h"

/* With its initial value; the caller's, to be given to cadre_variable_release. */
cadre_status plain_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error);

/* The value (NULL: of strings), and nobody else writes to a regular variable until the close. */
void *plain_open(cadre_variable *variable);
void plain_lock(void); /* the same of several */
void plain_close(void);

#endif
