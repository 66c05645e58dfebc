/* SPDX-License-Identifier: Apache-2.0
 * Which worker has most free slots, the oldest of equals. */
#ifndef CADRE_COORDINATOR_CORE_STATE_OFFERS_H
#define CADRE_COORDINATOR_CORE_STATE_OFFERS_H

#include "coordinator/core/state/state.h"

/* Slots of the cluster that the job's tasks may be placed on, used or not. */
uint32_t offers_total(const struct core *core, const struct job *job);
/* Those of them that are free now. */
uint32_t offers_free(const struct core *core, const struct job *job);
/* Starts with no free slot. */
void offers_open(struct core *core);
/* The worker's free slots, or their GPUs, changed. */
void offers_changed(struct core *core, uint32_t worker);
/* The worker that has most free slots with so many GPUs, the oldest of equals; NONE: none has. */
uint32_t offers_best(const struct core *core, uint32_t gpus);
/* For the invariants: which one is broken, or NULL. */
const char *offers_fault(const struct core *core);
/* Counts again what the worker has for the queue. */
void worker_offer(struct core *core, uint32_t worker);
/* Whether its agent holds more tasks than it has entries for. */
bool worker_is_overfull(const struct core *core, uint32_t worker);
/* Whether its slots have the GPUs that the job's tasks ask for. */
bool worker_serves(const struct core *core, uint32_t worker, const struct job *job);
/* And whether the job could be placed on one that is freed there. */
bool worker_lends(const struct core *core, uint32_t worker, const struct job *job);

#endif
