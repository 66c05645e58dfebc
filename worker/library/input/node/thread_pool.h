/* SPDX-License-Identifier: Apache-2.0
 * Threads that share a loop: calls of one function for the numbers 0 to count - 1. */
#ifndef CADRE_WORKER_INPUT_NODE_THREAD_POOL_H
#define CADRE_WORKER_INPUT_NODE_THREAD_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define THREADS_MAX 1024 /* of one pool */

struct thread_pool;

/* Processors that this process may use (its affinity), at least 1. */
uint32_t thread_pool_processors(void);

/* What `parallel` of a transformation named `who` means: 0 and 1 are 1, CADRE_PARALLEL_AUTO is
 * thread_pool_processors. INVALID_ARGUMENT: other negative numbers, and more than THREADS_MAX. */
cadre_status thread_pool_parallel(
    int32_t parallel, const char *who, uint32_t *ret_threads, struct cadre_error *error);

/* `threads` of its own, 1 to THREADS_MAX; fewer if the system gives no more, but at least one. */
cadre_status thread_pool_create(
    uint32_t threads, struct thread_pool **ret_pool, struct cadre_error *error);

/* Calls function(user, i) for each i below `count`, smaller ones first, on the threads of the pool
 * and on the calling one, and returns when all calls have returned. Any number of threads may have
 * loops in one pool at a time. `pool` NULL: the calling thread alone. */
void thread_pool_run(
    struct thread_pool *pool, size_t count, void (*function)(void *user, size_t i), void *user);

/* Ends the threads. No thread may be in thread_pool_run. NULL is allowed. */
void thread_pool_free(struct thread_pool *pool);

#endif
