/* SPDX-License-Identifier: Apache-2.0
 * One thread per local replica. Local replica 0 runs in the caller's thread: a task of one replica
 * needs no further thread. */
#ifndef CADRE_RUNTIME_REPLICA_POOL_H
#define CADRE_RUNTIME_REPLICA_POOL_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

typedef void (*replica_pool_function)(uint32_t local, void *user);

struct replica_pool;

/* Starts the threads of `count` >= 1 replicas, but for the first. */
cadre_status replica_pool_open(
    uint32_t count, struct replica_pool **ret_pool, struct cadre_error *error);

/* Ends the threads. Accepts NULL. */
void replica_pool_close(struct replica_pool *pool);

/* Calls `function` once for each replica, all at the same time; returns when all have returned. One
 * caller at a time. */
void replica_pool_run(struct replica_pool *pool, replica_pool_function function, void *user);

/* --- each_replica.c --- */

/* A collective of the library itself on one local replica. */
typedef cadre_status (*strategy_function)(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error);
/* Calls `function` for each local replica, in their threads, outside of steps. Returns the first
 * failure, CADRE_ABORTED last. */
cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error);

#endif
