/* SPDX-License-Identifier: Apache-2.0
 * A job's time limit. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_OVERTIME_H
#define CADRE_COORDINATOR_CORE_FACTS_OVERTIME_H

#include "coordinator/core/state/state.h"

/* Its time runs, and ran so long before. */
void overtime_arm(struct core *core, struct job *job, uint64_t ran_us);
/* Nobody is left of it: it fails. */
void overtime_ends(struct core *core, struct job *job);
/* Its deadline. */
void overtime_over(struct core *core, struct job *job);
/* It is over while the job waits to go on. */
bool overtime_in_queue(const struct job *job);

#endif
