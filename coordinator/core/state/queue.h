/* SPDX-License-Identifier: Apache-2.0
 * The queue: jobs that wait to be placed. */
#ifndef CADRE_COORDINATOR_CORE_STATE_QUEUE_H
#define CADRE_COORDINATOR_CORE_STATE_QUEUE_H

#include "coordinator/core/state/state.h"

/* Before all of a lower priority, and those of its own with a higher id. */
void queue_insert(struct core *core, struct list *list, const struct job *job);
/* The job waits from now on. */
void queue_add(struct core *core, struct job *job);
/* The job does not wait any more. */
void queue_remove(struct core *core, struct job *job);
/* The first job that the cluster could hold if it were empty; NONE when there is none. */
uint32_t queue_head(const struct core *core);
/* Finds the head and keeps it, until the queue or the cluster changes. */
void queue_settle_head(struct core *core);
/* The same, and numbers the jobs, so that queue_before() costs O(1): walks the queue. */
void queue_settle(struct core *core);
/* How many jobs are before this queued one. */
uint32_t queue_before(const struct core *core, const struct job *job);
/* For the invariants: which one is broken, or NULL. */
const char *queue_fault(const struct core *core);

#endif
