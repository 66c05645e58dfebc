/* SPDX-License-Identifier: Apache-2.0
 * What clients ask for. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_REQUESTS_H
#define CADRE_COORDINATOR_CORE_EVENTS_REQUESTS_H

#include "coordinator/core/state/state.h"

/* What a client wants: a job, its end, that a worker is empty. */
void job_submit(struct core *core, const struct core_submit *submit);
void job_cancel(struct core *core, const struct core_cancel *cancel);
/* A client wants a checkpoint, and the training to go on. */
void checkpoint_now(struct core *core, const struct core_checkpoint_now *asked);
void worker_drain(struct core *core, const struct core_drain *drain);

#endif
