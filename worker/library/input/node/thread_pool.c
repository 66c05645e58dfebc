/* SPDX-License-Identifier: Apache-2.0
 * See thread_pool.h. A loop lies on its caller's stack and in the pool's list for as long as it has
 * numbers to hand out; the thread that takes the last one takes it off the list, and the caller
 * waits until those that other threads took are done. */
#include "worker/library/input/node/thread_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cadre/transformations.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"

struct loop {
    void (*function)(void *user, size_t i);
    void *user;
    size_t count;
    size_t next;
    size_t done;
    pthread_cond_t all_done;
    struct loop *behind; /* in the list */
};

struct thread_pool {
    pthread_mutex_t lock; /* guards everything below and all loops */
    pthread_cond_t work;
    struct loop *loops;
    bool quit;
    uint32_t thread_count;
    pthread_t threads[];
};

uint32_t thread_pool_processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : (uint32_t)count;
}

cadre_status thread_pool_parallel(
    int32_t parallel, const char *who, uint32_t *ret_threads, struct cadre_error *error)
{
    if (parallel < CADRE_PARALLEL_AUTO || parallel > THREADS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: parallel %" PRId32 "; give 0 to %d, or CADRE_PARALLEL_AUTO", who, parallel,
            THREADS_MAX);
    }
    *ret_threads = parallel == CADRE_PARALLEL_AUTO ? thread_pool_processors()
                   : parallel == 0                 ? 1
                                                   : (uint32_t)parallel;
    return CADRE_OK;
}

/* With the lock held: makes one call of the loop, which has one left. */
static void call_next(struct thread_pool *pool, struct loop *loop)
{
    size_t i = loop->next++;
    if (loop->next == loop->count) {
        struct loop **at = &pool->loops;
        while (*at != loop) {
            at = &(*at)->behind;
        }
        *at = loop->behind;
    }
    pthread_mutex_unlock(&pool->lock);
    loop->function(loop->user, i);
    pthread_mutex_lock(&pool->lock);
    if (++loop->done == loop->count) {
        pthread_cond_signal(&loop->all_done);
    }
}

static void *thread_pool_serve(void *argument)
{
    struct thread_pool *pool = argument;
    crash_thread("input", 0);
    pthread_mutex_lock(&pool->lock);
    while (!pool->quit) {
        if (pool->loops != NULL) {
            call_next(pool, pool->loops);
        } else {
            pthread_cond_wait(&pool->work, &pool->lock);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

cadre_status thread_pool_create(
    uint32_t threads, struct thread_pool **ret_pool, struct cadre_error *error)
{
    CADRE_ASSERT(threads >= 1 && threads <= THREADS_MAX);
    *ret_pool = NULL;
    struct thread_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->threads[0]);
    if (pool == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for threads");
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    int failure = 0;
    while (failure == 0 && pool->thread_count < threads) {
        failure = fault_point("thread.create") ? EAGAIN
                                               : pthread_create(&pool->threads[pool->thread_count],
                                                     NULL, thread_pool_serve, pool);
        pool->thread_count += failure == 0;
    }
    if (pool->thread_count == 0) {
        thread_pool_free(pool);
        return cadre_error_errno(error, failure, "cannot start a thread");
    }
    *ret_pool = pool;
    return CADRE_OK;
}

void thread_pool_run(
    struct thread_pool *pool, size_t count, void (*function)(void *user, size_t i), void *user)
{
    if (pool == NULL || count <= 1) {
        for (size_t i = 0; i < count; i++) {
            function(user, i);
        }
        return;
    }
    struct loop loop = {.function = function, .user = user, .count = count};
    pthread_cond_init(&loop.all_done, NULL);
    pthread_mutex_lock(&pool->lock);
    struct loop **end = &pool->loops;
    while (*end != NULL) {
        end = &(*end)->behind;
    }
    *end = &loop;
    pthread_cond_broadcast(&pool->work);
    while (loop.next < loop.count) {
        call_next(pool, &loop);
    }
    while (loop.done < loop.count) {
        pthread_cond_wait(&loop.all_done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&loop.all_done);
}

void thread_pool_free(struct thread_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    CADRE_ASSERT(pool->loops == NULL);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
