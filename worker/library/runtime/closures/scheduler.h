/* SPDX-License-Identifier: Apache-2.0
 * The chief's side of closures: one queue, one thread for each worker that is connected.
 *
 *     the program ── put ──▶ closure_queue ◀── get, put_back ── a connection's thread ══ worker
 *                                 │ one lock
 *                            settle: the first error, once nothing runs
 *
 * A worker's thread sends it closures and waits for results; short ones are sent ahead, so that the
 * worker has the next one when it is done. For each put one idle worker's thread is woken.
 * Cost: a thread (and an eventfd) per worker that is connected, O(1) per closure whatever the
 * number of workers; a look at the directory per worker and second. */
#ifndef CADRE_RUNTIME_CLOSURES_SCHEDULER_H
#define CADRE_RUNTIME_CLOSURES_SCHEDULER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/library/ps/closure_queue.h"
#include "worker/library/runtime/closures/remote_value.h"
#include "worker/library/runtime/ps_job/ps_job.h"

#define CLOSURES_QUEUED_MAX (256 * 1024)
#define PER_WORKER_MAX      4096
/* The most closures that a worker has at once, and how long they may take for it: the second waits
 * behind the first while another worker might be free. */
#define CLOSURES_AHEAD         2
#define CLOSURE_AHEAD_MAX_US   10000
#define CONNECTION_TICK_MS     1000
#define SCHEDULER_END_GRACE_US (UINT64_C(2) * 1000 * 1000)

struct worker_connection;

struct scheduler {
    struct ps_job_state *ps_job;
    cadre_strategy *strategy;
    struct link_listener *listener; /* the ps job's until the scheduler began */
    pthread_mutex_t lock;           /* over all that follows */
    pthread_cond_t changed;         /* room, nothing runs, a thread has ended */
    uint32_t waiting;               /* threads that wait for `changed` */
    struct closure_queue queue;
    cadre_remote_value *failed; /* the queue's, one reference; NULL: no error is pending */
    uint64_t last_number;       /* of the newest closure */
    uint64_t batch;             /* how many errors the program received */
    bool steps;                 /* closures were done since the last step of the ledger */
    bool takes_step;            /* a step is being taken; of the program's thread */
    bool warned_run;            /* the warning about steps without closures was shown; likewise */
    bool ending;
    uint32_t workers;
    struct worker_connection **connections; /* [workers]; NULL: not connected */
    struct worker_connection *idle_first;   /* without a closure, the longest idle first */
    struct worker_connection *idle_last;
    struct worker_connection *ended; /* threads to be joined */
    uint32_t connected;
    uint32_t threads; /* of connections, that have not ended */
    struct cadre_per_worker **per_worker;
    uint32_t per_worker_count;
};

/* Admits workers from now on, at ps_job->listener, which it owns on success; sets
 * ps_job->scheduler. */
cadre_status scheduler_begin(
    struct ps_job_state *ps_job, cadre_strategy *strategy, struct cadre_error *error);
/* Sends GOODBYE to the workers; closures that are not done are CANCELLED. Does nothing without a
 * scheduler. */
void scheduler_end(struct ps_job_state *ps_job);

/* Queues it, with a reference of its own; waits while the queue is full. Then returns the pending
 * error, if any. */
cadre_status scheduler_put(
    struct scheduler *scheduler, cadre_remote_value *value, struct cadre_error *error);
/* Waits until nothing is queued or runs; returns the pending error once no closure runs. */
cadre_status scheduler_join(struct scheduler *scheduler, struct cadre_error *error);
/* Returns the pending error once no closure runs; else whether nothing is queued or runs. */
cadre_status scheduler_done(struct scheduler *scheduler, bool *ret_done, struct cadre_error *error);

/* Whether closures were done since the last call. */
bool scheduler_take_steps(struct scheduler *scheduler);
/* How many workers are connected. */
uint32_t scheduler_connected(struct scheduler *scheduler);

/* Workers receive it before their next closure; the scheduler owns it. */
cadre_status scheduler_add_per_worker(
    struct scheduler *scheduler, struct cadre_per_worker *per_worker, struct cadre_error *error);
/* Whether it is of this scheduler; only compares pointers. */
bool scheduler_has_per_worker(
    struct scheduler *scheduler, const struct cadre_per_worker *per_worker);

/* Drops a worker's connection as if it were lost. True: there was one. */
bool scheduler_drop(struct ps_job_state *ps_job, uint32_t worker);

/* --- with the lock; scheduler_outcome.c --- */

/* Cancels a closure that was taken from the queue of scheduler `user` without running. */
void scheduler_cancelled(struct closure *closure, void *user);

/* Sets the outputs of a closure that ran; owns them. */
void scheduler_succeeded(struct scheduler *scheduler, cadre_remote_value *value,
    cadre_tensor **outputs, uint32_t output_count);
/* Sets the failure of a closure that ran. */
void scheduler_failed(
    struct scheduler *scheduler, cadre_remote_value *value, const struct cadre_error *error);
/* Its worker was lost: queues it again, or cancels it while an error is pending. */
void scheduler_lost(struct scheduler *scheduler, cadre_remote_value *value);

/* Wakes the program's threads that wait for a change. */
void scheduler_notify(struct scheduler *scheduler);

#endif
