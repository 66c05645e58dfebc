/* SPDX-License-Identifier: Apache-2.0
 * Placed jobs with slots to fill. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_UNDERFILLED_H
#define CADRE_COORDINATOR_CORE_FACTS_UNDERFILLED_H

#include "coordinator/core/state/state.h"

/* How many slots of the job can be filled now. */
uint32_t underfilled_count(const struct job *job);
/* How many more tasks it needs to go on. */
uint32_t underfilled_lack(const struct core *core, const struct job *job);
/* Puts the job into core.underfilled, or removes it, as its slots require. */
void underfilled_note(struct core *core, struct job *job);
/* Slots that stayed empty, because a joiner found nothing to do, may be filled again. */
void underfilled_reopen(struct core *core, struct job *job);

#endif
