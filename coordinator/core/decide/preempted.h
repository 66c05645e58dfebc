/* SPDX-License-Identifier: Apache-2.0
 * A preempted job that is done with its step, or with its tasks. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PREEMPTED_H
#define CADRE_COORDINATOR_CORE_DECIDE_PREEMPTED_H

#include "coordinator/core/state/state.h"

/* Members of a generation that is over stand at `position`: true when that is saved already, and
 * they are sent away. */
bool preempted_at_once(struct core *core, struct job *job, uint64_t position);
/* Nobody is left of a job that was preempted: it ends, or goes back to the queue. */
void preempted_gone(struct core *core, struct job *job);
/* When all are collected. */
void preempted_requeue(struct core *core, struct job *job);
/* Somebody came to the step, or something was published: perhaps all are done. */
void preempted_halted(struct core *core, struct job *job);

#endif
