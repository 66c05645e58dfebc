/* SPDX-License-Identifier: Apache-2.0
 * Crews. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PS_JOB_H
#define CADRE_COORDINATOR_CORE_FACTS_PS_JOB_H

#include "coordinator/core/state/state.h"

/* Whether the number of tasks is that of the crew, if it is one. */
bool ps_job_fits(const struct core_job_spec *spec);
/* Its slots are known for what they are. */
void ps_job_init(struct core *core, struct job *job);
/* The fewest tasks that a generation needs. */
uint32_t job_members_min(const struct job *job);
/* Usable attendants but servers. */
uint32_t ps_job_nonserver_count(const struct job *job);
/* Slots that need nobody now. */
uint32_t ps_job_held_slots(const struct core *core, const struct job *job);
/* An attendant came or went. */
void ps_job_member_changed(struct core *core, struct job *job, uint32_t slot);
/* Its chief has a plan. */
void ps_job_planned(struct core *core, struct job *job);
/* Takes what is due of members, or holds it back for a while. */
bool ps_job_delays_members(struct core *core, struct job *job);
/* Its deadline. */
void ps_job_members_timeout(struct core *core, struct job *job);
/* Whether its tasks may be told of each other now. */
bool ps_job_members_known(const struct job *job);
/* All of it to one task. */
void ps_job_send_members(struct core *core, struct job *job, uint32_t slot);
/* `known`: not for the first time. */
void ps_job_hello(struct core *core, struct job *job, uint32_t slot, bool known);
/* The slot has a new task; its last is about to be forgotten. */
void ps_job_task_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
void ps_job_task_vacated(struct core *core, struct job *job, uint32_t slot);
/* The generation is over, and all are started again. */
void ps_job_restart(struct core *core, struct job *job);
/* A server says whose copy it counts on: recorded, then it is told. */
void ps_job_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed);
/* Whether what it waits for is about to come. */
bool ps_job_only_waits(const struct core *core, const struct job *job);
/* After a start of the coordinator. */
void ps_job_restore_attempts(
    const struct job *job, struct task *task, const struct core_restore_task *restore);

#endif
