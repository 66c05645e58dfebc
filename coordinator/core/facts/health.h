/* SPDX-License-Identifier: Apache-2.0
 * Stalls: steps that do not end although no task died. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_HEALTH_H
#define CADRE_COORDINATOR_CORE_FACTS_HEALTH_H

#include "coordinator/core/state/state.h"

/* All applied `steps` more steps, or a plan was made: no wait counts any more. */
void health_progress(struct core *core, struct job *job, uint64_t steps);
/* A step more was released, or is known to be begun: where the generation has one task, no other
 * one waits for it. */
void health_step_begun(struct core *core, struct job *job);
/* A task reports which task it waits for. */
void health_stall(
    struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall);
/* DEADLINE_SLOW: shows the step as slow; where the generation has one task, if it is in one. */
void health_slow_timeout(struct core *core, struct job *job);
/* A member reached a halt: the others have job.stall_us to reach it. */
void health_halted(struct core *core, struct job *job);
/* DEADLINE_STALL: replaces the task that others wait for. */
void health_stall_timeout(struct core *core, struct job *job);
/* The stall of now. */
struct core_stall health_stall_of(const struct core *core, const struct job *job);
/* "step 120 has not ended for 12 s ..."; false: no step is slow. */
bool health_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES]);

#endif
