/* SPDX-License-Identifier: Apache-2.0
 * Task groups: the tasks of one job on one worker. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TASK_GROUP_H
#define CADRE_COORDINATOR_CORE_FACTS_TASK_GROUP_H

#include "coordinator/core/state/state.h"

/* Adds a placed task to the job's task group on the worker. */
void task_group_add(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
/* Removes the task; a task group without tasks is removed, too. */
void task_group_remove(struct core *core, struct job *job, uint32_t slot);
/* The first slot of the job's task group on a worker, or NONE. */
uint32_t task_group_first(const struct core *core, const struct job *job, uint32_t worker);
/* The slot after `slot`, or NONE. If `slot` was removed meanwhile, the walk starts again, so slots
 * that are left may be visited twice. */
uint32_t task_group_next(
    const struct core *core, const struct job *job, uint32_t worker, uint32_t slot);
/* Its worker is lost: it keeps its tasks, and belongs to no worker. */
void task_group_orphan(struct core *core, struct job *job, uint32_t number);
/* The starts of its STARTING tasks are to be sent to its worker again. */
void task_group_restart(struct core *core, struct job *job, uint32_t number);

#endif
