/* SPDX-License-Identifier: Apache-2.0
 * Membership. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_MEMBERSHIP_H
#define CADRE_COORDINATOR_CORE_EVENTS_MEMBERSHIP_H

#include "coordinator/core/state/state.h"

/* The first word on a stream, or a newer one of it. */
void member_hello(struct core *core, struct link_id link, const struct agent_hello *hello);
/* Its stream is ended, and is told why; it is away. */
void worker_disconnect(struct core *core, uint32_t worker, const char *sentence);
/* Its stream ended. */
void member_link_down(struct core *core, struct link_id link);
/* For good: its tasks are lost, it is forgotten. `how` continues "was lost with worker b, which
 * ...". */
void worker_lose(struct core *core, uint32_t worker, const char *how);

#endif
