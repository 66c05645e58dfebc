/* SPDX-License-Identifier: Apache-2.0
 * One queue for all workers: put, join, done, beginning and end. Called by schedule.c;
 * worker_connection.c takes closures from it. */
#include "worker/library/runtime/closures/scheduler.h"

#include <stdlib.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/closures/worker_connection.h"
#include "worker/library/runtime/closures/worker_connection_idle.h"
#include "worker/library/runtime/closures/per_worker.h"
#include "worker/library/trace/trace.h"

/* --- waiting --- */

/* Waits at most a second; false: nothing changed in it. */
static bool wait_a_second(struct scheduler *scheduler)
{
    uint64_t until_us = clock_monotonic_us() + CADRE_US_PER_S;
    scheduler->waiting++;
    int late = thread_wait_until(&scheduler->changed, &scheduler->lock, until_us);
    scheduler->waiting--;
    return late == 0;
}

/* The program waits until something has changed; an error when the job has ended in this
 * process. */
static cadre_status scheduler_await(struct scheduler *scheduler, struct cadre_error *error)
{
    if (wait_a_second(scheduler)) {
        return CADRE_OK;
    }
    worker_connections_check(scheduler);
    return directory_ended(scheduler->ps_job->directory, error);
}

/* --- the program --- */

/* Waits until nothing runs, then returns the pending error. */
static cadre_status scheduler_settle(struct scheduler *scheduler, struct cadre_error *error)
{
    bool wait = false;
    const struct closure *failed = NULL;
    while ((failed = closure_queue_settle(
                &scheduler->queue, scheduler_cancelled, scheduler, &wait)) == NULL &&
           wait) {
        CADRE_TRY(scheduler_await(scheduler, error));
    }
    if (failed == NULL) {
        return CADRE_OK;
    }
    CADRE_ASSERT(scheduler->failed != NULL);
    cadre_remote_value *value = scheduler->failed;
    scheduler->failed = NULL;
    scheduler->batch++;
    cadre_status status = remote_value_error(value, error);
    remote_value_release(value);
    return status;
}

static cadre_status await_room(struct scheduler *scheduler, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    if (!closure_queue_full(&scheduler->queue)) {
        return CADRE_OK;
    }
    struct trace_mark mark = trace_begin();
    while (status == CADRE_OK && closure_queue_full(&scheduler->queue)) {
        status = scheduler_await(scheduler, error);
    }
    trace_end(mark, TRACE_WAIT, 0);
    return status;
}

static cadre_status closures_scheduler_put(
    struct scheduler *scheduler, cadre_remote_value *value, struct cadre_error *error)
{
    CADRE_ASSERT(value->scheduler == NULL);
    CADRE_ASSERT(value->number == 0);
    CADRE_TRY(await_room(scheduler, error));
    value->scheduler = scheduler;
    value->number = ps_job_next_closure();
    scheduler->last_number = value->number;
    remote_value_retain(value);
    closure_queue_put(&scheduler->queue, &value->closure);
    worker_connection_wake_idle(scheduler);
    return scheduler_settle(scheduler, error);
}

cadre_status scheduler_put(
    struct scheduler *scheduler, cadre_remote_value *value, struct cadre_error *error)
{
    pthread_mutex_lock(&scheduler->lock);
    cadre_status status = closures_scheduler_put(scheduler, value, error);
    pthread_mutex_unlock(&scheduler->lock);
    return status;
}

cadre_status scheduler_join(struct scheduler *scheduler, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    struct trace_mark mark = trace_begin();
    pthread_mutex_lock(&scheduler->lock);
    while (status == CADRE_OK && !closure_queue_idle(&scheduler->queue) &&
           scheduler->queue.failed == NULL) {
        status = scheduler_await(scheduler, error);
    }
    if (status == CADRE_OK) {
        status = scheduler_settle(scheduler, error);
    }
    pthread_mutex_unlock(&scheduler->lock);
    trace_end(mark, TRACE_WAIT, 0);
    return status;
}

cadre_status scheduler_done(struct scheduler *scheduler, bool *ret_done, struct cadre_error *error)
{
    pthread_mutex_lock(&scheduler->lock);
    cadre_status status = scheduler_settle(scheduler, error);
    *ret_done = status == CADRE_OK && closure_queue_idle(&scheduler->queue);
    pthread_mutex_unlock(&scheduler->lock);
    return status;
}

bool scheduler_take_steps(struct scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lock);
    bool steps = scheduler->steps;
    scheduler->steps = false;
    pthread_mutex_unlock(&scheduler->lock);
    return steps;
}

uint32_t scheduler_connected(struct scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lock);
    uint32_t connected = scheduler->connected;
    pthread_mutex_unlock(&scheduler->lock);
    return connected;
}

bool scheduler_drop(struct ps_job_state *ps_job, uint32_t worker)
{
    struct scheduler *scheduler = ps_job->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    struct worker_connection *worker_connection =
        worker < scheduler->workers ? scheduler->connections[worker] : NULL;
    if (worker_connection != NULL) {
        link_shutdown(worker_connection->link);
    }
    pthread_mutex_unlock(&scheduler->lock);
    return worker_connection != NULL;
}

