/* SPDX-License-Identifier: Apache-2.0
 * What is right: the state, the consumption and the timeline of each position. */
#ifndef CADRE_SIM_TRUTH_H
#define CADRE_SIM_TRUTH_H

#include "sim.h"

/* Fills the job's expected values, from its scenario. */
void truth_make(struct job *job);
/* The newest generation owns all from `resume` on. */
void truth_plan(struct job *job, uint64_t resume, uint64_t generation);
/* The step at a position, different for all steps of the job. */
uint64_t truth_step(const struct job *job, uint64_t position);
/* The expected state at a position. */
struct state truth_state(const struct job *job, uint64_t position);
/* Another job's checkpoint of this position, which the job goes on from. */
struct core_checkpoint origin_of(const struct job *job, uint64_t position);
/* One more step of this timeline: its effect on a state. */
void state_apply(const struct job *job, struct state *state, uint64_t position,
    const struct step_consumption *consumed, uint64_t generation);
/* The expected consumption of the first `steps` steps of an epoch. */
struct consumption truth_consumption(
    const struct job *job, uint32_t stream, uint64_t epoch, uint64_t steps);
/* Adds the consumption of one task of so many in a step. */
void truth_slice(const struct job *job, uint64_t position, uint32_t rank, uint32_t count,
    struct step_consumption *consumed);
/* Adds one sample. */
void truth_sample(
    const struct job *job, uint64_t position, uint64_t sample, struct step_consumption *consumed);

#endif
