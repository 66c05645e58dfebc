/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/replica_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/replica/handoff.h"

struct pool_thread {
    struct replica_pool *pool;
    uint32_t local;
    struct handoff_spin_budget spin_budget; /* its own from its start on */
    pthread_t thread;
};

struct replica_pool {
    struct handoff round; /* counts calls of run, and the end */
    struct handoff busy;  /* threads that have not finished this round */
    /* Written between the rounds. */
    replica_pool_function function;
    void *user;
    bool stopping;
    struct handoff_spin_budget spin_budget; /* of the caller of run */
    uint32_t thread_count;                  /* that were started */
    struct pool_thread *threads;            /* of local replicas 1, 2, ... */
};

static void *replica_pool_serve(void *argument)
{
    struct pool_thread *self = argument;
    crash_thread("replica", self->local);
    struct replica_pool *pool = self->pool;
    uint32_t seen = 0;
    for (;;) {
        seen = handoff_await_change(&pool->round, seen, &self->spin_budget);
        if (pool->stopping) {
            return NULL;
        }
        pool->function(self->local, pool->user);
        handoff_decrement(&pool->busy);
    }
}

static cadre_status start_threads(
    struct replica_pool *pool, uint32_t count, struct cadre_error *error)
{
    int errnum = 0;
    while (errnum == 0 && pool->thread_count < count) {
        struct pool_thread *thread = &pool->threads[pool->thread_count];
        *thread = (struct pool_thread){
            .pool = pool, .local = pool->thread_count + 1, .spin_budget = pool->spin_budget};
        errnum = thread_start(&thread->thread, replica_pool_serve, thread);
        pool->thread_count += errnum == 0 ? 1 : 0;
    }
    if (errnum != 0) {
        return cadre_error_errno(
            error, errnum, "start the thread of local replica %u", pool->thread_count + 1);
    }
    return CADRE_OK;
}

cadre_status replica_pool_open(
    uint32_t count, struct replica_pool **ret_pool, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    *ret_pool = NULL;
    struct replica_pool *pool = aligned_alloc(_Alignof(struct replica_pool), sizeof *pool);
    struct pool_thread *threads = calloc(count, sizeof *threads);
    if (pool == NULL || threads == NULL) {
        free(pool);
        free(threads);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u replicas", count);
    }
    *pool = (struct replica_pool){.threads = threads, .spin_budget = handoff_spin_budget(count)};
    cadre_status status = start_threads(pool, count - 1, error);
    if (status != CADRE_OK) {
        replica_pool_close(pool);
        return status;
    }
    *ret_pool = pool;
    return CADRE_OK;
}

void replica_pool_close(struct replica_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pool->stopping = true;
    handoff_increment(&pool->round);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i].thread, NULL);
    }
    free(pool->threads);
    free(pool);
}

void replica_pool_run(struct replica_pool *pool, replica_pool_function function, void *user)
{
    CADRE_ASSERT(!pool->stopping);
    CADRE_ASSERT(atomic_load_explicit(&pool->busy.value, memory_order_relaxed) == 0);
    if (pool->thread_count == 0) {
        function(0, user);
        return;
    }
    pool->function = function;
    pool->user = user;
    atomic_store_explicit(&pool->busy.value, pool->thread_count, memory_order_relaxed);
    handoff_increment(&pool->round);
    function(0, user);
    handoff_await_zero(&pool->busy, &pool->spin_budget);
}
