/* SPDX-License-Identifier: Apache-2.0
 * Colocation: a variable on the devices of another one. */
#ifndef CADRE_RUNTIME_COLOCATE_H
#define CADRE_RUNTIME_COLOCATE_H

#include "worker/library/runtime/variables/variable.h"

/* The variable whose devices a new one shares: that of its options, else the innermost one that the
 * thread has entered; NULL: none. INVALID_ARGUMENT: it is of another strategy than `plan`.
 * FAILED_PRECONDITION: it was released. */
cadre_status colocate_with(const struct variable_plan *plan, const cadre_variable **ret_variable,
    struct cadre_error *error);

#endif
