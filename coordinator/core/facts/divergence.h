/* SPDX-License-Identifier: Apache-2.0
 * Replicas that stand at one position and do not hold the same state. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_DIVERGENCE_H
#define CADRE_COORDINATOR_CORE_FACTS_DIVERGENCE_H

#include "coordinator/core/state/state.h"

/* A member found it where states are compared. */
void divergence_reported(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);
/* The generation goes on from before a start of the coordinator: not if its states differed. */
void divergence_restored(struct core *core, struct job *job);
/* When all stand still (at their end, at a stop, for who joins or leaves) and have said so:
 * compares the digests that they told, and at an end or stop that of the chief's part of that
 * position. Whether they differ: then it is noted. */
bool divergence_compare(struct core *core, struct job *job);
/* Whether all stand at their end or at a stop, and so does the part, and none differs of those that
 * are known. */
bool divergence_excluded(const struct core *core, const struct job *job);

#endif
