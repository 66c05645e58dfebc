/* SPDX-License-Identifier: Apache-2.0
 * The known worker daemons. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_WORKERS_H
#define CADRE_COORDINATOR_CORE_FACTS_WORKERS_H

#include "coordinator/core/state/state.h"

/* A message came from the worker. */
void worker_seen(struct core *core, uint32_t worker);
/* The worker has collected a task of no known job. */
void worker_clears(struct core *core, uint32_t worker);
/* A new incarnation of a daemon, not connected yet. NONE: the table is full. */
uint32_t worker_add(struct core *core, const char *name);
/* A worker known from the store: away, and its lease runs. NONE: the table is full. */
uint32_t worker_expect(struct core *core, const char *name);
/* Removes a worker that has no tasks. */
void worker_forget(struct core *core, uint32_t worker);
/* How long it may be silent until all of its tasks are lost. */
uint64_t worker_patience_us(const struct core *core, const struct worker *worker);
/* Sets the deadline of its lease, or of its next check when it is overdue. */
void worker_lease_set(struct core *core, uint32_t worker);

#endif
