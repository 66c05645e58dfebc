/* SPDX-License-Identifier: Apache-2.0
 * The current step, for all parts of a strategy. What replica threads use in each step is together
 * in memory, in the strategy itself. */
#ifndef CADRE_RUNTIME_STEP_STATE_H
#define CADRE_RUNTIME_STEP_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/model/task_message.h"

/* What replicas consume in a step: sent by all in its first collective, so that every task has what
 * the whole step consumed, and what it should have consumed. */
struct step_consumption {
    uint64_t samples;
    uint64_t consumed[2];
    uint64_t expected[2]; /* the chief's */
    uint64_t provable;    /* 1: the chief has those; else 0 */
};

struct step {
    atomic_bool running; /* replica functions are being called */
    uint64_t position;
    _Atomic uint64_t begun; /* attempts at steps, ever */
    int64_t global_rows;
    uint32_t input_count;
    const char *const *input_names; /* kept (component_names.h); NULL: none */
    uint32_t collectives_begun;     /* by a replica, at most; of the last attempt at a step */
    struct step_consumption own;    /* of this task */
    struct step_consumption whole;  /* of all tasks, once `consumption_known` */
    bool consumption_known;
    bool equal;               /* the digests of all replicas came, and are equal */
    uint32_t compares_in;     /* steps from this one to the next that is compared: what the chief
                                 sends, 0 of others; then what came */
    bool compares_whole;      /* that one hashes all of the state, likewise */
    struct verified verified; /* the newest in this generation; digest 0: none */
    atomic_bool admitted;
    /* Collectives of the replica that returned with the fewest; UINT32_MAX: none has returned. A
     * replica counts its call before it reads this, and one that returns writes this before it
     * reads the counts of the others: one of the two sees the other. */
    atomic_uint ended_collectives;
    /* Replicas that have come to a merge call and wait there. One that arrives counts itself before
     * it reads which have returned, and one that returns stores that before it reads this: one of
     * the two sees the other, and a step without merge calls needs no lock. */
    atomic_uint meeting;
    pthread_mutex_t lock;   /* over what follows, and over changes of ended_collectives */
    uint32_t ended_replica; /* which replica that is */
};

#endif
