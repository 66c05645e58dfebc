/* SPDX-License-Identifier: Apache-2.0
 * The streams that the plugin made, and their devices. A process has few streams, three a device,
 * so the list is searched. */
#include "worker/library/cuda/streams_cuda.h"

#include <pthread.h>
#include <stdlib.h>

struct open_stream {
    const void *stream;
    uint32_t device;
};

static struct {
    pthread_mutex_t mutex;
    struct open_stream *list;
    size_t count;
    size_t room;
} streams = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool streams_cuda_add(const void *stream, uint32_t device)
{
    pthread_mutex_lock(&streams.mutex);
    if (streams.count == streams.room) {
        size_t room = streams.room == 0 ? 16 : 2 * streams.room;
        struct open_stream *list = realloc(streams.list, room * sizeof *list);
        if (list == NULL) {
            pthread_mutex_unlock(&streams.mutex);
            return false;
        }
        streams.list = list;
        streams.room = room;
    }
    streams.list[streams.count++] = (struct open_stream){.stream = stream, .device = device};
    pthread_mutex_unlock(&streams.mutex);
    return true;
}

static void take_out(const void *stream)
{
    pthread_mutex_lock(&streams.mutex);
    for (size_t i = 0; i < streams.count; i++) {
        if (streams.list[i].stream == stream) {
            streams.list[i] = streams.list[--streams.count];
            break;
        }
    }
    if (streams.count == 0) {
        free(streams.list);
        streams.list = NULL;
        streams.room = 0;
    }
    pthread_mutex_unlock(&streams.mutex);
}

cadre_status streams_device(const void *stream, uint32_t *ret_device, struct cadre_error *error)
{
    bool found = false;
    pthread_mutex_lock(&streams.mutex);
    for (size_t i = 0; i < streams.count && !found; i++) {
        if (streams.list[i].stream == stream) {
            *ret_device = streams.list[i].device;
            found = true;
        }
    }
    pthread_mutex_unlock(&streams.mutex);
    if (!found) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%p is no stream of a GPU's that stream_open made and that is open", stream);
    }
    return CADRE_OK;
}

bool streams_any_device(uint32_t *ret_device)
{
    pthread_mutex_lock(&streams.mutex);
    bool any = streams.count > 0;
    if (any) {
        *ret_device = streams.list[0].device;
    }
    pthread_mutex_unlock(&streams.mutex);
    return any;
}

bool streams_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    cuda_forget(cudaStreamIsCapturing(stream, &captured));
    return captured != cudaStreamCaptureStatusNone;
}

/* Then FAILED_PRECONDITION. */
static cadre_status streams_refuse_captured(
    cudaStream_t stream, uint32_t device, struct cadre_error *error)
{
    return !streams_captured(stream)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "GPU %u: its stream is being captured into a graph: end the capture first, "
                     "and launch the graph as a kernel is launched",
                     device);
}

cadre_status streams_enter(const void *stream, uint32_t *ret_device, struct cuda_scope *ret_scope,
    struct cadre_error *error)
{
    CADRE_TRY(streams_device(stream, ret_device, error));
    CADRE_TRY(cuda_enter(*ret_device, ret_scope, error));
    cadre_status status =
        streams_refuse_captured((cudaStream_t)(uintptr_t)stream, *ret_device, error);
    if (status != CADRE_OK) {
        cuda_leave(ret_scope);
    }
    return status;
}

cadre_status streams_open(
    uint32_t device, bool urgent, void **ret_stream, struct cadre_error *error)
{
    *ret_stream = NULL;
    struct cuda_scope scope;
    CADRE_TRY(cuda_enter(device, &scope, error));
    int last = 0; /* the number of the lowest priority, and of the highest: 0 and less */
    int first = 0;
    cudaStream_t stream = NULL;
    cudaError_t result = cudaDeviceGetStreamPriorityRange(&last, &first);
    if (result == cudaSuccess) {
        result =
            cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? first : last);
    }
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "a stream cannot be made");
    } else if (!streams_cuda_add(stream, device)) {
        (void)cudaStreamDestroy(stream);
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a stream");
    } else {
        *ret_stream = stream;
    }
    cuda_leave(&scope);
    return status;
}

void streams_close(void *stream)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    if (stream == NULL || streams_device(stream, &device, NULL) != CADRE_OK) {
        return;
    }
    take_out(stream); /* first: its address may be another one's as soon as it is destroyed */
    if (cuda_enter(device, &scope, NULL) == CADRE_OK) {
        cudaError_t result = cudaStreamDestroy(stream);
        if (result != cudaSuccess) {
            cuda_forget(result);
        }
        cuda_leave(&scope);
    }
}

cadre_status streams_test(void *stream, struct cadre_error *error)
{
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cadre_status status = CADRE_OK;
    cudaError_t result = cudaStreamQuery(stream);
    if (result == cudaErrorNotReady) {
        cuda_forget(result);
        status = CADRE_PENDING;
    } else if (result != cudaSuccess) {
        status = cuda_fail(error, result, device, "a stream cannot be waited for");
    }
    cuda_leave(&scope);
    return status;
}
