/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: events. One holds the count of a stream at which it is reached. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdlib.h>
#include <time.h>

/* When an event was reached; the operation that notes it may outlive the event. */
struct moment {
    unsigned int refs;
    double ms;
};

struct CUevent_st {
    struct standin_device *device;
    struct CUstream_st *stream; /* NULL: never recorded */
    uint64_t count;
    unsigned int flags;
    struct moment *moment;
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    STANDIN_CALL("cudaEventCreate");
    struct standin_device *device = standin_device_current();
    cudaError_t error = standin_begin(standin_fault, device);
    if (error != cudaSuccess) {
        return standin_remember(error);
    }
    *event = calloc(1, sizeof(**event));
    if (*event == NULL) {
        return standin_remember(cudaErrorMemoryAllocation);
    }
    (*event)->device = device;
    (*event)->flags = flags;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

static void drop_moment(void *user)
{
    struct moment *moment = user;
    pthread_mutex_lock(&standin_mutex);
    unsigned int left = moment != NULL ? --moment->refs : 1;
    pthread_mutex_unlock(&standin_mutex);
    if (left == 0) {
        free(moment);
    }
}

static void forget_locked(cudaEvent_t event)
{
    if (event->stream != NULL) {
        standin_stream_drop_locked(event->stream);
        event->stream = NULL;
    }
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    STANDIN_CALL("cudaEventDestroy");
    if (event == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, event->device);
    drop_moment(event->moment);
    pthread_mutex_lock(&standin_mutex);
    forget_locked(event);
    pthread_mutex_unlock(&standin_mutex);
    free(event);
    return standin_remember(error);
}

static cudaError_t run_note(void *user)
{
    struct moment *moment = user;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&standin_mutex);
    moment->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    pthread_mutex_unlock(&standin_mutex);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    STANDIN_CALL("cudaEventRecord");
    struct CUstream_st *on = standin_stream(stream);
    if (event == NULL || on == NULL || on->device != event->device) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, on->device);
    struct moment *moment = error == cudaSuccess ? calloc(1, sizeof(*moment)) : NULL;
    if (moment == NULL) {
        return standin_remember(error != cudaSuccess ? error : cudaErrorMemoryAllocation);
    }
    moment->refs = 2;
    drop_moment(event->moment);
    event->moment = moment;
    uint64_t count = 0;
    error = standin_post_counted(on, true, run_note, drop_moment, moment, &count);
    pthread_mutex_lock(&standin_mutex);
    forget_locked(event);
    event->stream = on;
    event->count = count;
    on->refs++;
    pthread_mutex_unlock(&standin_mutex);
    return standin_remember(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    STANDIN_CALL("cudaEventQuery");
    if (event == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, event->device);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&standin_mutex);
        bool reached = event->stream == NULL || event->stream->done >= event->count;
        error = reached ? event->device->error : cudaErrorNotReady;
        pthread_mutex_unlock(&standin_mutex);
    }
    return standin_remember(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    STANDIN_CALL("cudaEventSynchronize");
    if (event == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, event->device);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&standin_mutex);
        struct CUstream_st *on = event->stream;
        uint64_t count = event->count;
        if (on != NULL) {
            on->refs++;
            while (on->done < count) {
                pthread_cond_wait(&on->progress, &standin_mutex);
            }
            standin_stream_drop_locked(on);
        }
        error = event->device->error;
        pthread_mutex_unlock(&standin_mutex);
    }
    return standin_remember(error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (start == NULL || end == NULL || start->moment == NULL || end->moment == NULL ||
        ((start->flags | end->flags) & cudaEventDisableTiming) != 0) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    pthread_mutex_lock(&standin_mutex);
    bool reached = start->stream->done >= start->count && end->stream->done >= end->count;
    *ms = (float)(end->moment->ms - start->moment->ms);
    pthread_mutex_unlock(&standin_mutex);
    return standin_remember(reached ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    STANDIN_CALL("cudaStreamWaitEvent");
    (void)flags;
    struct CUstream_st *on = standin_stream(stream);
    if (event == NULL || on == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, on->device);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&standin_mutex);
        if (event->stream != NULL) {
            error = standin_post_wait_locked(on, event->stream, event->count);
        }
        pthread_mutex_unlock(&standin_mutex);
    }
    return standin_remember(error);
}
