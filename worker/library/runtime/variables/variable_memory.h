/* SPDX-License-Identifier: Apache-2.0
 * Where what collectives read and write lies: in a job of several tasks in memory that the tasks of
 * a host map, so that nothing is copied on the way. */
#ifndef CADRE_RUNTIME_VARIABLE_MEMORY_H
#define CADRE_RUNTIME_VARIABLE_MEMORY_H

#include "worker/library/device/tensor_memory.h"
#include "worker/library/runtime/variables/variable.h"

/* The kind of memory for the variables of a strategy (NULL: of none). */
enum tensor_memory_kind value_memory(const cadre_strategy *strategy);

/* Room for one value of the variable, all zero, in the memory of `device` (NULL: the host's).
 * RESOURCE_EXHAUSTED. */
cadre_status value_new(const cadre_variable *variable, struct device *device, void **ret_value,
    struct cadre_error *error);
void value_free(
    const cadre_variable *variable, struct device *device, void *value); /* NULL is allowed */

/* Around a replica's function, in its thread: the tensors that it creates lie in such memory too,
 * unless the thread prefers a device's. Returns what to give to the leave. */
enum tensor_memory_kind value_memory_enter(const cadre_strategy *strategy);
void value_memory_leave(enum tensor_memory_kind before);

#endif
