/* SPDX-License-Identifier: Apache-2.0
 * What is said task by task, as there is room. */
#ifndef CADRE_COORDINATOR_CORE_SPEAK_SPEAK_TASKS_H
#define CADRE_COORDINATOR_CORE_SPEAK_SPEAK_TASKS_H

#include "coordinator/core/state/state.h"

/* Whether all of it is said. */
bool speak_of_tasks(struct core *core, struct job *job);

#endif
