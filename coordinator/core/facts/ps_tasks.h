/* SPDX-License-Identifier: Apache-2.0
 * Ps tasks that are ended together, and waits for ps tasks. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PS_TASKS_H
#define CADRE_COORDINATOR_CORE_FACTS_PS_TASKS_H

#include "coordinator/core/state/state.h"

/* Dismisses servers, or workers and evaluators; `unregistered`: only those without a hello. */
void ps_tasks_dismiss(struct core *core, struct job *job, bool servers, bool unregistered);
/* The chief has exited for good: dismisses the others. */
void ps_tasks_dismiss_all(struct core *core, struct job *job);
/* DEADLINE_PS_JOB. */
void ps_tasks_timeout(struct core *core, struct job *job);
/* DEADLINE_WAIT of a ps job: it fails. */
void ps_tasks_wait_timeout(struct core *core, struct job *job);
/* After a start of the coordinator: MEMBERS waits for the hellos of the running ps tasks. */
void ps_tasks_restored(struct core *core, struct job *job);

#endif
