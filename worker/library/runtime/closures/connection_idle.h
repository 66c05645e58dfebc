/* SPDX-License-Identifier: Apache-2.0
 * Which workers have no closure, longest first; and waking the threads of connections. All with the
 * scheduler's lock. */
#ifndef CADRE_RUNTIME_CLOSURES_CONNECTION_IDLE_H
#define CADRE_RUNTIME_CLOSURES_CONNECTION_IDLE_H

#include "worker/library/runtime/closures/connection.h"

void connection_idle_enter(struct connection *connection);
void connection_idle_leave(struct connection *connection);

/* Its thread looks what there is to do. */
void connection_wake(struct connection *connection);
/* One that has no closure, if there is one. */
void connection_wake_idle(struct scheduler *scheduler);

#endif
