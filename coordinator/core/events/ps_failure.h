/* SPDX-License-Identifier: Apache-2.0
 * Ps tasks that end before the chief. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_PS_FAILURE_H
#define CADRE_COORDINATOR_CORE_EVENTS_PS_FAILURE_H

#include "coordinator/core/state/state.h"
#include "coordinator/core/facts/restarts.h"

/* A ps task that was not dismissed exited: it counts as a failure unless it is excused. */
void ps_failure_exited(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death);
/* It was lost, or its exit does not end the job: notes `sentence` for people. */
void ps_failure_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence);

#endif
