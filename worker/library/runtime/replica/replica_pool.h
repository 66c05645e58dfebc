/* SPDX-License-Identifier: Apache-2.0
 * One thread per local replica. Local replica 0 runs in the caller's thread: a task of one replica
 * needs no further thread. */
#ifndef CADRE_RUNTIME_REPLICA_POOL_H
#define CADRE_RUNTIME_REPLICA_POOL_H

#include <stdint.h>

#include "common/base/error.h"

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

#endif
