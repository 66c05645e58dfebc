/* SPDX-License-Identifier: Apache-2.0
 * Whether the copy that the chief writes is the state of all replicas: a bit may flip in it between
 * the moment when it is taken and the one when the writer hashes it. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_AGREED_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_AGREED_H

#include <stdbool.h>
#include <stdint.h>

struct cadre_strategy;
struct checkpointer;

/* The replicas' states at `position` were compared, and all have this digest: the part that is
 * written, or will be, is reported with that. Any thread in which no copy is taken. */
void checkpoint_agreed(const struct cadre_strategy *strategy, uint64_t position, uint64_t digest);

/* Under the lock: a copy is taken, of a state that has the digest `held`; 0: that is not known. */
void checkpoint_agreed_begin(struct checkpointer *checkpointer, uint64_t held);
/* Under the lock: whether the copy's digest is one that all replicas had there. */
bool checkpoint_agreed_on(const struct checkpointer *checkpointer, uint64_t digest);

#endif
