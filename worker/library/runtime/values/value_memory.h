/* SPDX-License-Identifier: Apache-2.0
 * Where what collectives read and write lies: in a job of several tasks in memory that the tasks of
 * a host map, so that nothing is copied on the way. */
#ifndef CADRE_RUNTIME_VALUE_MEMORY_H
#define CADRE_RUNTIME_VALUE_MEMORY_H

#include "cadre/replica.h"
#include "worker/library/device/tensor_memory.h"

/* The kind of memory for the variables of a strategy (NULL: of none). */
enum tensor_memory_kind value_memory(const cadre_strategy *strategy);

/* Around a replica's function, in its thread: the tensors that it creates lie in such memory too,
 * unless the thread prefers a device's. Returns what to give to the leave. */
enum tensor_memory_kind value_memory_enter(const cadre_strategy *strategy);
void value_memory_leave(enum tensor_memory_kind before);

#endif
