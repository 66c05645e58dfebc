/* SPDX-License-Identifier: Apache-2.0
 * One step on the local replicas: who may enter a collective, and whether all make the same ones.
 * The rule of admission is protocol rule 1: a replica enters a step's first collective only when
 * the coordinator has released the step. */
#ifndef CADRE_RUNTIME_STEP_H
#define CADRE_RUNTIME_STEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "common/base/error.h"

struct step {
    uint64_t position;
    int64_t global_rows;
    uint32_t input_count;
    atomic_bool admitted;
    pthread_mutex_t lock; /* over what follows and the replicas' `collectives` */
    bool some_ended;
    uint32_t ended_replica;     /* one that returned ... */
    uint32_t ended_collectives; /* ... after so many collectives */
};

struct cadre_replica {
    cadre_strategy *strategy;
    uint32_t id;
    uint32_t local;
    bool active;                          /* its function is running */
    uint32_t collectives;                 /* begun in this step */
    struct cadre_error collective_failed; /* the first one of this step; code not OK */
    bool all_know;       /* its failure is one that every replica has seen in the same collective */
    cadre_status status; /* of its part of the step */
    struct cadre_error error;
};

/* Prepares the step at the task's position; no replica is running. */
void step_begin(
    cadre_strategy *strategy, uint64_t position, int64_t global_rows, uint32_t input_count);

/* Before each collective of a replica: waits for the admission, once a step. INVALID_ARGUMENT when
 * another local replica is through with fewer collectives; FAILED_PRECONDITION outside of a step.
 * *ret_index (may be NULL): which of the step's collectives it is. */
cadre_status step_collective(
    cadre_replica *replica, uint32_t *ret_index, struct cadre_error *error);

/* After each collective of a replica: a failure is kept, since the function may not look at it.
 * Returns `status`. */
cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, const struct cadre_error *error);

/* After a replica's function returned OK, or failed as all others do: INVALID_ARGUMENT when another
 * has begun more collectives. */
cadre_status step_replica_end(cadre_replica *replica, struct cadre_error *error);

#endif
