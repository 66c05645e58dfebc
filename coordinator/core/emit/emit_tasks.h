/* SPDX-License-Identifier: Apache-2.0
 * Actions of single tasks, as far as the step's list has room. */
#ifndef CADRE_COORDINATOR_CORE_EMIT_EMIT_TASKS_H
#define CADRE_COORDINATOR_CORE_EMIT_EMIT_TASKS_H

#include "coordinator/core/state/state.h"

/* Appends them; false: the list is full, and some are left. */
bool emit_tasks(struct core *core, struct job *job);

#endif
