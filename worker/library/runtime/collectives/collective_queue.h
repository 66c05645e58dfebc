/* SPDX-License-Identifier: Apache-2.0
 * What a replica has started: handles, and the thread that carries them out in the order of their
 * starts, while the replica computes. Each local replica has its thread, from its first start on.
 *
 *   replica's thread     start A      start B       computes        wait A      all-reduce C
 *                            └───┐        └──┐                        ▲              │ waits for B
 *   its communication thread     A ══════════ B ════════════          │              ▼
 *
 * What the replica calls directly waits for what was started, so the calls of the mesh have one
 * order, that of the program. The outcome of one counts for the step when the replica's own thread
 * takes it up: at a wait, at the next collective, or when its function has returned. */
#ifndef CADRE_RUNTIME_COLLECTIVE_QUEUE_H
#define CADRE_RUNTIME_COLLECTIVE_QUEUE_H

#include "worker/library/runtime/collectives/all_reduce.h"
#include "worker/library/runtime/strategy/strategy.h"

#define COLLECTIVE_STARTED_MAX 64 /* unfinished ones of a replica; one more waits */

enum collective_stage {
    STAGE_FREE, /* in the list of free ones: a wait for it is an error */
    STAGE_STARTED,
    STAGE_DONE, /* with `status` */
    STAGE_TAKEN /* the step has its status; until the program waits for it */
};

/* One handle. Not freed before the strategy ends, so that using it too long is an error and not a
 * crash. All but `work` is under the queue's lock; `work` is the thread's while STARTED. */
struct cadre_collective {
    cadre_replica *replica;
    struct cadre_collective *next; /* in the list it is in */
    enum collective_stage stage;
    struct all_reduce work;
    struct collective_list list;
    cadre_tensor **tensors; /* a reference each, until it ends */
    size_t tensor_capacity;
    struct device *device; /* whose events these are, kept from one use to the next; or NULL */
    void *begun;           /* recorded on compute where it was started */
    void *done;            /* recorded on comm after it */
    cadre_status status;
    struct cadre_error error;
};

/* Makes the replica's queue and its thread, unless it has them. */
cadre_status collective_queue_open(cadre_replica *replica, struct cadre_error *error);

/* A free handle, to be filled in and pushed, or given back. RESOURCE_EXHAUSTED. */
cadre_status collective_queue_handle(
    cadre_replica *replica, struct cadre_collective **ret_handle, struct cadre_error *error);
/* Returns a handle that was not pushed to the list of free ones. */
void collective_queue_give_back(cadre_replica *replica, struct cadre_collective *handle);

/* The thread carries it out after all others. Waits while COLLECTIVE_STARTED_MAX are unfinished. */
void collective_queue_push(cadre_replica *replica, struct cadre_collective *handle);

/* Whether it is finished. Any thread. */
bool collective_queue_is_done(const struct cadre_collective *handle);

/* In the replica's thread: waits for it, ends it and returns its status; FAILED_PRECONDITION when
 * it has ended before. */
cadre_status collective_queue_take(
    cadre_replica *replica, struct cadre_collective *handle, struct cadre_error *error);

/* In the replica's thread: returns when all that it has started is done, and takes up the outcomes.
 * collective_enter does so; code that uses the mesh in a step without it must. */
void collective_queue_wait(cadre_replica *replica);

/* The replica's function has returned: waits for what it started, and ends the handles that were
 * never waited for. After a failure of its own (NULL: none) what is unfinished is ended by aborting
 * the mesh, because the others may never come to it. */
void collective_queue_end(cadre_replica *replica, const struct cadre_error *failure);

/* The replica will run nothing more: ends its thread, frees the queue. */
void collective_queue_close(cadre_replica *replica);

/* --- collective_async.c: the calls of the program --- */

/* cadre_all_reduce_start: the handle is the queue's. */
cadre_status collective_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle, struct cadre_error *error);
/* cadre_collective_wait: waits for it and ends it. */
cadre_status collective_wait_for(cadre_collective *handle, struct cadre_error *error);

#endif
