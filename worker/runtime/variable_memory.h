/* SPDX-License-Identifier: Apache-2.0
 * Where values lie that collectives read and write: in a job of several tasks in memory that the
 * tasks of a host share, so that nothing is copied on the way. */
#ifndef CADRE_RUNTIME_VARIABLE_MEMORY_H
#define CADRE_RUNTIME_VARIABLE_MEMORY_H

#include "worker/device/tensor_memory.h"
#include "worker/runtime/variable.h"

/* The kind of memory for the values of a strategy (NULL: of none). */
enum tensor_memory_kind value_memory(const cadre_strategy *strategy);

/* Room for one value of the variable, all zero; NULL: there is none. */
void *value_new(const cadre_variable *variable);
void value_free(const cadre_variable *variable, void *value); /* NULL is allowed */

#endif
