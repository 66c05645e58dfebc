/* SPDX-License-Identifier: Apache-2.0
 * Memory for the values of variables, of the kind that the strategy's values lie in
 * (value_memory.h). */
#ifndef CADRE_RUNTIME_VARIABLE_MEMORY_H
#define CADRE_RUNTIME_VARIABLE_MEMORY_H

#include "worker/library/runtime/variables/variable.h"

/* Room for one value of the variable, all zero, in the memory of `device` (NULL: the host's).
 * RESOURCE_EXHAUSTED. */
cadre_status value_new(const cadre_variable *variable, struct device *device, void **ret_value,
    struct cadre_error *error);
void value_free(
    const cadre_variable *variable, struct device *device, void *value); /* NULL is allowed */

#endif
