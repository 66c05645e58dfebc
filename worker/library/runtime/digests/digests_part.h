/* SPDX-License-Identifier: Apache-2.0
 * What a strategy keeps to compare its replicas. */
#ifndef CADRE_RUNTIME_DIGESTS_PART_H
#define CADRE_RUNTIME_DIGESTS_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "common/model/limits.h"
#include "common/model/task_message.h"
#include "worker/library/runtime/digests/compare_interval.h"
#include "worker/library/runtime/state/layout/state_hash.h"

struct digests_part {
    struct state_hashes *hashes; /* [local_replicas]; the first has what is the task's */
    struct compare_interval interval;
    bool due;          /* of the current step */
    bool whole;        /* the current comparison, or the next one, hashes all of the state */
    uint32_t turn;     /* how many there were in this generation */
    uint64_t begun_us; /* when hashing its state began */
    uint64_t took_us;  /* the hashing itself, so far */
    size_t hashed;     /* bytes, of the newest that counts for the interval */
    uint64_t next;     /* a step from this position on is due; POSITION_NONE: none is */
    /* Where it paused last, and the digest of each local replica there; digest 0: nowhere. Until
     * that step is applied the state is the same. */
    struct verified paused;
    /* Replicas were found to differ, and that is not reported yet. Written by local replica 0,
     * before it returns. */
    bool found;
    struct divergence divergence;
    char text[LIMIT_TEXT_BYTES]; /* whose, and in what */
};

/* In the replica's thread, on every replica of the strategy: their digests differ. Finds whose are
 * not those of most, and in which tensor; all get the same result, and none returns before all
 * have. Returns the error that the step, or another operation, fails with. */
cadre_status divergence_find(cadre_replica *replica, struct cadre_error *error);

/* The error of replicas that differ, with `text`: DATA_LOSS by hand, else ABORTED, because all
 * processes are started again. */
cadre_status divergence_fail(cadre_strategy *strategy, const char *text, struct cadre_error *error);

/* --- pause_digest.c: whether the state is still that of the pause. A task in which a bit has
 * flipped since may have given its state to all others, so that only it can find that --- */

/* Whether a local replica, whose state before the current step has this digest, had another state
 * where it paused before that step. */
bool pause_digest_differs(const cadre_strategy *strategy, uint64_t digest);

/* The digest that the replica sends for a state with this digest: if its state was another one, a
 * number that no other sends, so that all search whose state is not right. */
uint64_t pause_digest_to_send(const cadre_replica *replica, uint64_t digest);

#endif
