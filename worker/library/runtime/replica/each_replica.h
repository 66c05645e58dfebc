/* SPDX-License-Identifier: Apache-2.0
 * A function of the library on each local replica. */
#ifndef CADRE_RUNTIME_EACH_REPLICA_H
#define CADRE_RUNTIME_EACH_REPLICA_H

#include "worker/library/runtime/strategy/strategy.h"

/* A collective of the library itself on one local replica. */
typedef cadre_status (*strategy_function)(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error);
/* Calls `function` for each local replica, in their threads, outside of steps. Returns the first
 * failure, CADRE_ABORTED last. */
cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error);

#endif
