/* SPDX-License-Identifier: Apache-2.0
 * The messages of agents about their tasks. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_TASK_LIFECYCLE_H
#define CADRE_COORDINATOR_CORE_EVENTS_TASK_LIFECYCLE_H

#include "coordinator/core/state/state.h"

/* A task's process runs. */
void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started);
/* A task's process exited. */
void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone);
/* The agent has collected the logs and outputs of an exited task, or given that up. */
void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected);
/* Declares a task lost (protocol, rule 7). `how` continues "was lost with worker b, which ...". */
void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how);
/* A message of a task itself, which its agent relays. */
void task_relayed(struct core *core, uint32_t worker, const struct agent_relay_up *relay_up);

#endif
