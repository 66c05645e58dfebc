/* SPDX-License-Identifier: Apache-2.0
 * Which devices variables are on, and those that are to share another one's. */
#ifndef CADRE_RUNTIME_COLOCATE_H
#define CADRE_RUNTIME_COLOCATE_H

#include "worker/library/runtime/variables/variable.h"

/* What a new variable shares the devices of: what its options name, else the innermost variable
 * that the thread has entered; NULL: nothing. INVALID_ARGUMENT: that one is of another strategy
 * than `plan`. FAILED_PRECONDITION: it is gone. */
cadre_status colocate_with(const struct variable_plan *plan, const cadre_variable **ret_variable,
    struct cadre_error *error);

#endif
