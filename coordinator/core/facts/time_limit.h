/* SPDX-License-Identifier: Apache-2.0
 * A job's time limit. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TIME_LIMIT_H
#define CADRE_COORDINATOR_CORE_FACTS_TIME_LIMIT_H

#include "coordinator/core/state/state.h"

/* Its time runs, and ran so long before. */
void time_limit_arm(struct core *core, struct job *job, uint64_t ran_us);
/* Nobody is left of it: it fails. */
void time_limit_fail(struct core *core, struct job *job);
/* Its deadline. */
void time_limit_timeout(struct core *core, struct job *job);
/* It is over while the job waits to go on. */
bool time_limit_in_queue(const struct job *job);

#endif
