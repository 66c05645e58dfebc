/* SPDX-License-Identifier: Apache-2.0
 * A worker that is connected to the chief, and its thread on the chief. */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_H
#define CADRE_RUNTIME_CLOSURES_WORKER_CONNECTION_H

#include "worker/library/runtime/closures/scheduler.h"

struct worker_connection {
    struct scheduler *scheduler;
    uint32_t index; /* of the worker */
    struct link *link;
    int wake; /* an eventfd */
    pthread_t thread;
    /* Under the scheduler's lock: */
    cadre_remote_value *running[CLOSURES_AHEAD]; /* in the order they were sent */
    uint32_t running_count;
    uint64_t took_us;     /* time of a closure, a moving average; UINT64_MAX: none was done yet */
    uint32_t sent_made;   /* count of per-worker objects that were sent to it */
    uint64_t sent_cancel; /* number of batches, plus 1, whose cancellation was sent */
    bool idle;
    struct worker_connection *idle_before;
    struct worker_connection *idle_next;
    struct worker_connection *ended_next;
};

/* The listener's admission: owns the link. `user` is the scheduler. */
void worker_connection_admit(void *user, struct link *link);

/* Handles all results that arrived, without waiting, in its thread. An error ends the
 * connection. */
cadre_status worker_connection_receive(
    struct worker_connection *worker_connection, struct cadre_error *error);
/* Closure frame->id ended with this result; the outputs are owned. False: it has none of that
 * number. */
bool worker_connection_end_closure(struct worker_connection *worker_connection,
    const struct frame *frame, cadre_status status, cadre_tensor **outputs,
    const struct cadre_error *error);

/* The caller holds the scheduler's lock: ends connections of workers that are lost by the
 * directory. */
void worker_connections_check(struct scheduler *scheduler);

/* The caller holds the lock, which is released meanwhile: joins and frees those whose threads have
 * ended. */
void worker_connections_reap(struct scheduler *scheduler);

#endif
