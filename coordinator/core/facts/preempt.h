/* SPDX-License-Identifier: Apache-2.0
 * Preemption. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PREEMPT_H
#define CADRE_COORDINATOR_CORE_FACTS_PREEMPT_H

#include "coordinator/core/state/state.h"

/* What became of it, for people. */
void preempt_note(struct job *job);
/* Its tasks are to be gone by then. */
void preempt_ends_by(struct core *core, struct job *job, uint64_t due_us);
/* Nothing can be saved: its tasks are ended as they are. `why` may be "". */
void preempt_unsaved(struct core *core, struct job *job, const char *why);
/* A task's notice. */
void preempt_notice(
    struct core *core, struct job *job, uint32_t slot, const struct task_preempt *notice);
/* It cannot go on without a worker that drains. */
void preempt_drained(struct core *core, struct job *job);
/* It may run no longer: leaves in the same way, and does not come back. */
void preempt_time_limit(struct core *core, struct job *job, const char *why);
/* Sets what is asked for: the step to stop at, or to save at. Once a turn. */
void preempt_control(struct core *core, struct job *job);
/* A plan restates it: all stand at its first position. */
void preempt_plan(struct core *core, struct job *job);
/* Its deadline. */
void preempt_timeout(struct core *core, struct job *job);
/* After a start of the coordinator. */
void preempt_restore(struct job *job, const struct core_restore_job *restore);
void preempt_resume(struct core *core, struct job *job);

#endif
