/* SPDX-License-Identifier: Apache-2.0
 * Replicas compared: the part of a strategy that hashes the state of each local replica before a
 * step that is due, sends the digest in the step's first collective, and decides what follows when
 * the digests of all replicas are not equal. */
#ifndef CADRE_RUNTIME_DIGESTS_H
#define CADRE_RUNTIME_DIGESTS_H

#include <stdint.h>

#include "common/base/error.h"

struct cadre_strategy;
struct strategy_hooks;

extern const struct strategy_hooks digests_hooks;

/* Where the program ends, or stops: the digest of the final state, which no further step compares.
 * 0: none is wanted. An error: the local replicas' states differ; as that of a step, it is final by
 * hand, and strategy_regroup follows under a daemon. In the program's thread, with no replica
 * running. */
cadre_status digests_at_end(
    struct cadre_strategy *strategy, uint64_t *ret_digest, struct cadre_error *error);

#endif
