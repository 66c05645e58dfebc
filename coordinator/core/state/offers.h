/* SPDX-License-Identifier: Apache-2.0
 * Which worker has most free slots, the oldest of equals. */
#ifndef CADRE_COORDINATOR_CORE_STATE_OFFERS_H
#define CADRE_COORDINATOR_CORE_STATE_OFFERS_H

#include "coordinator/core/state/state.h"

/* Slots on which the job's tasks may be placed: of the cluster if it were empty, and now. */
uint32_t offers_total(const struct core *core, const struct job *job);
uint32_t offers_free(const struct core *core, const struct job *job);
/* Nobody offers anything. */
void offers_open(struct core *core);
/* The worker's free slots, or their GPUs, changed. */
void offers_changed(struct core *core, uint32_t worker);
/* The worker that has most free slots with so many GPUs, the oldest of equals; NONE: none has. */
uint32_t offers_best(const struct core *core, uint32_t gpus);
/* For the invariants. */
const char *offers_fault(const struct core *core);
/* Counts what it offers to the queue anew. */
void worker_offer(struct core *core, uint32_t worker);
/* Whether it holds so much that not all that was placed there has a place. */
bool worker_is_overfull(const struct core *core, uint32_t worker);
/* Whether its slots have the GPUs that the job's tasks need. */
bool worker_serves(const struct core *core, uint32_t worker, const struct job *job);
/* And whether the job could have one that comes free there. */
bool worker_lends(const struct core *core, uint32_t worker, const struct job *job);

#endif
