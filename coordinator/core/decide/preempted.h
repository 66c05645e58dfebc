/* SPDX-License-Identifier: Apache-2.0
 * A preempted job that has reached its step, or whose tasks have exited. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PREEMPTED_H
#define CADRE_COORDINATOR_CORE_DECIDE_PREEMPTED_H

#include "coordinator/core/state/state.h"

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
