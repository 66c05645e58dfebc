/* SPDX-License-Identifier: Apache-2.0
 * What is said task by task, as there is room. */
#ifndef CADRE_COORDINATOR_CORE_EMIT_EMIT_TASKS_H
#define CADRE_COORDINATOR_CORE_EMIT_EMIT_TASKS_H

#include "coordinator/core/state/state.h"

/* Whether all of it is said. */
bool emit_tasks(struct core *core, struct job *job);

#endif
