/* SPDX-License-Identifier: Apache-2.0
 * What a task held where it stood still, it holds in its next step, which is the same one. One in
 * which a bit has flipped since has perhaps passed its state on to all others: nobody but itself
 * can know. */
#ifndef CADRE_RUNTIME_PAUSE_DIGEST_H
#define CADRE_RUNTIME_PAUSE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"

/* Whether a local replica, whose state before the step at hand has this digest, held something else
 * where it stood still before that step. */
bool pause_digest_differs(const cadre_strategy *strategy, uint64_t digest);

/* What the replica tells of a state with this digest: if it held something else, then what nobody
 * else tells, so that all look for whose state is not right. */
uint64_t pause_digest_to_send(const cadre_replica *replica, uint64_t digest);

#endif
