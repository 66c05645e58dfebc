/* SPDX-License-Identifier: Apache-2.0
 * A replica's started collectives: the list of handles, and the communication thread that
 * carries them out in order. collective_async.c pushes and takes; collective_enter.c waits;
 * step/ ends it with the replica function. */
#include "worker/library/runtime/collectives/collective_queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/device/device.h"
#include "worker/library/trace/trace.h"

struct collective_queue {
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the thread */
    pthread_cond_t done; /* for the replica */
    pthread_t thread;
    bool stopping;
    uint32_t unfinished;
    struct cadre_collective *started; /* in order of starts, until they end */
    struct cadre_collective *free;    /* the one that ended first is used first */
};

static void collective_queue_append(struct cadre_collective **list, struct cadre_collective *handle)
{
    while (*list != NULL) {
        list = &(*list)->next;
    }
    handle->next = NULL;
    *list = handle;
}

/* --- the thread --- */

static cadre_status carry_out(struct cadre_collective *handle)
{
    cadre_status status = step_admit(handle->work.strategy, handle->work.local, &handle->error);
    return status == CADRE_OK ? all_reduce_do(&handle->work, &handle->error) : status;
}

static struct cadre_collective *first_unfinished(const struct collective_queue *queue)
{
    struct cadre_collective *handle = queue->started;
    while (handle != NULL && handle->stage != STAGE_STARTED) {
        handle = handle->next;
    }
    return handle;
}

