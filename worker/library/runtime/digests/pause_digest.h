/* SPDX-License-Identifier: Apache-2.0
 * The state of a task where it paused must be its state in its next step, which is the same one. A
 * task in which a bit has flipped since may have given its state to all others, so that only it can
 * find that. */
#ifndef CADRE_RUNTIME_PAUSE_DIGEST_H
#define CADRE_RUNTIME_PAUSE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"

/* Whether a local replica, whose state before the current step has this digest, had another state
 * where it paused before that step. */
bool pause_digest_differs(const cadre_strategy *strategy, uint64_t digest);

/* The digest that the replica sends for a state with this digest: if its state was another one, a
 * number that no other sends, so that all search whose state is not right. */
uint64_t pause_digest_to_send(const cadre_replica *replica, uint64_t digest);

#endif
