/* SPDX-License-Identifier: Apache-2.0
 * The memory that collectives read and write: in a job of several tasks it is shared by the tasks
 * of a host, so that no copy is made. */
#ifndef CADRE_RUNTIME_VALUE_MEMORY_H
#define CADRE_RUNTIME_VALUE_MEMORY_H

#include "cadre/replica.h"
#include "worker/library/device/tensor_memory.h"

/* The kind of memory for the variables of a strategy (NULL: of none). */
enum tensor_memory_kind value_memory(const cadre_strategy *strategy);

/* Before a replica's function, in its thread: the tensors that it creates are in such memory too,
 * unless the thread prefers a device's. Returns the argument of value_memory_leave. */
enum tensor_memory_kind value_memory_enter(const cadre_strategy *strategy);
/* After the replica's function: the thread's kind of memory is as before. */
void value_memory_leave(enum tensor_memory_kind before);

#endif
