/* SPDX-License-Identifier: Apache-2.0
 * The state tables of jobs, generations, workers, preemptions, joiners and slots; each has one
 * function that moves, which panics on a move that its table does not allow. */
#ifndef CADRE_COORDINATOR_CORE_STATE_STATES_H
#define CADRE_COORDINATOR_CORE_STATE_STATES_H

#include "coordinator/core/state/state.h"

/* Moves the job and notes it as changed. */
void job_move(struct core *core, struct job *job, enum job_state state);
/* Moves the job's generation. */
void phase_move(struct job *job, enum phase phase);
/* `absence` is ABSENCE_NONE unless the worker is AWAY. */
void worker_move(struct worker *worker, enum worker_state state, enum absence absence);
/* Moves the job's preemption. */
void preempt_move(struct job *job, enum preemption preempt);
/* Moves a task that is in no roster. */
void joining_move(struct task *task, enum joining joining);
/* Moves the refill of a task's slot, and counts it for the job. */
void refill_move(struct job *job, struct task *task, enum refill refill);

/* Starting or running, and not dismissed. */
static inline bool task_is_usable(const struct task *task)
{
    return (task->state == TASK_STARTING || task->state == TASK_RUNNING) &&
           task->dismissed == DISMISSED_NOT;
}

/* A task of a ps job other than its chief: in no roster. */
static inline bool task_is_ps_task(const struct task *task)
{
    return task->role != ROLE_NONE && task->role != ROLE_CHIEF;
}

/* Whether it lacks a member: the others are frozen, or DUE_BREAK freezes them. */
bool generation_is_broken(const struct job *job);
/* Whether no task goes on from it: DUE_DISBAND dismisses all of them. */
bool generation_is_void(const struct job *job);
/* Whether the job is to stop at a step, which may not be found yet. */
bool preempt_stops(const struct job *job);

#endif
