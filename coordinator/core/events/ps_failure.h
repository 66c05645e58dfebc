/* SPDX-License-Identifier: Apache-2.0
 * Attendants that end before the chief. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_PS_FAILURE_H
#define CADRE_COORDINATOR_CORE_EVENTS_PS_FAILURE_H

#include "coordinator/core/state/state.h"
#include "coordinator/core/facts/restarts.h"

/* An attendant that was wanted is gone, or lost. */
void ps_failure_exited(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death);
void ps_failure_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence);

#endif
