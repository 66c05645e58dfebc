/* SPDX-License-Identifier: Apache-2.0
 * What of a job is still to be decided and sent is noted by this function alone. */
#ifndef CADRE_COORDINATOR_CORE_STATE_DUE_H
#define CADRE_COORDINATOR_CORE_STATE_DUE_H

#include "coordinator/core/state/state.h"

/* Adds bits of enum due; 0 only puts the job into core.touched. */
void job_due(struct core *core, struct job *job, uint32_t due);

#endif
