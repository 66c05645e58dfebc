/* SPDX-License-Identifier: Apache-2.0
 * The events that turn/core.c hands on, but for those of membership and of single tasks. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_EVENTS_H
#define CADRE_COORDINATOR_CORE_EVENTS_EVENTS_H

#include "coordinator/core/state/state.h"

/* ---- requests.c ---- */

/* Queues a job, or refuses its spec or its size. */
void job_submit(struct core *core, const struct core_submit *submit);
/* Stops a job; answered when its end is recorded. */
void job_cancel(struct core *core, const struct core_cancel *cancel);
/* Saves a checkpoint at the next possible step; the training goes on. */
void checkpoint_now(struct core *core, const struct core_checkpoint_now *asked);
/* Begins or ends a client's drain of a worker. */
void worker_drain(struct core *core, const struct core_drain *drain);

/* ---- arrivals.c ---- */

/* An arrival of a job's tasks on the worker (protocol, rule 2). */
void arrival_handle(struct core *core, uint32_t worker, const struct agent_arrived *arrived);

/* ---- timers.c ---- */

/* Handles all that are over now, as far as the action list has room. */
void deadlines_run(struct core *core);

/* ---- fallback.c ---- */

/* A published checkpoint cannot be read any more: the previous one counts. */
void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged);
/* After a start of the coordinator it is not known from which checkpoint of another job the tasks
 * of a job without a generation were started: dismisses them, so that they are started again. */
void fallback_restored(struct core *core, struct job *job);

/* ---- restore.c ---- */

/* A live job of the store. */
void restore_job(struct core *core, const struct core_restore_job *restore);
/* There are no more. */
void restore_done(struct core *core, const struct core_restore_done *done);

#endif
