/* SPDX-License-Identifier: Apache-2.0
 * How a generation ends, and what follows. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H
#define CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H

#include "coordinator/core/state/state.h"

/* ---- regroup.c ---- */

/* A running generation lacks a member: the others freeze and report. */
void regroup_break(struct core *core, struct job *job);
/* No state is left: dismisses all tasks, which are started again (protocol, rules 9 and 29). */
void regroup_restart(struct core *core, struct job *job);
/* Forms the next generation, or waits, depending on the tasks that are there. */
void regroup_decide(struct core *core, struct job *job);

/* ---- plan.c ---- */

/* The next generation: all members that are left but those that drain when `drains`, and the
 * joiners of the stream when `joins`. `source` is a slot or NONE. */
struct plan_choice {
    uint64_t resume;
    uint32_t source; /* slot, or NONE: no task has the state */
    bool joins;
    uint32_t stream;
    bool drains;
    bool first; /* of tasks that said hello and were in no generation yet */
};

/* Forms the next generation from the members and joiners of the choice. */
void plan_make(struct core *core, struct job *job, const struct plan_choice *choice);

/* ---- disband.c ---- */

/* Ends the generation: dismisses all its tasks with `why`; the job is in PHASE_JOIN afterwards. */
void disband(struct core *core, struct job *job, enum dismissal why);
/* The same for a void generation: the job is preempted, or its checkpoint is damaged. */
void disband_void(struct core *core, struct job *job);

/* ---- preempted.c ---- */

/* Members of an ended generation are at `position`: true when that is saved already, and the job's
 * tasks are ended. */
bool preempted_at_once(struct core *core, struct job *job, uint64_t position);
/* No task of a preempted job is left: it ends, or is to be queued again. */
void preempted_gone(struct core *core, struct job *job);
/* Queues it again when all its tasks are collected. */
void preempted_requeue(struct core *core, struct job *job);
/* Sends bye when all members are at the stop and its checkpoint is published. */
void preempted_halted(struct core *core, struct job *job);

#endif