static void *collective_queue_serve(void *argument)
{
    struct collective_queue *queue = argument;
    crash_thread("collectives", 0);
    trace_thread_is(TRACE_THREAD_COMMUNICATION);
    pthread_mutex_lock(&queue->lock);
    while (!queue->stopping) {
        struct cadre_collective *handle = first_unfinished(queue);
        if (handle == NULL) {
            pthread_cond_wait(&queue->work, &queue->lock);
            continue;
        }
        pthread_mutex_unlock(&queue->lock);
        cadre_status status = carry_out(handle);
        pthread_mutex_lock(&queue->lock);
        CADRE_ASSERT(handle->stage == STAGE_STARTED);
        CADRE_ASSERT(queue->unfinished > 0);
        handle->status = status;
        handle->stage = STAGE_DONE;
        queue->unfinished--;
        pthread_cond_broadcast(&queue->done);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

cadre_status collective_queue_open(cadre_replica *replica, struct cadre_error *error)
{
    if (replica->queue != NULL) {
        return CADRE_OK;
    }
    struct collective_queue *queue =
        fault_point("collective.queue") ? NULL : calloc(1, sizeof *queue);
    if (queue == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for collectives that are started");
    }
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->done, NULL);
    int errnum = thread_start(&queue->thread, collective_queue_serve, queue);
    if (errnum != 0) {
        pthread_cond_destroy(&queue->done);
        pthread_cond_destroy(&queue->work);
        pthread_mutex_destroy(&queue->lock);
        free(queue);
        return cadre_error_errno(error, errnum, "start the thread for a replica's collectives");
    }
    replica->queue = queue;
    return CADRE_OK;
}

/* --- handles --- */

cadre_status collective_queue_handle(
    cadre_replica *replica, struct cadre_collective **ret_handle, struct cadre_error *error)
{
    struct collective_queue *queue = replica->queue;
    pthread_mutex_lock(&queue->lock);
    struct cadre_collective *handle = queue->free;
    if (handle != NULL) {
        queue->free = handle->next;
        CADRE_ASSERT(handle->stage == STAGE_FREE);
    }
    pthread_mutex_unlock(&queue->lock);
    if (handle == NULL) {
        handle = fault_point("collective.handle") ? NULL : calloc(1, sizeof *handle);
        if (handle == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a collective that is started");
        }
        handle->replica = replica;
    }
    *ret_handle = handle;
    return CADRE_OK;
}

/* Under the lock. */
static void put_back(struct collective_queue *queue, struct cadre_collective *handle)
{
    CADRE_ASSERT(handle->stage != STAGE_STARTED);
    handle->stage = STAGE_FREE;
    collective_queue_append(&queue->free, handle);
}

void collective_queue_give_back(cadre_replica *replica, struct cadre_collective *handle)
{
    pthread_mutex_lock(&replica->queue->lock);
    put_back(replica->queue, handle);
    pthread_mutex_unlock(&replica->queue->lock);
}

void collective_queue_push(cadre_replica *replica, struct cadre_collective *handle)
{
    struct collective_queue *queue = replica->queue;
    CADRE_ASSERT(handle->stage == STAGE_FREE);
    for (size_t i = 0; i < handle->work.count; i++) {
        cadre_tensor_retain(handle->tensors[i]);
    }
    pthread_mutex_lock(&queue->lock);
    while (queue->unfinished >= COLLECTIVE_STARTED_MAX) {
        pthread_cond_wait(&queue->done, &queue->lock);
    }
    handle->error.code = CADRE_OK;
    handle->stage = STAGE_STARTED;
    collective_queue_append(&queue->started, handle);
    queue->unfinished++;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
}

/* The program's next use of the tensors waits for it on the device, and so does freeing them. */
static cadre_status hand_over(const struct cadre_collective *handle, struct cadre_error *error)
{
    struct device *device = handle->work.device;
    return device == NULL || handle->status != CADRE_OK
               ? CADRE_OK
               : device->ops->stream_wait(device->compute, handle->done, error);
}

/* Under the lock, in the replica's thread: takes up finished ones. The first failure is the step's.
 */
static void take_up(cadre_replica *replica)
{
    CADRE_ASSERT(replica->queue != NULL);
    for (struct cadre_collective *handle = replica->queue->started; handle != NULL;
         handle = handle->next) {
        if (handle->stage == STAGE_DONE) {
            handle->stage = STAGE_TAKEN;
            step_collective_end(replica, handle->status, &handle->error);
        }
    }
}

/* Under the lock. */
static void collective_queue_finish(struct collective_queue *queue, struct cadre_collective *handle)
{
    struct cadre_collective **at = &queue->started;
    CADRE_ASSERT(handle->stage == STAGE_DONE || handle->stage == STAGE_TAKEN);
    while (*at != handle) {
        at = &(*at)->next;
    }
    *at = handle->next;
    for (size_t i = 0; i < handle->work.count; i++) {
        cadre_tensor_release(handle->tensors[i]);
    }
    put_back(queue, handle);
}

/* --- the replica --- */

cadre_status collective_queue_take(
    cadre_replica *replica, struct cadre_collective *handle, struct cadre_error *error)
{
    struct collective_queue *queue = replica->queue;
    CADRE_ASSERT(handle->replica == replica);
    pthread_mutex_lock(&queue->lock);
    if (handle->stage == STAGE_FREE) {
        pthread_mutex_unlock(&queue->lock);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_collective_wait was called for a collective that has ended; wait for each one "
            "once, in the step that started it");
    }
    while (handle->stage == STAGE_STARTED) {
        pthread_cond_wait(&queue->done, &queue->lock);
    }
    take_up(replica);
    cadre_status status = handle->status;
    if (status != CADRE_OK) {
        *error = handle->error;
    } else {
        status = hand_over(handle, error);
    }
    collective_queue_finish(queue, handle);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

bool collective_queue_is_done(const struct cadre_collective *handle)
{
    struct collective_queue *queue = handle->replica->queue;
    CADRE_ASSERT(queue != NULL);
    pthread_mutex_lock(&queue->lock);
    bool done = handle->stage != STAGE_STARTED;
    pthread_mutex_unlock(&queue->lock);
    return done;
}

void collective_queue_wait(cadre_replica *replica)
{
    struct collective_queue *queue = replica->queue;
    if (queue == NULL) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    while (queue->unfinished > 0) {
        pthread_cond_wait(&queue->done, &queue->lock);
    }
    take_up(replica);
    pthread_mutex_unlock(&queue->lock);
}

void collective_queue_end(cadre_replica *replica, const struct cadre_error *failure)
{
    struct collective_queue *queue = replica->queue;
    if (queue == NULL) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    take_up(replica);
    bool own = failure != NULL && replica->collective_failed.code == CADRE_OK;
    bool abort = own && queue->unfinished > 0;
    pthread_mutex_unlock(&queue->lock);
    if (abort) {
        struct mesh *mesh = replica->strategy->mesh;
        mesh->ops->abort(mesh, failure->text);
    }
    pthread_mutex_lock(&queue->lock);
    while (queue->unfinished > 0) {
        pthread_cond_wait(&queue->done, &queue->lock);
    }
    if (!abort) { /* else the abort ended them */
        take_up(replica);
    }
    while (queue->started != NULL) {
        struct cadre_error ignored; /* a failure on the device is returned by its last wait */
        hand_over(queue->started, &ignored);
        collective_queue_finish(queue, queue->started);
    }
    CADRE_ASSERT(queue->unfinished == 0);
    pthread_mutex_unlock(&queue->lock);
}

/* --- the end --- */

void collective_queue_close(cadre_replica *replica)
{
    struct collective_queue *queue = replica->queue;
    if (queue == NULL) {
        return;
    }
    CADRE_ASSERT(!replica->active);
    replica->queue = NULL;
    pthread_mutex_lock(&queue->lock);
    CADRE_ASSERT(queue->started == NULL);
    queue->stopping = true;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    while (queue->free != NULL) {
        struct cadre_collective *handle = queue->free;
        queue->free = handle->next;
        collective_list_free(&handle->list);
        if (handle->device != NULL) {
            handle->device->ops->event_close(handle->begun);
            handle->device->ops->event_close(handle->done);
        }
        free(handle->tensors);
        free(handle);
    }
    pthread_cond_destroy(&queue->done);
    pthread_cond_destroy(&queue->work);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