/* --- per-worker datasets and resources --- */

cadre_status scheduler_add_per_worker(
    struct scheduler *scheduler, struct cadre_per_worker *per_worker, struct cadre_error *error)
{
    CADRE_ASSERT(per_worker->number == 0);
    CADRE_ASSERT(per_worker->made_of != NULL);
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&scheduler->lock);
    if (scheduler->per_worker_count == PER_WORKER_MAX) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "a strategy has at most %d datasets and resources of workers, and this would be one "
            "more",
            PER_WORKER_MAX);
    } else {
        scheduler->per_worker[scheduler->per_worker_count++] = per_worker;
        per_worker->number = scheduler->per_worker_count;
    }
    for (uint32_t i = 0; status == CADRE_OK && i < scheduler->workers; i++) {
        if (scheduler->connections[i] != NULL) {
            worker_connection_wake(scheduler->connections[i]);
        }
    }
    pthread_mutex_unlock(&scheduler->lock);
    return status;
}

bool scheduler_has_per_worker(
    struct scheduler *scheduler, const struct cadre_per_worker *per_worker)
{
    bool has = false;
    pthread_mutex_lock(&scheduler->lock);
    for (uint32_t i = 0; !has && i < scheduler->per_worker_count; i++) {
        has = scheduler->per_worker[i] == per_worker;
    }
    pthread_mutex_unlock(&scheduler->lock);
    return has;
}

/* --- lifetime --- */

static void scheduler_destroy(struct scheduler *scheduler)
{
    CADRE_ASSERT(scheduler->threads == 0);
    CADRE_ASSERT(scheduler->connected == 0);
    for (uint32_t i = 0; i < scheduler->per_worker_count; i++) {
        free(scheduler->per_worker[i]);
    }
    pthread_cond_destroy(&scheduler->changed);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler->per_worker);
    free(scheduler->connections);
    free(scheduler);
}

static struct scheduler *scheduler_make(struct ps_job_state *ps_job, cadre_strategy *strategy)
{
    uint32_t workers = directory_self(ps_job->directory)->ps_job.workers;
    struct scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (scheduler == NULL) {
        return NULL;
    }
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_cond_init(&scheduler->changed, NULL);
    scheduler->ps_job = ps_job;
    scheduler->strategy = strategy;
    scheduler->workers = workers;
    scheduler->connections = calloc((size_t)workers + 1, sizeof *scheduler->connections);
    scheduler->per_worker = calloc(PER_WORKER_MAX, sizeof(struct cadre_per_worker *));
    closure_queue_init(&scheduler->queue, NULL, 0, CLOSURES_QUEUED_MAX);
    if (scheduler->connections == NULL || scheduler->per_worker == NULL) {
        scheduler_destroy(scheduler);
        return NULL;
    }
    return scheduler;
}

cadre_status scheduler_begin(
    struct ps_job_state *ps_job, cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->scheduler == NULL);
    CADRE_ASSERT(ps_job->listener != NULL);
    struct scheduler *scheduler = scheduler_make(ps_job, strategy);
    if (scheduler == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the scheduler of closures");
    }
    const struct link_admission admission = {.admit = worker_connection_admit, .user = scheduler};
    cadre_status status = link_listener_start(ps_job->listener, &ps_job->terms, &admission, error);
    if (status != CADRE_OK) {
        scheduler_destroy(scheduler);
        return cadre_error_wrap(error, status, "start to admit workers");
    }
    scheduler->listener = ps_job->listener;
    ps_job->listener = NULL;
    ps_job->scheduler = scheduler;
    return CADRE_OK;
}

/* All threads of connections end: by themselves, or after the grace when their links are shut
 * down. */
static void end_threads(struct scheduler *scheduler)
{
    uint64_t until = clock_monotonic_us() + SCHEDULER_END_GRACE_US;
    while (scheduler->threads > 0) {
        bool late = clock_monotonic_us() >= until;
        for (uint32_t i = 0; i < scheduler->workers; i++) {
            struct worker_connection *worker_connection = scheduler->connections[i];
            if (worker_connection != NULL && late) {
                link_shutdown(worker_connection->link);
            } else if (worker_connection != NULL) {
                worker_connection_wake(worker_connection);
            }
        }
        (void)wait_a_second(scheduler);
    }
    worker_connections_reap(scheduler);
}

void scheduler_end(struct ps_job_state *ps_job)
{
    struct scheduler *scheduler = ps_job->scheduler;
    if (scheduler == NULL) {
        return;
    }
    pthread_mutex_lock(&scheduler->lock);
    scheduler->ending = true;
    pthread_mutex_unlock(&scheduler->lock);
    link_listener_close(scheduler->listener); /* no more connections */
    pthread_mutex_lock(&scheduler->lock);
    end_threads(scheduler);
    CADRE_ASSERT(scheduler->queue.running == 0);
    closure_queue_cancel(&scheduler->queue, scheduler_cancelled, scheduler);
    pthread_mutex_unlock(&scheduler->lock);
    remote_value_release(scheduler->failed);
    ps_job->scheduler = NULL;
    scheduler_destroy(scheduler);
}
