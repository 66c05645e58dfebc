/* SPDX-License-Identifier: Apache-2.0
 * Requests of clients. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_REQUESTS_H
#define CADRE_COORDINATOR_CORE_EVENTS_REQUESTS_H

#include "coordinator/core/state/state.h"

/* Queues a job, or refuses its spec or its size. */
void job_submit(struct core *core, const struct core_submit *submit);
/* Stops a job; answered when its end is recorded. */
void job_cancel(struct core *core, const struct core_cancel *cancel);
/* Saves a checkpoint at the next possible step; the training goes on. */
void checkpoint_now(struct core *core, const struct core_checkpoint_now *asked);
/* Begins or ends a client's drain of a worker. */
void worker_drain(struct core *core, const struct core_drain *drain);

#endif
