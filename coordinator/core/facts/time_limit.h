/* SPDX-License-Identifier: Apache-2.0
 * A job's time limit. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TIME_LIMIT_H
#define CADRE_COORDINATOR_CORE_FACTS_TIME_LIMIT_H

#include "coordinator/core/state/state.h"

/* Arms the deadline; the job ran `ran_us` before. */
void time_limit_arm(struct core *core, struct job *job, uint64_t ran_us);
/* No task is left: the job fails. */
void time_limit_fail(struct core *core, struct job *job);
/* DEADLINE_LIMIT. */
void time_limit_timeout(struct core *core, struct job *job);
/* Whether it is over and the job is queued. */
bool time_limit_in_queue(const struct job *job);

#endif
