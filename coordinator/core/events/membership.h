/* SPDX-License-Identifier: Apache-2.0
 * Hellos, silence and losses of worker daemons. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_MEMBERSHIP_H
#define CADRE_COORDINATOR_CORE_EVENTS_MEMBERSHIP_H

#include "coordinator/core/state/state.h"

/* ---- membership.c ---- */

/* An agent's hello, on a new stream or repeated on its own. */
void member_hello(struct core *core, struct link_id link, const struct agent_hello *hello);
/* Ends its stream with this reason; the worker is away. */
void worker_disconnect(struct core *core, uint32_t worker, const char *sentence);
/* Workers whose listed tasks were kept for a job that is cancelled now connect again: these tasks
 * are stopped then. */
void member_relist(struct core *core);
/* The stream of a worker ended. */
void member_link_down(struct core *core, struct link_id link);
/* Rule 7: for good. Its tasks are lost and the worker is removed. `how` continues "was lost with
 * worker b, which ...". */
void worker_lose(struct core *core, uint32_t worker, const char *how);

/* ---- silence.c ---- */

/* The worker's deadline, which was due at `due_us`: loses it or its tasks if it is still silent. */
void lease_expired(struct core *core, uint32_t worker, uint64_t due_us);

#endif
