/* SPDX-License-Identifier: Apache-2.0
 * The newest position with equal states on all replicas, and the published one in releases. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_VERIFIED_H
#define CADRE_COORDINATOR_CORE_FACTS_VERIFIED_H

#include "coordinator/core/state/state.h"

/* ---- verified.c ---- */

/* All replicas had this state. An older position than the known one, one that no member of this
 * generation can have compared, or none changes nothing. */
void verified_raise(struct core *core, struct job *job, const struct verified *verified);
/* Whether the state that this part of this generation holds was compared, or cannot be. */
bool verified_covers(
    const struct core *core, const struct job *job, const struct core_checkpoint *part);

/* Whether the generation is one replica, with no other to be compared with. */
bool verified_is_alone(const struct core *core, const struct job *job);
/* A generation begins: later positions are on a timeline that is cut off. */
void verified_cut(struct job *job);
/* All finished: the newest is recorded, however soon after the last. */
void verified_last(struct core *core, struct job *job);
/* The newest published checkpoint is recorded with its digest, which counts as verified if nothing
 * later is, as in a job with only one task left. */
void verified_published(struct job *job);
/* After a start of the coordinator: the recorded one. */
void verified_restore(struct job *job, const struct core_restore_job *restore);

/* Whether a job whose members all reported must not go on from `position`, the highest one: the
 * members ask for verified states, no such late one is verified, and a member was lost or is at
 * another position, so that its state can no longer be compared. */
bool verified_lacks(const struct core *core, const struct job *job, uint64_t position);

/* ---- published.c ---- */

/* A checkpoint of this position is published. */
void published_raise(struct job *job, uint64_t position);
/* A generation begins: later positions are on a timeline that is cut off. */
void published_cut(struct job *job);
/* A checkpoint is lost that members may have received: records the position. */
void published_note(struct core *core, struct job *job);
/* After a start of the coordinator: what members may have received. */
void published_restore(struct job *job, const struct core_restore_job *restore);

#endif
