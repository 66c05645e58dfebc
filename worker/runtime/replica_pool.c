/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/replica_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct pool_thread {
    struct replica_pool *pool;
    uint32_t local;
    pthread_t thread;
};

struct replica_pool {
    pthread_mutex_t lock;
    pthread_cond_t begin;
    pthread_cond_t done;
    uint64_t round; /* counts calls of run */
    uint32_t busy;  /* threads that have not finished this round */
    bool stopping;
    replica_pool_function function;
    void *user;
    uint32_t thread_count;       /* that were started */
    struct pool_thread *threads; /* of local replicas 1, 2, ... */
};

static void *serve(void *argument)
{
    struct pool_thread *self = argument;
    struct replica_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->stopping) {
            pthread_cond_wait(&pool->begin, &pool->lock);
        }
        if (pool->stopping) {
            break;
        }
        seen = pool->round;
        pthread_mutex_unlock(&pool->lock);
        pool->function(self->local, pool->user);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0) {
            pthread_cond_signal(&pool->done);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static cadre_status start_threads(
    struct replica_pool *pool, uint32_t count, struct cadre_error *error)
{
    /* Signals are the program's: they are taken by its own threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = 0;
    while (errnum == 0 && pool->thread_count < count) {
        struct pool_thread *thread = &pool->threads[pool->thread_count];
        *thread = (struct pool_thread){.pool = pool, .local = pool->thread_count + 1};
        errnum = pthread_create(&thread->thread, NULL, serve, thread);
        pool->thread_count += errnum == 0 ? 1 : 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0) {
        return cadre_error_errno(
            error, errnum, "start the thread of local replica %u", pool->thread_count + 1);
    }
    return CADRE_OK;
}

cadre_status replica_pool_open(
    uint32_t count, struct replica_pool **ret_pool, struct cadre_error *error)
{
    *ret_pool = NULL;
    struct replica_pool *pool = calloc(1, sizeof *pool);
    struct pool_thread *threads = calloc(count, sizeof *threads);
    if (pool == NULL || threads == NULL) {
        free(pool);
        free(threads);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u replicas", count);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->begin, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->threads = threads;
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
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->begin);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->begin);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

void replica_pool_run(struct replica_pool *pool, replica_pool_function function, void *user)
{
    pthread_mutex_lock(&pool->lock);
    pool->function = function;
    pool->user = user;
    pool->busy = pool->thread_count;
    pool->round++;
    pthread_cond_broadcast(&pool->begin);
    pthread_mutex_unlock(&pool->lock);
    function(0, user);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0) {
        pthread_cond_wait(&pool->done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}
