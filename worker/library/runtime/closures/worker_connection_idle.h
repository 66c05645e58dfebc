/* SPDX-License-Identifier: Apache-2.0
 * The list of workers without a closure, the longest idle first; and waking the threads of
 * connections. The caller holds the scheduler's lock. */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_IDLE_H
#define CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_IDLE_H

#include "worker/library/runtime/closures/worker_connection.h"

/* Adds it at the end. */
void worker_connection_idle_add(struct worker_connection *worker_connection);
/* Removes it, if it is in the list. */
void worker_connection_idle_remove(struct worker_connection *worker_connection);

/* Wakes its thread, which checks what there is to do. */
void worker_connection_wake(struct worker_connection *worker_connection);
/* Wakes the first idle one, if there is one. */
void worker_connection_wake_idle(struct scheduler *scheduler);

#endif
