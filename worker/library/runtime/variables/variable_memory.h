/* SPDX-License-Identifier: Apache-2.0
 * Memory for the values of variables, of the kind for the strategy's values (value_memory.h). */
#ifndef CADRE_RUNTIME_VARIABLE_MEMORY_H
#define CADRE_RUNTIME_VARIABLE_MEMORY_H

#include "worker/library/runtime/variables/variable.h"

/* Memory for one value of the variable, all zero, on `device` (NULL: the host).
 * RESOURCE_EXHAUSTED. */
cadre_status value_new(const cadre_variable *variable, struct device *device, void **ret_value,
    struct cadre_error *error);
/* NULL is allowed. */
void value_free(const cadre_variable *variable, struct device *device, void *value);

#endif
