/* SPDX-License-Identifier: Apache-2.0
 * What is added to the first collective of a step: what replicas consume, and the digests of their
 * states. All of it is one cache line of 64-bit fields that are summed. */
#ifndef CADRE_RUNTIME_PIGGYBACK_H
#define CADRE_RUNTIME_PIGGYBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/strategy/strategy.h"

struct piggyback {
    struct step_consumption consumption;
    uint64_t digests; /* the sum of the replicas' digests */
    uint64_t counts;  /* of the replicas that sent one; beneath bit 32 what the chief sends of the
                         next comparison: bit 31 that it is whole, and how many steps it is to it */
};

/* One cache line, so that what follows is aligned as it would be without. */
union piggyback_buffer {
    struct piggyback piggyback;
    int64_t fields[8];
};
_Static_assert(sizeof(struct piggyback) == sizeof(int64_t[8]), "all of it is one cache line");

/* Whether a replica's collective is its first of a step, and there is something to send: a task
 * that is alone has all of it already. */
bool piggyback_due(const cadre_strategy *strategy, uint32_t local);

/* Fills it in; the first local replica does so for its task. The buffer is that of *piggyback. */
struct mesh_buffer piggyback_make(
    const cadre_strategy *strategy, uint32_t local, union piggyback_buffer *piggyback);

/* Takes up the sums. An error: the replicas' states differ, and the step fails with it on all. */
cadre_status piggyback_receive(cadre_strategy *strategy, uint32_t local,
    const union piggyback_buffer *piggyback, struct cadre_error *error);

/* In the replica's thread: whether all hold what this one does, by the sum of the digests of the
 * `count` replicas that sent one. True only when those are all. An error as of piggyback_receive.
 */
cadre_status piggyback_compare(const cadre_strategy *strategy, uint32_t local, uint64_t own,
    uint64_t sum, uint64_t count, bool *ret_equal, struct cadre_error *error);

#endif
