/* SPDX-License-Identifier: Apache-2.0
 * Health means progress. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_HEALTH_H
#define CADRE_COORDINATOR_CORE_FACTS_HEALTH_H

#include "coordinator/core/state/state.h"

/* All applied more steps, or a plan was made: nobody is waited for. */
void health_progress(struct core *core, struct job *job, uint64_t steps);
/* A task says for whom it waits. */
void health_stall(
    struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall);
/* Deadlines: SLOW, and STALL. */
void health_slow_timeout(struct core *core, struct job *job);
/* A member stands at a halt: the others have to come there, too. */
void health_halted(struct core *core, struct job *job);
void health_stall_timeout(struct core *core, struct job *job);
/* "step 120 has not ended for 12 s ..."; false: nothing of the kind. */
bool health_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES]);

#endif
