/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: streams. Each is a thread that does its queue in order. A stream counts
 * what was posted and what is done; an event is a number of that count, so waiting for either is
 * waiting for a count. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdio.h>
#include <stdlib.h>

static __thread struct CUstream_st *running;

struct CUstream_st *standin_stream_running(void)
{
    return running;
}

void standin_stream_drop_locked(struct CUstream_st *stream)
{
    if (--stream->refs == 0) {
        pthread_cond_destroy(&stream->work);
        pthread_cond_destroy(&stream->progress);
        free(stream);
    }
}

static bool may_begin(const struct CUstream_st *stream)
{
    return stream->first != NULL && !stream->held && !stream->device->held;
}

static void do_first(struct CUstream_st *stream)
{
    struct standin_operation *operation = stream->first;
    stream->first = operation->next;
    if (stream->first == NULL) {
        stream->last = &stream->first;
    }
    bool lost = stream->device->error != cudaSuccess || stream->done < stream->lost;
    bool wanted = !lost || operation->always;
    pthread_mutex_unlock(&standin_mutex);
    cudaError_t error = wanted ? operation->run(operation->user) : cudaSuccess;
    if (operation->drop != NULL) {
        operation->drop(operation->user);
    }
    free(operation);
    pthread_mutex_lock(&standin_mutex);
    if (error != cudaSuccess && stream->device->error == cudaSuccess &&
        stream->done >= stream->lost) {
        stream->device->error = error;
    }
}

static void *stream_main(void *user)
{
    struct CUstream_st *stream = user;
    running = stream;
    pthread_mutex_lock(&standin_mutex);
    for (;;) {
        while (!may_begin(stream) && !(stream->closing && stream->first == NULL)) {
            pthread_cond_wait(&stream->work, &standin_mutex);
        }
        if (stream->first == NULL) {
            break;
        }
        do_first(stream);
        if (!may_begin(stream)) {
            standin_window_close_locked(stream);
        }
        stream->done++;
        pthread_cond_broadcast(&stream->progress);
    }
    standin_stream_drop_locked(stream);
    pthread_mutex_unlock(&standin_mutex);
    standin_runner_end();
    return NULL;
}

static struct CUstream_st *open_locked(
    struct standin_device *device, unsigned int flags, int priority)
{
    struct CUstream_st *stream = calloc(1, sizeof(*stream));
    pthread_t thread;
    if (stream == NULL) {
        return NULL;
    }
    *stream =
        (struct CUstream_st){.device = device, .flags = flags, .priority = priority, .refs = 2};
    stream->last = &stream->first;
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->progress, NULL);
    if (pthread_create(&thread, NULL, stream_main, stream) != 0) {
        stream->refs = 1;
        standin_stream_drop_locked(stream);
        return NULL;
    }
    pthread_detach(thread);
    stream->next = device->streams;
    device->streams = stream;
    return stream;
}

struct CUstream_st *standin_stream(cudaStream_t stream)
{
    if (stream != NULL && stream != cudaStreamLegacy) {
        return stream;
    }
    struct standin_device *device = standin_device_current();
    if (device == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&standin_mutex);
    if (device->legacy == NULL) {
        device->legacy = open_locked(device, cudaStreamDefault, 0);
    }
    struct CUstream_st *legacy = device->legacy;
    pthread_mutex_unlock(&standin_mutex);
    return legacy;
}

