/* SPDX-License-Identifier: Apache-2.0
 * What a ps job does once a turn. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PS_JOB_DECIDE_H
#define CADRE_COORDINATOR_CORE_DECIDE_PS_JOB_DECIDE_H

#include "coordinator/core/state/state.h"

/* Arms or clears the waits of a ps job, and ends its tasks when the chief is done. */
void ps_job_decide(struct core *core, struct job *job);

#endif
