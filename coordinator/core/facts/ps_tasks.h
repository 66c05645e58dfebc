/* SPDX-License-Identifier: Apache-2.0
 * Attendants of a crew that are told to end together, and that are waited for. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PS_TASKS_H
#define CADRE_COORDINATOR_CORE_FACTS_PS_TASKS_H

#include "coordinator/core/state/state.h"

/* Servers, or workers and the evaluator, are told to end; `strangers`: only those that never said
 * hello. */
void ps_tasks_dismiss(struct core *core, struct job *job, bool servers, bool unregistered);
/* The chief is gone for good: the others are told to end. */
void ps_tasks_dismiss_all(struct core *core, struct job *job);
/* Deadlines: CREW, and WAIT. */
void ps_tasks_timeout(struct core *core, struct job *job);
void ps_tasks_wait_timeout(struct core *core, struct job *job);
/* After a start of the coordinator: who is here is to be heard before anybody is told of others. */
void ps_tasks_restored(struct core *core, struct job *job);

#endif
