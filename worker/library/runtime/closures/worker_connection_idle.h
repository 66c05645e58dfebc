/* SPDX-License-Identifier: Apache-2.0
 * Which workers have no closure, longest first; and waking the threads of connections. All with the
 * scheduler's lock. */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_IDLE_H
#define CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_IDLE_H

#include "worker/library/runtime/closures/worker_connection.h"

void worker_connection_idle_add(struct worker_connection *worker_connection);
void worker_connection_idle_remove(struct worker_connection *worker_connection);

/* Its thread looks what there is to do. */
void worker_connection_wake(struct worker_connection *worker_connection);
/* One that has no closure, if there is one. */
void worker_connection_wake_idle(struct scheduler *scheduler);

#endif
