/* SPDX-License-Identifier: Apache-2.0
 * Workers on which a task held another state than most. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_CULPRITS_H
#define CADRE_COORDINATOR_CORE_FACTS_CULPRITS_H

#include "coordinator/core/state/state.h"

/* Counts the worker of a task that had another state; the second time the worker drains. */
void culprit_note(struct core *core, const struct job *job, uint32_t slot, uint32_t worker);
/* After a start of the coordinator: an entry of the store. */
void culprit_restore(struct core *core, const struct core_culprit *culprit);

#endif
