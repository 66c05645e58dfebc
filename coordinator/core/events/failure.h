/* SPDX-License-Identifier: Apache-2.0
 * Tasks that end before their job does. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_FAILURE_H
#define CADRE_COORDINATOR_CORE_EVENTS_FAILURE_H

#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/state.h"

/* ---- failure.c ---- */

/* Some tasks joined and one exited with status 0 without joining: the job fails. */
void failure_silent(struct core *core, struct job *job);
/* A task exited with status 0 before cadre_finish, and the others did not follow in time. */
void failure_early(struct core *core, struct job *job);
/* A task exited: applies the consequences for its job. */
void failure_exited(struct core *core, struct job *job, const struct agent_task_gone *gone);
/* A task was lost with its worker; `how` as in task_lose(). */
void failure_lost(struct core *core, struct job *job, uint32_t slot, const char *how);

/* ---- ps_failure.c ---- */

/* A ps task that was not dismissed exited: it counts as a failure unless it is excused. */
void ps_failure_exited(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death);
/* It was lost, or its exit does not end the job: notes `sentence` for people. */
void ps_failure_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence);

#endif
