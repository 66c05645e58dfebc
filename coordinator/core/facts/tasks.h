/* SPDX-License-Identifier: Apache-2.0
 * The facts of a task, the counts of its job over them, and the tasks of a job on one worker. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TASKS_H
#define CADRE_COORDINATOR_CORE_FACTS_TASKS_H

#include "coordinator/core/state/state.h"

/* ---- tasks.c ---- */

/* Moves the task; panics on a move that the table does not allow. */
void task_move(struct job *job, struct task *task, enum task_state state);
/* Places it on a worker, as this incarnation. */
void task_assign(
    struct core *core, struct job *job, uint32_t slot, uint32_t worker, uint64_t incarnation);
/* The task said hello. */
void task_set_joined(struct job *job, struct task *task);
/* A joiner waits at a step of the stream. */
void task_waits_to_join(struct job *job, struct task *task, uint32_t stream);
/* A frozen member reported. */
void task_reports(struct job *job, struct task *task, const struct task_report *report);
/* Its worker is not connected: its report counts again when the process repeats it. */
void task_report_again(struct job *job, struct task *task);
/* Whether a member that reported has a whole state (protocol, rule 9). */
bool task_holds_state(const struct job *job, const struct task *task);
/* Adds the task to this generation's roster. */
void task_add_to_roster(struct core *core, struct job *job, uint32_t slot, uint32_t rank);
/* Removes it from the roster; not in one: does nothing. */
void task_remove_from_roster(struct core *core, struct job *job, uint32_t slot);
/* Stops a running task: its messages count no more (protocol, rule 7). */
void task_dismiss(struct core *core, struct job *job, uint32_t slot, enum dismissal why);
/* Those that were to end by themselves, and have not, are stopped. */
void tasks_stop_leaving(struct core *core, struct job *job);
/* Dismisses all joiners, because no generation follows. */
void joiners_dismiss(struct core *core, struct job *job);
/* No step of the stream's epoch is left: joiners that wait for one get another WARM. */
void joiners_outdate(struct core *core, struct job *job, uint32_t stream);
/* An exited task is to be placed again also before the first plan. */
void task_refill_now(struct job *job, struct task *task);
/* Its worker holds nothing of it any more: frees the slot there. */
void task_collect(struct core *core, struct job *job, uint32_t slot);
/* Empties its slot if it is collected, nothing of it is to be sent, and the job goes on. */
void task_vacate(struct core *core, struct job *job, uint32_t slot);
/* Resets the task to an empty slot; what belongs to the slot stays. */
void task_clear(struct task *task);
/* Whether the task's worker drains. */
bool task_drains(const struct core *core, const struct job *job, const struct task *task);

/* ---- task_group.c ---- */

/* Adds a placed task to the job's task group on the worker. */
void task_group_add(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
/* Removes the task; a task group without tasks is removed, too. */
void task_group_remove(struct core *core, struct job *job, uint32_t slot);
/* The first slot of the job's task group on a worker, or NONE. */
uint32_t task_group_first(const struct core *core, const struct job *job, uint32_t worker);
/* The slot after `slot`, or NONE. If `slot` was removed meanwhile, the walk starts again, so slots
 * that are left may be visited twice. */
uint32_t task_group_next(
    const struct core *core, const struct job *job, uint32_t worker, uint32_t slot);
/* Its worker is lost: it keeps its tasks, and belongs to no worker. */
void task_group_orphan(struct core *core, struct job *job, uint32_t number);
/* The starts of its STARTING tasks are to be sent to its worker again. */
void task_group_restart(struct core *core, struct job *job, uint32_t number);

#endif
