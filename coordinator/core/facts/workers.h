/* SPDX-License-Identifier: Apache-2.0
 * The worker daemons that are known. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_WORKERS_H
#define CADRE_COORDINATOR_CORE_FACTS_WORKERS_H

#include "coordinator/core/state/state.h"

/* Something came from it. */
void worker_seen(struct core *core, uint32_t worker);
/* Of a task of no known job nothing is left there. */
void worker_clears(struct core *core, uint32_t worker);
/* A new life of a daemon, not connected yet. NONE: there is no room. */
uint32_t worker_add(struct core *core, const char *name);
/* One that is known from the store: away, and its lease runs. NONE: there is no room. */
uint32_t worker_expect(struct core *core, const char *name);
/* It has no tasks, and is not known any more. */
void worker_forget(struct core *core, uint32_t worker);
/* After so long a silence all of its tasks are lost. */
uint64_t worker_patience_us(const struct core *core, const struct worker *worker);
/* Its lease, or the next look at it when that is over. */
void worker_lease_set(struct core *core, uint32_t worker);

#endif
