/* SPDX-License-Identifier: Apache-2.0
 * Workers on which a task held another state than most. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_CULPRITS_H
#define CADRE_COORDINATOR_CORE_FACTS_CULPRITS_H

#include "coordinator/core/state/state.h"

/* A task in this slot of the job did, once more. The second time its worker drains. */
void culprit_note(struct core *core, const struct job *job, uint32_t slot, uint32_t worker);
/* After a start of the coordinator. */
void culprit_restore(struct core *core, const struct core_culprit *culprit);

#endif
