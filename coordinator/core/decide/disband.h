/* SPDX-License-Identifier: Apache-2.0
 * The end of a generation that no task goes on from. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_DISBAND_H
#define CADRE_COORDINATOR_CORE_DECIDE_DISBAND_H

#include "coordinator/core/state/state.h"

/* Ends the generation: dismisses all its tasks with `why`; the job is in PHASE_JOIN afterwards. */
void disband(struct core *core, struct job *job, enum dismissal why);
/* The same for a void generation: the job is preempted, or its checkpoint is damaged. */
void disband_void(struct core *core, struct job *job);

#endif
