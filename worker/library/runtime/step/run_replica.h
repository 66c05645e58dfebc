/* SPDX-License-Identifier: Apache-2.0
 * A replica's part of a step: from the call of its function to the moment when nothing of it can
 * fail any more. */
#ifndef CADRE_RUNTIME_RUN_REPLICA_H
#define CADRE_RUNTIME_RUN_REPLICA_H

#include <stdatomic.h>

#include "worker/library/runtime/strategy/strategy.h"

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
