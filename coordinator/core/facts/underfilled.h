/* SPDX-License-Identifier: Apache-2.0
 * Which placed jobs want places. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_UNDERFILLED_H
#define CADRE_COORDINATOR_CORE_FACTS_UNDERFILLED_H

#include "coordinator/core/state/state.h"

/* How many places the job could use now. */
uint32_t underfilled_count(const struct job *job);
/* How many more tasks it needs to go on. */
uint32_t underfilled_lack(const struct core *core, const struct job *job);
/* Whether the job has empty slots that could be filled now is looked at anew. */
void underfilled_note(struct core *core, struct job *job);
/* Slots that were left alone, because a joiner found nothing to do, are looked at again. */
void underfilled_reopen(struct core *core, struct job *job);

#endif
