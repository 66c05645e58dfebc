/* SPDX-License-Identifier: Apache-2.0
 * Messages to the tasks of a job, and to one of them. */
#ifndef CADRE_COORDINATOR_CORE_STATE_NOTIFY_H
#define CADRE_COORDINATOR_CORE_STATE_NOTIFY_H

#include "coordinator/core/state/state.h"

/* To all members, or to all tasks that the message is for. */
struct core_action *notify_job(struct core *core, const struct job *job, enum core_message what);
/* To one task, which is connected. */
void notify_task(struct core *core, const struct job *job, uint32_t slot, enum core_message what);
/* RESET, SUPERSEDED, REFUSED or WARM to one task, which is connected. */
void notify_task_status(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence);
/* Answers a repeated hello of a member with the job's current state (protocol, rule 19). */
void notify_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan);

#endif
