/* SPDX-License-Identifier: Apache-2.0
 * What is true of a task, and what of it is counted for its job. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TASKS_H
#define CADRE_COORDINATOR_CORE_FACTS_TASKS_H

#include "coordinator/core/state/state.h"

/* The one function that moves a task. */
void task_move(struct job *job, struct task *task, enum task_state state);
/* Gives it a place. */
void task_place(
    struct core *core, struct job *job, uint32_t slot, uint32_t worker, uint64_t incarnation);
/* It said hello. */
void task_set_joined(struct job *job, struct task *task);
/* A joiner waits at a step of the stream. */
void task_waits_to_join(struct job *job, struct task *task, uint32_t stream);
/* A frozen member said where it stands. */
void task_reports(struct job *job, struct task *task, const struct task_report *report);
/* Its worker is not connected: whether the process still stands where it said is known when the
 * worker is back. */
void task_report_again(struct job *job, struct task *task);
/* Whether a member that reported has the state of the position where it stands. */
bool task_holds_state(const struct job *job, const struct task *task);
/* In this generation's roster. */
void task_add_to_roster(struct core *core, struct job *job, uint32_t slot, uint32_t rank);
/* Not in it any more. */
void task_remove_from_roster(struct core *core, struct job *job, uint32_t slot);
/* It runs, and is told to end: nothing that it says counts any more (rule 7). */
void task_dismiss(struct core *core, struct job *job, uint32_t slot, enum dismissal why);
/* Nobody is left, or will be, whom they could join. */
void joiners_dismiss(struct core *core, struct job *job);
/* No step of the stream's epoch is left: who waits for one hears where the streams stand. */
void joiners_outdate(struct core *core, struct job *job, uint32_t stream);
/* It is gone through no fault of its own: it gets another place also before the first plan. */
void task_owe(struct job *job, struct task *task);
/* Nothing of it is left on its worker, whose slot is free again. */
void task_collect(struct core *core, struct job *job, uint32_t slot);
/* Its slot is empty again if nothing of it is left and the job goes on. */
void task_vacate(struct core *core, struct job *job, uint32_t slot);
/* An empty slot. */
void task_clear(struct task *task);
/* Whether the task's worker drains. */
bool task_drains(const struct core *core, const struct job *job, const struct task *task);

#endif
