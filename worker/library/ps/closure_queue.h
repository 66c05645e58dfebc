/* SPDX-License-Identifier: Apache-2.0
 * What a chief has scheduled and workers have not done: one queue for all workers, one for each
 * worker's own resources, and the first error of a batch. Pure: no lock, no waiting, no allocation;
 * a function returns whether the caller has to wait, and the caller repeats it after the next
 * event.
 *
 *     put ──▶ QUEUED ──get──▶ RUNNING ──done──▶ DONE
 *                ▲               ├───fail────▶ FAILED     the first one is raised to the program,
 *                └──put_back─────┘                        once nothing runs any more; what is
 *                                             CANCELLED ◀─ still queued then is not run
 *
 * A closure of one worker only (tagged) runs before the shared ones. It counts neither for the
 * error nor for closure_queue_idle, because it makes what the others use. (_CoordinatedClosureQueue
 * of tensorflow/python/distribute/coordinator/cluster_coordinator.py.) */
#ifndef CADRE_WORKER_PS_CLOSURE_QUEUE_H
#define CADRE_WORKER_PS_CLOSURE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/status.h"

enum closure_state {
    CLOSURE_NEW,
    CLOSURE_QUEUED,
    CLOSURE_RUNNING,
    CLOSURE_DONE,
    CLOSURE_FAILED,
    CLOSURE_CANCELLED
};

#define CLOSURE_ANY UINT32_MAX /* tag: any worker may run it */

/* The caller's memory, which must stay as long as the state is QUEUED or RUNNING. */
struct closure {
    struct closure *next;
    uint32_t tag; /* the worker that runs it, or CLOSURE_ANY */
    enum closure_state state;
};

struct closure_list {
    struct closure *first;
    struct closure **last;
};

struct closure_queue {
    struct closure_list ready;
    struct closure_list *tagged; /* [workers], the caller's */
    uint32_t workers;
    size_t queued; /* in `ready` */
    size_t capacity;
    size_t running;               /* taken from `ready` */
    const struct closure *failed; /* the first failure of the batch; NULL: none */
    bool cancelling;              /* running closures should stop, because their results are not
                                   * used */
};

/* `tagged` has a list for each worker and stays the caller's; `capacity`: of shared closures. */
void closure_queue_init(
    struct closure_queue *queue, struct closure_list *tagged, uint32_t workers, size_t capacity);

/* Whether a put has to wait: the queue is full, and no error is pending that would empty it. */
bool closure_queue_full(const struct closure_queue *queue);

/* Queues a new closure behind all others of its tag. A tagged one never has to wait. Afterwards the
 * program receives the pending error, if any: closure_queue_settle. */
void closure_queue_put(struct closure_queue *queue, struct closure *closure);

/* For `worker`: the oldest of its tagged ones, else the oldest shared one; NULL: none. While an
 * error is pending only tagged ones are returned. */
struct closure *closure_queue_get(struct closure_queue *queue, uint32_t worker);

/* A closure that ran succeeded. */
void closure_queue_done(struct closure_queue *queue, struct closure *closure);
/* A closure that ran failed; the first failure of a batch becomes its error. */
void closure_queue_fail(struct closure_queue *queue, struct closure *closure);
/* Its worker was lost; it runs again, behind those that are queued. False: an error is pending, the
 * closure is CANCELLED instead. */
bool closure_queue_put_back(struct closure_queue *queue, struct closure *closure);

/* Cancels all queued closures but tagged ones and calls `cancelled` for each: they will not run, so
 * a thread that waits for one of them need not wait until the program takes the error. */
void closure_queue_cancel(struct closure_queue *queue,
    void (*cancelled)(struct closure *closure, void *user), void *user);

/* An error is pending and nothing runs any more: cancels all queued closures, calls `cancelled` for
 * each, and returns the closure whose error the program receives; the queue is then as new. NULL:
 * no error is pending, or with *ret_wait: closures still run, call again later. */
const struct closure *closure_queue_settle(struct closure_queue *queue,
    void (*cancelled)(struct closure *closure, void *user), void *user, bool *ret_wait);

/* True: no closure is queued or runs, not counting tagged ones. */
bool closure_queue_idle(const struct closure_queue *queue);

#endif
