/* SPDX-License-Identifier: Apache-2.0
 * The inside of cadre_run. */
#ifndef CADRE_RUNTIME_RUN_H
#define CADRE_RUNTIME_RUN_H

#include <stdatomic.h>

#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

/* What cadre_run does once it has entered: for other calls that take a step, too. The outputs are
 * NULL at first. */
cadre_status run_program_step(cadre_strategy *strategy, cadre_replica_function function, void *user,
    cadre_per_replica *input, uint32_t n_outputs, cadre_per_replica *ret_outputs[],
    struct cadre_error *error);

/* --- run_replica.c: a replica's part, until nothing of it can fail any more --- */

struct run {
    struct step_order order;
    cadre_replica_function function;
    void *user;
    atomic_bool aborted; /* the mesh, for a replica that failed, in this attempt */
    bool lost;           /* a device of this task takes no more work */
};

/* For replica_pool_run, with a struct run. Leaves status and error in the replica. */
void run_replica(uint32_t local, void *user);

/* Its part ended because peers were lost: the status of its function is not its own failure. */
bool run_lost_peers(const cadre_replica *replica);

#endif
