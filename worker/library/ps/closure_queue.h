/* SPDX-License-Identifier: Apache-2.0
 * What a chief has scheduled and workers have not done yet: one queue for all workers, one for each
 * worker's own resources, and the first error of a batch. Pure: no lock, no waiting, no allocation;
 * whoever calls it is told whether it has to wait, and asks again after the next event.
 *
 *     put ──▶ QUEUED ──get──▶ RUNNING ──done──▶ DONE
 *                ▲               ├───fail────▶ FAILED     the first one is raised to the program,
 *                └──put_back─────┘                        once nothing runs any more; what is
 *                                             CANCELLED ◀─ still queued then is not run
 *
 * A closure of a worker's own (tagged) goes before those of all, and counts for neither the error
 * nor the end: it makes what the others need. (_CoordinatedClosureQueue of
 * tensorflow/python/distribute/coordinator/cluster_coordinator.py.) */
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

#define CLOSURE_ANY UINT32_MAX /* tag: of no worker's own */

/* The caller's, until it is in none of the first two states. */
struct closure {
    struct closure *next;
    uint32_t tag; /* the worker that it is for, or CLOSURE_ANY */
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
    size_t running;               /* out of `ready` */
    const struct closure *failed; /* the first of the batch; NULL: none */
    bool cancelling;              /* closures that run should stop: what they do is not wanted */
};

void closure_queue_init(
    struct closure_queue *queue, struct closure_list *tagged, uint32_t workers, size_t capacity);

/* Whether a put has to wait: the queue is full, and no error is there that would empty it. */
bool closure_queue_full(const struct closure_queue *queue);

/* Queues a new closure, behind all others of its tag. One that is tagged never has to wait. The
 * program is then given the pending error, if any: closure_queue_settle. */
void closure_queue_put(struct closure_queue *queue, struct closure *closure);

/* For `worker`: the oldest of its own, else of all; NULL: none. While an error is pending only its
 * own ones are given out. */
struct closure *closure_queue_get(struct closure_queue *queue, uint32_t worker);

/* What became of one that ran. put_back: its worker was lost; it runs again, after those that are
 * queued. False: an error is pending, it is CANCELLED instead. */
void closure_queue_done(struct closure_queue *queue, struct closure *closure);
void closure_queue_fail(struct closure_queue *queue, struct closure *closure);
bool closure_queue_put_back(struct closure_queue *queue, struct closure *closure);

/* Cancels what is queued, tagged closures apart, calling `cancelled` for each: they will not run,
 * so whoever waits for one need not wait for the program to ask for the error. */
void closure_queue_cancel(struct closure_queue *queue,
    void (*cancelled)(struct closure *closure, void *user), void *user);

/* An error is pending and nothing runs any more: cancels what is queued, calling `cancelled` for
 * each, and returns the closure whose error is raised; the queue is as new. NULL: nothing is
 * pending. *ret_wait: there is an error, and something still runs: to be asked again. */
const struct closure *closure_queue_settle(struct closure_queue *queue,
    void (*cancelled)(struct closure *closure, void *user), void *user, bool *ret_wait);

/* Nothing is queued or runs, tagged closures apart. */
bool closure_queue_idle(const struct closure_queue *queue);

#endif
