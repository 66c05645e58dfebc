/* SPDX-License-Identifier: Apache-2.0
 * The queue. */
#ifndef CADRE_COORDINATOR_CORE_STATE_QUEUE_H
#define CADRE_COORDINATOR_CORE_STATE_QUEUE_H

#include "coordinator/core/state/state.h"

/* In front of all of a lower priority, and of those of its own that came later. */
void queue_insert(struct core *core, struct list *list, const struct job *job);
/* It waits; it does not any more. */
void queue_add(struct core *core, struct job *job);
void queue_remove(struct core *core, struct job *job);
/* The first job that the cluster could hold if it were empty; NONE when there is none. */
uint32_t queue_head(const struct core *core);
/* The head is found without a walk until the queue or the cluster changes. */
void queue_settle_head(struct core *core);
/* And so is how many are before a job: walks the queue. */
void queue_settle(struct core *core);
/* How many are before the job, which is queued. */
uint32_t queue_before(const struct core *core, const struct job *job);
/* What does not hold of it, or NULL. */
const char *queue_fault(const struct core *core);

#endif
