/* SPDX-License-Identifier: Apache-2.0
 * Tasks that end before their job does. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_FAILURE_H
#define CADRE_COORDINATOR_CORE_EVENTS_FAILURE_H

#include "coordinator/core/state/state.h"

/* Some joined and some exited with status 0 without. */
void failure_silent(struct core *core, struct job *job);
/* A task left with status 0 before cadre_finish, and the others did not follow. */
void failure_early(struct core *core, struct job *job);
/* A task is gone: what follows for the job. */
void failure_exited(
    struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit);
/* It is lost with its worker. */
void failure_lost(struct core *core, struct job *job, uint32_t slot, const char *how);

#endif
