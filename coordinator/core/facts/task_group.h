/* SPDX-License-Identifier: Apache-2.0
 * Parties. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TASK_GROUP_H
#define CADRE_COORDINATOR_CORE_FACTS_TASK_GROUP_H

#include "coordinator/core/state/state.h"

/* The task is placed there. */
void task_group_add(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
/* The task has no place any more; a party without tasks is gone. */
void task_group_remove(struct core *core, struct job *job, uint32_t slot);
/* The slots of the job's party on a worker, one after the other until NONE, while what is done with
 * each may empty slots: then it begins anew, and those left are met again. */
uint32_t task_group_first(const struct core *core, const struct job *job, uint32_t worker);
uint32_t task_group_next(
    const struct core *core, const struct job *job, uint32_t worker, uint32_t slot);
/* Its worker is lost: it keeps its tasks, and nobody hears of it. */
void task_group_orphan(struct core *core, struct job *job, uint32_t number);
/* Its worker is to be told to start those of its tasks that it does not have. */
void task_group_restart(struct core *core, struct job *job, uint32_t number);

#endif
