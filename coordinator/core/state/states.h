/* SPDX-License-Identifier: Apache-2.0
 * The state tables of jobs, generations and workers, and the one function of each that moves. */
#ifndef CADRE_COORDINATOR_CORE_STATE_STATES_H
#define CADRE_COORDINATOR_CORE_STATE_STATES_H

#include "coordinator/core/state/state.h"

void job_move(struct core *core, struct job *job, enum job_state state);
void phase_move(struct job *job, enum phase phase);
void worker_move(struct worker *worker, enum worker_state state);
/* Whether it lacks a member: those that are left freeze, or are about to. */
bool generation_is_broken(const struct job *job);
/* Whether nobody goes on from it: all of its tasks are about to be told to end. */
bool generation_is_void(const struct job *job);
/* Whether the job is to stop at a step, known or not. */
bool preempt_stops(const struct job *job);

#endif
