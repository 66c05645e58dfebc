/* SPDX-License-Identifier: Apache-2.0
 * The end of a distributed dataset. Threads that read ahead are waited for, and they may be inside
 * a function of the program that never returns: a generator that waits for an input which does not
 * come, a read of a disk that fails. The training is saved by then, and must not hang for it. */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/values/values.h"

void distributed_free(cadre_distributed_dataset *distributed)
{
    if (distributed != NULL) {
        distributed_close(distributed);
        per_replica_drop(distributed->batch);
        cadre_dataset_release(distributed->data);
        file_shares_clear(&distributed->shares);
        file_shares_clear(&distributed->received.shares);
        distributed_state_clear(&distributed->received.state);
        free(distributed->pipeline);
        free(distributed);
    }
}

/* Shared with the thread that closes; the last of both frees it. */
struct closing {
    cadre_distributed_dataset *distributed;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    bool left; /* the wait is over: the thread frees the dataset too */
};

static void closing_free(struct closing *closing)
{
    pthread_cond_destroy(&closing->changed);
    pthread_mutex_destroy(&closing->lock);
    distributed_free(closing->distributed);
    free(closing);
}

static void *close_it(void *argument)
{
    struct closing *closing = argument;
    crash_thread("input end", 0);
    distributed_close(closing->distributed);
    pthread_mutex_lock(&closing->lock);
    CADRE_ASSERT(!closing->closed);
    closing->closed = true;
    bool left = closing->left;
    pthread_cond_signal(&closing->changed);
    pthread_mutex_unlock(&closing->lock);
    if (left) {
        closing_free(closing);
    }
    return NULL;
}

static bool await_closed(struct closing *closing, uint64_t wait_us)
{
    uint64_t end_us = clock_monotonic_us() + wait_us;
    int late = 0;
    pthread_mutex_lock(&closing->lock);
    while (!closing->closed && late == 0) {
        late = thread_wait_until(&closing->changed, &closing->lock, end_us);
    }
    bool closed = closing->closed;
    closing->left = !closed;
    pthread_mutex_unlock(&closing->lock);
    return closed;
}

bool distributed_retire(cadre_distributed_dataset *distributed, uint64_t wait_us)
{
    pthread_t thread;
    struct closing *closing = calloc(1, sizeof *closing);
    if (closing == NULL) {
        distributed_free(distributed);
        return true;
    }
    closing->distributed = distributed;
    pthread_mutex_init(&closing->lock, NULL);
    pthread_cond_init(&closing->changed, NULL);
    if (pthread_create(&thread, NULL, close_it, closing) != 0) {
        closing_free(closing);
        return true;
    }
    if (!await_closed(closing, wait_us)) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    closing_free(closing);
    return true;
}
