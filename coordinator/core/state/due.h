/* SPDX-License-Identifier: Apache-2.0
 * What a job still has to decide and to say is noted here, and nowhere else. */
#ifndef CADRE_COORDINATOR_CORE_STATE_DUE_H
#define CADRE_COORDINATOR_CORE_STATE_DUE_H

#include "coordinator/core/state/state.h"

/* Notes what is to be said. */
void job_due(struct core *core, struct job *job, uint32_t due);

#endif
