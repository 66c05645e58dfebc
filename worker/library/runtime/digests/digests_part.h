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
    bool due;          /* of the step at hand */
    bool whole;        /* the comparison at hand, or the next one, hashes all of the state */
    uint32_t turn;     /* how many there were in this generation */
    uint64_t begun_us; /* when its state was begun to be hashed */
    uint64_t took_us;  /* the hashing itself, so far */
    size_t hashed;     /* bytes, of the newest that counts for the interval */
    uint64_t next;     /* a step from this position on is due; POSITION_NONE: none is */
    /* Where it stood still last, and what each local replica held there; digest 0: nowhere. Until
     * that step is applied it holds the same. */
    struct verified paused;
    /* Replicas were found to differ, and nobody was told. Written by local replica 0, before it
     * returns. */
    bool found;
    struct divergence divergence;
    char text[LIMIT_TEXT_BYTES]; /* whose, and in what */
};

/* In the replica's thread, on every replica of the strategy: their digests differ. Finds out whose
 * are not those of most, and in what; all come to the same, and none returns before all have.
 * Returns what the step, or what was done instead, fails with. */
cadre_status divergence_find(cadre_replica *replica, struct cadre_error *error);

/* What to return where they differ, with `text` of that: DATA_LOSS by hand, else ABORTED, for all
 * processes are started again. */
cadre_status divergence_fail(cadre_strategy *strategy, const char *text, struct cadre_error *error);

#endif
