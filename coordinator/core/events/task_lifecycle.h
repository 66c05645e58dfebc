/* SPDX-License-Identifier: Apache-2.0
 * The lives of tasks as their agents report them. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_TASK_LIFECYCLE_H
#define CADRE_COORDINATOR_CORE_EVENTS_TASK_LIFECYCLE_H

#include "coordinator/core/state/state.h"

/* What the agent says of one of its tasks. */
void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started);
void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone);
void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected);
/* `how` continues "was lost with worker b, which ...". */
void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how);
void task_relayed(struct core *core, uint32_t worker, const struct agent_relay_up *relay_up);

#endif
