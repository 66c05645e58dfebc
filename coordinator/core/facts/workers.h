/* SPDX-License-Identifier: Apache-2.0
 * The known worker daemons, and which of them are alive. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_WORKERS_H
#define CADRE_COORDINATOR_CORE_FACTS_WORKERS_H

#include "coordinator/core/state/state.h"

/* ---- workers.c ---- */

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

/* ---- lease.c ---- */

/* Sets the time of the next event, and notes a pause of this process. */
void lease_clock(struct core *core, uint64_t now_us);
/* Until when messages may be unread because this process was suspended; 0: it was not, of late. */
uint64_t lease_unread_us(const struct core *core);
/* Whether the worker is connected and sent something within half a lease. */
bool lease_is_alive(const struct core *core, uint32_t worker);
/* Whether a live worker can continue the job, and the others had a lease to come back since none
 * could. */
bool job_can_continue(struct core *core, struct job *job);
/* Whether no live worker can continue the job, and a silent one might. */
bool lease_cut_off(const struct core *core, const struct job *job);
/* A worker that was away is about to be connected again. */
void lease_returns(struct core *core, uint32_t worker);

#endif
