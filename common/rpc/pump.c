/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/pump.h"

#include "common/pure/assert.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

struct pumped {
    struct pumped *next;
    grpc_event event;
};

struct rpc_pump {
    grpc_completion_queue *queue;
    pthread_t thread;
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct pumped *head, *tail;
    bool rung; /* the descriptor is readable */
};

static void ring_locked(struct rpc_pump *pump)
{
    if (!pump->rung) {
        const uint64_t one = 1;
        pump->rung = true;
        ssize_t written = write(pump->fd, &one, sizeof one);
        CADRE_ASSERT(written == (ssize_t)sizeof one);
    }
}

static void *pump_events(void *user)
{
    struct rpc_pump *pump = user;
    bool more = true;
    while (more) {
        struct pumped *pumped = gpr_zalloc(sizeof *pumped);
        pumped->event =
            grpc_completion_queue_next(pump->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        more = pumped->event.type != GRPC_QUEUE_SHUTDOWN;
        pthread_mutex_lock(&pump->lock);
        if (pump->tail != NULL) {
            pump->tail->next = pumped;
        } else {
            pump->head = pumped;
        }
        pump->tail = pumped;
        ring_locked(pump);
        pthread_cond_signal(&pump->came);
        pthread_mutex_unlock(&pump->lock);
    }
    return NULL;
}

/* The thread takes no signals: they belong to the threads of the program. */
static int start_thread(struct rpc_pump *pump)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&pump->thread, NULL, pump_events, pump);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

cadre_status rpc_pump_open(
    grpc_completion_queue *queue, struct rpc_pump **ret_pump, struct cadre_error *error)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "event loop: no descriptor to poll");
    }
    struct rpc_pump *pump = gpr_zalloc(sizeof *pump);
    pthread_condattr_t attributes;
    pump->queue = queue;
    pump->fd = fd;
    pthread_mutex_init(&pump->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pump->came, &attributes);
    pthread_condattr_destroy(&attributes);
    int failed = start_thread(pump);
    if (failed != 0) {
        pthread_mutex_destroy(&pump->lock);
        pthread_cond_destroy(&pump->came);
        close(fd);
        gpr_free(pump);
        return cadre_error_errno(error, failed, "event loop: its second thread does not start");
    }
    *ret_pump = pump;
    return CADRE_OK;
}

void rpc_pump_close(struct rpc_pump *pump)
{
    CADRE_ASSERT(pump->head == NULL);
    pthread_join(pump->thread, NULL);
    pthread_mutex_destroy(&pump->lock);
    pthread_cond_destroy(&pump->came);
    close(pump->fd);
    gpr_free(pump);
}

/* False: it is `until`, and nothing came. */
static bool wait_locked(struct rpc_pump *pump, gpr_timespec until)
{
    if (gpr_time_cmp(until, gpr_inf_past(until.clock_type)) == 0) {
        return pump->head != NULL;
    }
    bool forever = gpr_time_cmp(until, gpr_inf_future(until.clock_type)) == 0;
    const struct timespec end = {.tv_sec = until.tv_sec, .tv_nsec = until.tv_nsec};
    int failed = 0;
    while (pump->head == NULL && failed == 0) {
        failed = forever ? pthread_cond_wait(&pump->came, &pump->lock)
                         : pthread_cond_timedwait(&pump->came, &pump->lock, &end);
    }
    return pump->head != NULL;
}

grpc_event rpc_pump_next(struct rpc_pump *pump, gpr_timespec until)
{
    grpc_event event = {.type = GRPC_QUEUE_TIMEOUT};
    struct pumped *pumped = NULL;
    pthread_mutex_lock(&pump->lock);
    if (wait_locked(pump, until)) {
        pumped = pump->head;
        pump->head = pumped->next;
        if (pump->head == NULL) {
            pump->tail = NULL;
        }
    }
    pthread_mutex_unlock(&pump->lock);
    if (pumped != NULL) {
        event = pumped->event;
        gpr_free(pumped);
    }
    return event;
}

int rpc_pump_fd(const struct rpc_pump *pump)
{
    return pump->fd;
}

void rpc_pump_ring(struct rpc_pump *pump)
{
    pthread_mutex_lock(&pump->lock);
    ring_locked(pump);
    pthread_mutex_unlock(&pump->lock);
}

bool rpc_pump_rest(struct rpc_pump *pump)
{
    pthread_mutex_lock(&pump->lock);
    bool rests = pump->head == NULL;
    if (rests && pump->rung) {
        uint64_t count = 0;
        ssize_t got = read(pump->fd, &count, sizeof count);
        CADRE_ASSERT(got == (ssize_t)sizeof count);
        pump->rung = false;
    }
    pthread_mutex_unlock(&pump->lock);
    return rests;
}
