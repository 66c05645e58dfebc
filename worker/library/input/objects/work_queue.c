/* SPDX-License-Identifier: Apache-2.0
 * See work_queue.h. */
#include "worker/library/input/objects/work_queue.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_added = PTHREAD_COND_INITIALIZER;
/* Under the lock. */
static struct work *first_of[WORK_RANKS];
static struct work *last_of[WORK_RANKS];
static uint32_t waiting_works;
static uint32_t threads;
static uint32_t idle_threads;

static void work_queue_append(struct work *work)
{
    work->before = last_of[work->rank];
    work->behind = NULL;
    if (work->before != NULL) {
        work->before->behind = work;
    } else {
        first_of[work->rank] = work;
    }
    last_of[work->rank] = work;
    work->queued = true;
    waiting_works++;
}

static void work_queue_unlink(struct work *work)
{
    CADRE_ASSERT(work->queued);
    if (work->before != NULL) {
        work->before->behind = work->behind;
    } else {
        first_of[work->rank] = work->behind;
    }
    if (work->behind != NULL) {
        work->behind->before = work->before;
    } else {
        last_of[work->rank] = work->before;
    }
    work->queued = false;
    waiting_works--;
}

static void *work_queue_thread(void *unused)
{
    (void)unused;
    crash_thread("object", 0);
    pthread_mutex_lock(&work_lock);
    for (;;) {
        struct work *work = NULL;
        for (size_t rank = 0; work == NULL && rank < WORK_RANKS; rank++) {
            work = first_of[rank];
        }
        if (work == NULL) {
            idle_threads++;
            pthread_cond_wait(&work_added, &work_lock);
            idle_threads--;
            continue;
        }
        work_queue_unlink(work);
        pthread_mutex_unlock(&work_lock);
        work->run(work);
        pthread_mutex_lock(&work_lock);
    }
    return NULL;
}

/* One thread more where those that wait are fewer than what waits for them. */
static void start_thread(void)
{
    pthread_t thread;
    if (waiting_works > idle_threads && threads < WORK_THREADS_MAX &&
        !fault_point("input.object-thread") &&
        thread_start(&thread, work_queue_thread, NULL) == 0) {
        pthread_detach(thread);
        threads++;
    }
}

bool work_queue_add(struct work *work, enum work_rank rank)
{
    pthread_mutex_lock(&work_lock);
    work->rank = rank;
    work_queue_append(work);
    start_thread();
    bool added = threads > 0;
    if (added) {
        pthread_cond_signal(&work_added);
    } else {
        work_queue_unlink(work);
    }
    pthread_mutex_unlock(&work_lock);
    return added;
}

bool work_queue_remove(struct work *work)
{
    pthread_mutex_lock(&work_lock);
    bool queued = work->queued;
    if (queued) {
        work_queue_unlink(work);
    }
    pthread_mutex_unlock(&work_lock);
    return queued;
}
