/* SPDX-License-Identifier: Apache-2.0
 * Events, for plugin_cuda.c. */
#include "worker/library/cuda/plugin_cuda.h"

#include <stdlib.h>

#include "worker/library/cuda/call_cuda.h"
#include "worker/library/cuda/streams_cuda.h"

struct event {
    cudaEvent_t cuda;
    uint32_t device;
};

cadre_status order_open(uint32_t device, void **ret_event, struct cadre_error *error)
{
    *ret_event = NULL;
    struct event *event = calloc(1, sizeof *event);
    if (event == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an event");
    }
    event->device = device;
    struct cuda_scope scope;
    cadre_status status = cuda_enter(device, &scope, error);
    if (status == CADRE_OK) {
        cudaError_t result = cudaEventCreateWithFlags(&event->cuda, cudaEventDisableTiming);
        if (result != cudaSuccess) {
            status = cuda_fail(error, result, device, "an event cannot be made");
        }
        cuda_leave(&scope);
    }
    if (status != CADRE_OK) {
        free(event);
        return status;
    }
    *ret_event = event;
    return CADRE_OK;
}

void order_close(void *event_)
{
    struct event *event = event_;
    struct cuda_scope scope;
    if (event == NULL) {
        return;
    }
    if (cuda_enter(event->device, &scope, NULL) == CADRE_OK) {
        cudaError_t result = cudaEventDestroy(event->cuda);
        if (result != cudaSuccess) {
            cuda_forget(result);
        }
        cuda_leave(&scope);
    }
    free(event);
}

cadre_status order_record(void *event_, void *stream, struct cadre_error *error)
{
    struct event *event = event_;
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cadre_status status = CADRE_OK;
    if (device != event->device) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an event of GPU %u cannot be recorded on a stream of GPU %u: open one there",
            event->device, device);
    } else {
        cudaError_t result = cudaEventRecord(event->cuda, stream);
        if (result != cudaSuccess) {
            status = cuda_fail(error, result, device, "an event cannot be recorded");
        }
    }
    cuda_leave(&scope);
    return status;
}

cadre_status order_wait(void *stream, void *event_, struct cadre_error *error)
{
    struct event *event = event_;
    uint32_t device = 0;
    struct cuda_scope scope;
    CADRE_TRY(streams_enter(stream, &device, &scope, error));
    cadre_status status = CADRE_OK;
    cudaError_t result = cudaStreamWaitEvent(stream, event->cuda, 0);
    if (result != cudaSuccess) {
        status = cuda_fail(
            error, result, device, "a stream cannot wait for an event of GPU %u", event->device);
    }
    cuda_leave(&scope);
    return status;
}

cadre_status order_test(void *event_, struct cadre_error *error)
{
    struct event *event = event_;
    struct cuda_scope scope;
    CADRE_TRY(cuda_enter(event->device, &scope, error));
    cadre_status status = CADRE_OK;
    cudaError_t result = cudaEventQuery(event->cuda);
    if (result == cudaErrorNotReady) {
        cuda_forget(result);
        status = CADRE_PENDING;
    } else if (result != cudaSuccess) {
        status = cuda_fail(error, result, event->device, "an event cannot be waited for");
    }
    cuda_leave(&scope);
    return status;
}
