/* SPDX-License-Identifier: Apache-2.0
 * Preemption, checkpoints on request, and the time limit. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PREEMPT_H
#define CADRE_COORDINATOR_CORE_FACTS_PREEMPT_H

#include "coordinator/core/state/state.h"

/* ---- preempt.c ---- */

/* Sets job.note to the result. */
void preempt_note(struct job *job);
/* Its tasks are to have exited by then. */
void preempt_ends_by(struct core *core, struct job *job, uint64_t due_us);
/* Ends its tasks without saving. `why` may be "". */
void preempt_unsaved(struct core *core, struct job *job, const char *why);
/* A task reports that its machine is taken away, or requests a checkpoint. */
void preempt_notice(
    struct core *core, struct job *job, uint32_t slot, const struct task_preempt *notice);
/* The job cannot go on without a worker that drains. */
void preempt_drained(struct core *core, struct job *job);
/* Its time limit is over: it is preempted and not queued again. */
void preempt_time_limit(struct core *core, struct job *job, const char *why);
/* Sets the step to stop at, or to save at, if that is due. Once a turn. */
void preempt_control(struct core *core, struct job *job);
/* A plan sets a pending stop or checkpoint again (protocol, rule 15). */
void preempt_plan(struct core *core, struct job *job);
/* DEADLINE_PREEMPT. */
void preempt_timeout(struct core *core, struct job *job);
/* After a start of the coordinator: the recorded stop. */
void preempt_restore(struct job *job, const struct core_restore_job *restore);
/* The same, when the job's tasks are restored. */
void preempt_resume(struct core *core, struct job *job);

/* ---- time_limit.c ---- */

/* Arms the deadline; the job ran `ran_us` before. */
void time_limit_arm(struct core *core, struct job *job, uint64_t ran_us);
/* No task is left: the job fails. */
void time_limit_fail(struct core *core, struct job *job);
/* DEADLINE_LIMIT. */
void time_limit_timeout(struct core *core, struct job *job);
/* Whether it is over and the job is queued. */
bool time_limit_in_queue(const struct job *job);

#endif
