/* SPDX-License-Identifier: Apache-2.0
 * Crews. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_CREW_H
#define CADRE_COORDINATOR_CORE_FACTS_CREW_H

#include "coordinator/core/state/state.h"

/* Whether the number of tasks is that of the crew, if it is one. */
bool crew_fits(const struct core_job_spec *spec);
/* Its slots are known for what they are. */
void crew_open(struct core *core, struct job *job);
/* The fewest tasks that a generation needs. */
uint32_t job_members_min(const struct job *job);
/* Usable attendants but servers. */
uint32_t crew_others(const struct job *job);
/* Slots that need nobody now. */
uint32_t crew_held(const struct core *core, const struct job *job);
/* An attendant came or went. */
void crew_changed(struct core *core, struct job *job, uint32_t slot);
/* Its chief has a plan. */
void crew_planned(struct core *core, struct job *job);
/* Takes what is due of members, or holds it back for a while. */
bool crew_holds_back(struct core *core, struct job *job);
/* Its deadline. */
void crew_members_over(struct core *core, struct job *job);
/* Whether its tasks may be told of each other now. */
bool crew_speaks(const struct job *job);
/* All of it to one task. */
void crew_tell(struct core *core, struct job *job, uint32_t slot);
/* `known`: not for the first time. */
void crew_said_hello(struct core *core, struct job *job, uint32_t slot, bool known);
/* The slot has a new task; its last is about to be forgotten. */
void crew_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker);
void crew_vacates(struct core *core, struct job *job, uint32_t slot);
/* The generation is over, and all are started again. */
void crew_begins_anew(struct core *core, struct job *job);
/* A server says whose copy it counts on: recorded, then it is told. */
void crew_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed);
/* Whether what it waits for is about to come. */
bool crew_just_waits(const struct core *core, const struct job *job);
/* After a start of the coordinator. */
void crew_relives(
    const struct job *job, struct task *task, const struct core_restore_task *restore);

#endif
