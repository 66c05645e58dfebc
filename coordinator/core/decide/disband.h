/* SPDX-License-Identifier: Apache-2.0
 * The generation is over and nobody goes on from it. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_DISBAND_H
#define CADRE_COORDINATOR_CORE_DECIDE_DISBAND_H

#include "coordinator/core/state/state.h"

/* The generation is over and nobody goes on from it: all tasks are told to end. */
void disband(struct core *core, struct job *job, enum dismissal why);
/* The same of one that was found to be void: the job leaves, or its checkpoint is damaged. */
void disband_void(struct core *core, struct job *job);

#endif
