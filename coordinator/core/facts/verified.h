/* SPDX-License-Identifier: Apache-2.0
 * The newest position whose states were found equal on all replicas. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_VERIFIED_H
#define CADRE_COORDINATOR_CORE_FACTS_VERIFIED_H

#include "coordinator/core/state/state.h"

/* Somebody who compared those of all says so. Of an older position than is known, of one that no
 * member of this generation can have compared, or of none: nothing changes. */
void verified_raise(struct core *core, struct job *job, const struct verified *verified);
/* Whether the state that this part of this generation holds was compared, or needs not be. */
bool verified_covers(
    const struct core *core, const struct job *job, const struct core_checkpoint *part);

/* The generation is one replica: nobody could be compared with it. */
bool verified_is_alone(const struct core *core, const struct job *job);
/* A generation begins: what lies behind its first position is of a line that is cut off. */
void verified_cut(struct job *job);
/* All finished: what is known is recorded, however soon after the last. */
void verified_last(struct core *core, struct job *job);
/* The newest published checkpoint is recorded, with its digest. Where nobody could contradict it,
 * as in a job whose only task is what is left of many, that counts. */
void verified_published(struct job *job);
/* After a start of the coordinator. */
void verified_restore(struct job *job, const struct core_restore_job *restore);

/* Whether a job whose members all reported may not go on from `position`, the highest where one
 * stands: they want it to go on from what is verified, nothing so late is, and a member is gone, or
 * stands elsewhere and would take over another's state, so that nobody will compare what it held.
 */
bool verified_lacks(const struct core *core, const struct job *job, uint64_t position);

#endif
