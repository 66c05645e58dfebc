/* SPDX-License-Identifier: Apache-2.0
 * The thread that waits in gRPC's queue for a loop that is polled from outside, and the list
 * through which it hands events over. Used by loop.c after the first rpc_loop_fd(). */
#include "common/rpc/loop_state.h"

#include "common/base/thread.h"
#include "common/pure/assert.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

struct pumped {
    struct pumped *next;
    grpc_event event;
};

struct rpc_queue_thread {
    grpc_completion_queue *queue;
    pthread_t thread;
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct pumped *head, *tail;
    bool rung; /* the descriptor is readable */
};

static void notify_locked(struct rpc_queue_thread *queue_thread)
{
    if (!queue_thread->rung) {
        const uint64_t one = 1;
        queue_thread->rung = true;
        ssize_t written = write(queue_thread->fd, &one, sizeof one);
        CADRE_ASSERT(written == (ssize_t)sizeof one);
    }
}

static void *forward_events(void *user)
{
    struct rpc_queue_thread *queue_thread = user;
    bool more = true;
    while (more) {
        struct pumped *pumped = gpr_zalloc(sizeof *pumped);
        pumped->event = grpc_completion_queue_next(
            queue_thread->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        more = pumped->event.type != GRPC_QUEUE_SHUTDOWN;
        pthread_mutex_lock(&queue_thread->lock);
        if (queue_thread->tail != NULL) {
            queue_thread->tail->next = pumped;
        } else {
            queue_thread->head = pumped;
        }
        queue_thread->tail = pumped;
        notify_locked(queue_thread);
        pthread_cond_signal(&queue_thread->came);
        pthread_mutex_unlock(&queue_thread->lock);
    }
    return NULL;
}

cadre_status rpc_queue_thread_open(
    grpc_completion_queue *queue, struct rpc_queue_thread **ret_thread, struct cadre_error *error)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "event loop: no descriptor to poll");
    }
    struct rpc_queue_thread *queue_thread = gpr_zalloc(sizeof *queue_thread);
    queue_thread->queue = queue;
    queue_thread->fd = fd;
    pthread_mutex_init(&queue_thread->lock, NULL);
    pthread_cond_init(&queue_thread->came, NULL);
    int failed = thread_start(&queue_thread->thread, forward_events, queue_thread);
    if (failed != 0) {
        pthread_mutex_destroy(&queue_thread->lock);
        pthread_cond_destroy(&queue_thread->came);
        close(fd);
        gpr_free(queue_thread);
        return cadre_error_errno(error, failed, "event loop: its second thread does not start");
    }
    *ret_thread = queue_thread;
    return CADRE_OK;
}

void rpc_queue_thread_close(struct rpc_queue_thread *queue_thread)
{
    CADRE_ASSERT(queue_thread->head == NULL);
    pthread_join(queue_thread->thread, NULL);
    pthread_mutex_destroy(&queue_thread->lock);
    pthread_cond_destroy(&queue_thread->came);
    close(queue_thread->fd);
    gpr_free(queue_thread);
}

/* False: it is `until`, and nothing came. */
static bool wait_locked(struct rpc_queue_thread *queue_thread, gpr_timespec until)
{
    if (gpr_time_cmp(until, gpr_inf_past(until.clock_type)) == 0) {
        return queue_thread->head != NULL;
    }
    bool forever = gpr_time_cmp(until, gpr_inf_future(until.clock_type)) == 0;
    const struct timespec end = {.tv_sec = until.tv_sec, .tv_nsec = until.tv_nsec};
    int failed = 0;
    while (queue_thread->head == NULL && failed == 0) {
        failed = forever ? pthread_cond_wait(&queue_thread->came, &queue_thread->lock)
                         : pthread_cond_clockwait(
                               &queue_thread->came, &queue_thread->lock, CLOCK_MONOTONIC, &end);
    }
    return queue_thread->head != NULL;
}

grpc_event rpc_queue_thread_next(struct rpc_queue_thread *queue_thread, gpr_timespec until)
{
    grpc_event event = {.type = GRPC_QUEUE_TIMEOUT};
    struct pumped *pumped = NULL;
    pthread_mutex_lock(&queue_thread->lock);
    if (wait_locked(queue_thread, until)) {
        pumped = queue_thread->head;
        queue_thread->head = pumped->next;
        if (queue_thread->head == NULL) {
            queue_thread->tail = NULL;
        }
    }
    pthread_mutex_unlock(&queue_thread->lock);
    if (pumped != NULL) {
        event = pumped->event;
        gpr_free(pumped);
    }
    return event;
}

int rpc_queue_thread_fd(const struct rpc_queue_thread *queue_thread)
{
    return queue_thread->fd;
}

void rpc_queue_thread_wake(struct rpc_queue_thread *queue_thread)
{
    pthread_mutex_lock(&queue_thread->lock);
    notify_locked(queue_thread);
    pthread_mutex_unlock(&queue_thread->lock);
}

bool rpc_queue_thread_clear(struct rpc_queue_thread *queue_thread)
{
    pthread_mutex_lock(&queue_thread->lock);
    bool rests = queue_thread->head == NULL;
    if (rests && queue_thread->rung) {
        uint64_t count = 0;
        ssize_t got = read(queue_thread->fd, &count, sizeof count);
        CADRE_ASSERT(got == (ssize_t)sizeof count);
        queue_thread->rung = false;
    }
    pthread_mutex_unlock(&queue_thread->lock);
    return rests;
}