static cudaError_t post_locked(struct CUstream_st *stream, bool always,
    cudaError_t (*run)(void *user), void (*drop)(void *user), void *user)
{
    struct standin_operation *operation = malloc(sizeof(*operation));
    if (operation == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *operation =
        (struct standin_operation){.run = run, .drop = drop, .user = user, .always = always};
    *stream->last = operation;
    stream->last = &operation->next;
    stream->posted++;
    pthread_cond_signal(&stream->work);
    return cudaSuccess;
}

/* --- waiting for another stream's count --- */

struct wait {
    struct CUstream_st *stream;
    uint64_t count;
};

static cudaError_t run_wait(void *user)
{
    const struct wait *wait = user;
    pthread_mutex_lock(&standin_mutex);
    while (wait->stream->done < wait->count) {
        standin_window_close_locked(running);
        pthread_cond_wait(&wait->stream->progress, &standin_mutex);
    }
    pthread_mutex_unlock(&standin_mutex);
    return cudaSuccess;
}

static void drop_wait(void *user)
{
    struct wait *wait = user;
    pthread_mutex_lock(&standin_mutex);
    standin_stream_drop_locked(wait->stream);
    pthread_mutex_unlock(&standin_mutex);
    free(wait);
}

cudaError_t standin_post_wait_locked(
    struct CUstream_st *stream, struct CUstream_st *on, uint64_t count)
{
    if (on == stream || on->done >= count) {
        return cudaSuccess;
    }
    struct wait *wait = malloc(sizeof(*wait));
    if (wait == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *wait = (struct wait){.stream = on, .count = count};
    on->refs++;
    cudaError_t error = post_locked(stream, true, run_wait, drop_wait, wait);
    if (error != cudaSuccess) {
        on->refs--;
        free(wait);
    }
    return error;
}

/* The default stream waits for those that are not cudaStreamNonBlocking, and they for it. */
static cudaError_t join_default_locked(struct CUstream_st *stream)
{
    struct standin_device *device = stream->device;
    cudaError_t error = cudaSuccess;
    if (stream->flags == cudaStreamNonBlocking || device->legacy == NULL) {
        return cudaSuccess;
    }
    if (stream != device->legacy) {
        return standin_post_wait_locked(stream, device->legacy, device->legacy->posted);
    }
    for (struct CUstream_st *other = device->streams; other != NULL; other = other->next) {
        if (other != stream && other->flags != cudaStreamNonBlocking && error == cudaSuccess) {
            error = standin_post_wait_locked(stream, other, other->posted);
        }
    }
    return error;
}

cudaError_t standin_post_counted(struct CUstream_st *stream, bool always,
    cudaError_t (*run)(void *user), void (*drop)(void *user), void *user, uint64_t *ret_count)
{
    pthread_mutex_lock(&standin_mutex);
    cudaError_t error = join_default_locked(stream);
    if (error == cudaSuccess) {
        error = post_locked(stream, always, run, drop, user);
    }
    *ret_count = stream->posted;
    pthread_mutex_unlock(&standin_mutex);
    if (error != cudaSuccess && drop != NULL) {
        drop(user);
    }
    return error;
}

cudaError_t standin_post(struct CUstream_st *stream, bool always, cudaError_t (*run)(void *user),
    void (*drop)(void *user), void *user)
{
    uint64_t count;
    return standin_post_counted(stream, always, run, drop, user, &count);
}

cudaError_t standin_enqueue(
    cudaStream_t stream, cudaError_t (*run)(void *user), void (*drop)(void *user), void *user)
{
    struct CUstream_st *on = standin_stream(stream);
    if (on == NULL) {
        drop(user);
        return cudaErrorInvalidDevice;
    }
    return standin_post(on, false, run, drop, user);
}

void standin_idle(void)
{
    pthread_mutex_lock(&standin_mutex);
    standin_window_close_locked(running);
    pthread_mutex_unlock(&standin_mutex);
}

static cudaError_t finish_locked(struct CUstream_st *stream)
{
    uint64_t count = stream->posted;
    stream->refs++;
    while (stream->done < count) {
        pthread_cond_wait(&stream->progress, &standin_mutex);
    }
    cudaError_t error = stream->device->error;
    standin_stream_drop_locked(stream);
    return error;
}

cudaError_t standin_stream_finish(struct CUstream_st *stream)
{
    pthread_mutex_lock(&standin_mutex);
    cudaError_t error = finish_locked(stream);
    pthread_mutex_unlock(&standin_mutex);
    return error;
}

cudaError_t standin_device_finish(struct standin_device *device)
{
    pthread_mutex_lock(&standin_mutex);
    struct CUstream_st *stream = device->streams;
    while (stream != NULL) {
        if (stream->done < stream->posted) {
            (void)finish_locked(stream);
            stream = device->streams; /* the list may be another one now */
        } else {
            stream = stream->next;
        }
    }
    cudaError_t error = device->error;
    pthread_mutex_unlock(&standin_mutex);
    return error;
}

/* --- CUDA's calls --- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    STANDIN_CALL("cudaStreamCreate");
    struct standin_device *device = standin_device_current();
    cudaError_t error = standin_begin(standin_fault, device);
    if (error != cudaSuccess) {
        return standin_remember(error);
    }
    pthread_mutex_lock(&standin_mutex);
    *pStream = open_locked(device, flags, priority);
    pthread_mutex_unlock(&standin_mutex);
    return standin_remember(*pStream != NULL ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(pStream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return cudaStreamCreateWithPriority(pStream, cudaStreamDefault, 0);
}

/* The queue is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    STANDIN_CALL("cudaStreamDestroy");
    if (stream == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    cudaError_t error = standin_begin(standin_fault, stream->device);
    pthread_mutex_lock(&standin_mutex);
    struct CUstream_st **at = &stream->device->streams;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    stream->closing = true;
    pthread_cond_signal(&stream->work);
    standin_stream_drop_locked(stream);
    pthread_mutex_unlock(&standin_mutex);
    return standin_remember(error);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    STANDIN_CALL("cudaStreamQuery");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&standin_mutex);
        error = on->done < on->posted ? cudaErrorNotReady : on->device->error;
        pthread_mutex_unlock(&standin_mutex);
    }
    return standin_remember(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    STANDIN_CALL("cudaStreamSynchronize");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    return standin_remember(error != cudaSuccess ? error : standin_stream_finish(on));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    pthread_mutex_lock(&standin_mutex);
    bool captured = stream != NULL && stream->captured;
    pthread_mutex_unlock(&standin_mutex);
    *pCaptureStatus = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static __thread enum cudaStreamCaptureMode own;
    enum cudaStreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    struct CUstream_st *on = standin_stream(stream);
    if (on == NULL) {
        return standin_remember(cudaErrorInvalidResourceHandle);
    }
    *device = standin_device_index(on->device);
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    *priority = stream != NULL ? stream->priority : 0;
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    *flags = stream != NULL ? stream->flags : 0;
    return cudaSuccess;
}

struct host_call {
    cudaHostFn_t function;
    void *user;
};

static cudaError_t run_host_call(void *user)
{
    const struct host_call *call = user;
    standin_idle();
    call->function(call->user);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    STANDIN_CALL("cudaLaunchHostFunc");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    struct host_call *call = error == cudaSuccess ? malloc(sizeof(*call)) : NULL;
    if (call == NULL) {
        return standin_remember(error != cudaSuccess ? error : cudaErrorMemoryAllocation);
    }
    *call = (struct host_call){.function = fn, .user = userData};
    return standin_remember(standin_post(on, false, run_host_call, free, call));
}

void standin_capture(cudaStream_t stream, bool captured)
{
    pthread_mutex_lock(&standin_mutex);
    stream->captured = captured;
    pthread_mutex_unlock(&standin_mutex);
}

/* --- standing still --- */

static void set_held(struct CUstream_st *stream, bool held)
{
    pthread_mutex_lock(&standin_mutex);
    stream->held = held;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&standin_mutex);
}

void standin_hold(cudaStream_t stream)
{
    set_held(standin_stream(stream), true);
}

void standin_release(cudaStream_t stream)
{
    set_held(standin_stream(stream), false);
}

static void set_device_held(int device, bool held)
{
    struct standin_device *asked = standin_device_at(device);
    if (asked == NULL) {
        fprintf(stderr, "stand-in: there is no device %d to hold\n", device);
        abort();
    }
    pthread_mutex_lock(&standin_mutex);
    asked->held = held;
    for (struct CUstream_st *stream = asked->streams; stream != NULL; stream = stream->next) {
        pthread_cond_signal(&stream->work);
    }
    pthread_mutex_unlock(&standin_mutex);
}

void standin_device_hold(int device)
{
    set_device_held(device, true);
}

void standin_device_release(int device)
{
    set_device_held(device, false);
}
