/* SPDX-License-Identifier: Apache-2.0
 * Ps jobs: a chief, workers, parameter servers, evaluators. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PS_JOB_H
#define CADRE_COORDINATOR_CORE_FACTS_PS_JOB_H

#include "coordinator/core/state/state.h"

/* ---- ps_job.c ---- */

/* Whether the number of tasks fits the roles, if it is a ps job. */
bool ps_job_fits(const struct core_job_spec *spec);
/* Sets the roles of its slots. */
void ps_job_init(struct core *core, struct job *job);
/* The fewest members of a generation. */
uint32_t job_members_min(const struct job *job);
/* Usable workers and evaluators. */
uint32_t ps_job_nonserver_count(const struct job *job);
/* Slots that need no task now. */
uint32_t ps_job_held_slots(const struct core *core, const struct job *job);
/* A ps task said hello or ended. */
void ps_job_member_changed(struct core *core, struct job *job, uint32_t slot);
/* The chief has a plan: MEMBERS is due. */
void ps_job_planned(struct core *core, struct job *job);
/* True: MEMBERS is deferred until job.members_next_us. False: it is to be sent now. */
bool ps_job_delays_members(struct core *core, struct job *job);
/* DEADLINE_MEMBERS: what was deferred is due. */
void ps_job_members_timeout(struct core *core, struct job *job);
/* Whether MEMBERS may be sent now. */
bool ps_job_members_known(const struct job *job);
/* Sends MEMBERS to one task, if it is not due for all. */
void ps_job_send_members(struct core *core, struct job *job, uint32_t slot);
/* A ps task said hello; `known`: not its first. */
void ps_job_hello(struct core *core, struct job *job, uint32_t slot, bool known);
/* The slot has a new task: counts the attempt. */
void ps_job_task_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
/* The slot's last task is about to be removed: keeps where a server's memory is. */
void ps_job_task_vacated(struct core *core, struct job *job, uint32_t slot);
/* The generation is over, and all tasks are started again. */
void ps_job_restart(struct core *core, struct job *job);
/* A server reports which server has its copy: recorded, then sent to it with MEMBERS. */
void ps_job_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed);
/* Whether its wait is too short to be shown. */
bool ps_job_only_waits(const struct core *core, const struct job *job);
/* After a start of the coordinator: the recorded attempts and copy of a task. */
void ps_job_restore_attempts(
    const struct job *job, struct task *task, const struct core_restore_task *restore);

/* ---- ps_tasks.c ---- */

/* Dismisses servers, or workers and evaluators; `unregistered`: only those without a hello. */
void ps_tasks_dismiss(struct core *core, struct job *job, bool servers, bool unregistered);
/* The chief has exited for good: dismisses the others. */
void ps_tasks_dismiss_all(struct core *core, struct job *job);
/* DEADLINE_PS_JOB. */
void ps_tasks_timeout(struct core *core, struct job *job);
/* DEADLINE_WAIT of a ps job: it fails. */
void ps_tasks_wait_timeout(struct core *core, struct job *job);
/* After a start of the coordinator: MEMBERS waits for the hellos of the running ps tasks. */
void ps_tasks_restored(struct core *core, struct job *job);

#endif
