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

/* What a replica asks of a collective: how replicas that disagree are told apart. */
struct step_call {
    const char *function; /* as the program called it; NULL: nothing was called */
    uint64_t key;         /* of all that must be equal */
    int64_t root;         /* whose tensors all get; -1: nobody's */
    size_t tensor_count;
    cadre_tensor_spec first; /* of the tensors */
};

/* What replicas are fed in a step: told by all in its first collective, so that every task knows
 * what the whole step was fed, and what it should have been. */
struct step_feed {
    uint64_t samples;
    uint64_t fed[2];
    uint64_t expected[2]; /* the chief's */
    uint64_t provable;    /* 1: the chief knows; else 0 */
};

struct step {
    atomic_bool running; /* replica functions are being called */
    uint64_t position;
    int64_t global_rows;
    uint32_t input_count;
    uint32_t collectives_begun; /* by a replica, at most; of the last attempt at a step */
    struct step_feed own;       /* of this task */
    struct step_feed whole;     /* of all tasks, once `feed_known` */
    bool feed_known;
    atomic_bool admitted;
    pthread_mutex_t lock; /* over what follows and the replicas' `collectives` and `call` */
    struct cadre_error disagreement; /* the first in this step; code OK: none */
    bool some_ended;
    uint32_t ended_replica;     /* one that returned ... */
    uint32_t ended_collectives; /* ... after so many collectives */
};

struct cadre_replica {
    cadre_strategy *strategy;
    uint32_t id;
    uint32_t local;
    bool active;           /* its function is running */
    uint32_t collectives;  /* begun in this step */
    struct step_call call; /* the last of them */
    struct cadre_error
        collective_failed; /* the first refusal or failure of this step; code not OK */
    bool all_know;  /* its failure is one that every replica has seen in the same collective */
    bool feed_told; /* what it is fed was told in this step */
    cadre_tensor *outputs[CADRE_OUTPUTS_MAX]; /* that its function made */
    cadre_status status;                      /* of its part of the step */
    struct cadre_error error;
};

/* Prepares the step at the task's position; no replica is running. `own` is what this task feeds.
 */
void step_begin(cadre_strategy *strategy, uint64_t position, int64_t global_rows,
    uint32_t input_count, const struct step_feed *own);

/* The replicas have returned. */
void step_end(cadre_strategy *strategy);

/* FAILED_PRECONDITION for `function` called with a replica whose function is not running. */
cadre_status step_require(
    const cadre_replica *replica, const char *function, struct cadre_error *error);

/* Keeps a refusal that the program may not look at: replicas that went on would not be equal. */
void step_refused(cadre_replica *replica, const struct cadre_error *error);

/* Before each collective of a replica whose function runs: waits for the admission, once a step.
 * INVALID_ARGUMENT when another local replica is through with fewer collectives; one that asks for
 * something else is noted, for every replica will find that out in the mesh. *ret_index (may be
 * NULL): which of the step's collectives it is. */
cadre_status step_collective(cadre_replica *replica, const struct step_call *call,
    uint32_t *ret_index, struct cadre_error *error);

/* After each collective of a replica: a failure is kept, since the function may not look at it, and
 * a disagreement is put into the program's words. Returns `status`. */
cadre_status step_collective_end(
    cadre_replica *replica, cadre_status status, struct cadre_error *error);

/* After a replica's function returned OK, or failed as all others do: INVALID_ARGUMENT when another
 * has begun more collectives. */
cadre_status step_replica_end(cadre_replica *replica, struct cadre_error *error);

#endif
