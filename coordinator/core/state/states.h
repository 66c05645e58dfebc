/* SPDX-License-Identifier: Apache-2.0
 * The state tables of jobs, generations and workers, and the one function of each that moves. */
#ifndef CADRE_COORDINATOR_CORE_STATE_STATES_H
#define CADRE_COORDINATOR_CORE_STATE_STATES_H

#include "coordinator/core/state/state.h"

/* Each panics on a move that its table does not allow. */
void job_move(struct core *core, struct job *job, enum job_state state);
void phase_move(struct job *job, enum phase phase);
void worker_move(struct worker *worker, enum worker_state state, enum absence absence);
void preempt_move(struct job *job, enum preemption preempt);
void joining_move(struct task *task, enum joining joining);
void refill_move(struct job *job, struct task *task, enum refill refill);

/* Starting or running, and not dismissed. */
static inline bool task_is_usable(const struct task *task)
{
    return (task->state == TASK_STARTING || task->state == TASK_RUNNING) &&
           task->dismissed == DISMISSED_NOT;
}

/* Of a crew and not its chief: in no roster. */
static inline bool task_is_ps_task(const struct task *task)
{
    return task->role != ROLE_NONE && task->role != ROLE_CHIEF;
}

/* Whether it lacks a member: those that are left freeze, or are about to. */
bool generation_is_broken(const struct job *job);
/* Whether nobody goes on from it: all of its tasks are about to be told to end. */
bool generation_is_void(const struct job *job);
/* Whether the job is to stop at a step, known or not. */
bool preempt_stops(const struct job *job);

#endif
