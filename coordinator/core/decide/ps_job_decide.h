/* SPDX-License-Identifier: Apache-2.0
 * What a crew does once a turn. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PS_JOB_DECIDE_H
#define CADRE_COORDINATOR_CORE_DECIDE_PS_JOB_DECIDE_H

#include "coordinator/core/state/state.h"

/* Whom the crew waits for, and how it leaves when its chief is done. */
void ps_job_decide(struct core *core, struct job *job);

#endif
