/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: copies and fills. An address outside of one block of a device, when the
 * copy's turn comes, is an illegal address, which stays with the device. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    int byte;     /* of a fill */
    void *staged; /* the content of pageable memory at the call */
};

static cudaError_t outside(const char *what, const void *pointer, size_t bytes)
{
    fprintf(stderr, "stand-in: %s %zu bytes at %p, which are not within one block of the device\n",
        what, bytes, pointer);
    return cudaErrorIllegalAddress;
}

static cudaError_t run_copy(void *user)
{
    const struct copy *copy = user;
    STANDIN_CALL("copy");
    if (standin_fault != 0) {
        return (cudaError_t)standin_fault;
    }
    const void *from = copy->staged != NULL ? copy->staged : standin_reach(copy->from, copy->bytes);
    void *to = standin_reach(copy->to, copy->bytes);
    if (from == NULL) {
        return outside("a copy from", copy->from, copy->bytes);
    }
    if (to == NULL) {
        return outside("a copy to", copy->to, copy->bytes);
    }
    memmove(to, from, copy->bytes);
    return cudaSuccess;
}

static cudaError_t run_fill(void *user)
{
    const struct copy *copy = user;
    STANDIN_CALL("fill");
    if (standin_fault != 0) {
        return (cudaError_t)standin_fault;
    }
    void *to = standin_reach(copy->to, copy->bytes);
    if (to == NULL) {
        return outside("a fill of", copy->to, copy->bytes);
    }
    memset(to, copy->byte, copy->bytes);
    return cudaSuccess;
}

static void drop_copy(void *user)
{
    struct copy *copy = user;
    free(copy->staged);
    free(copy);
}

static bool kind_fits(enum cudaMemcpyKind kind, bool to_device, bool from_device)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    case cudaMemcpyDefault:
        return true;
    default:
        return false;
    }
}

/* Pageable memory is read before this returns, and written before this returns. */
static cudaError_t copy_on(
    struct CUstream_st *stream, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    bool to_device = standin_memory_of(to) != NULL;
    bool from_device = standin_memory_of(from) != NULL;
    if (!kind_fits(kind, to_device, from_device)) {
        return kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidValue;
    }
    if (bytes == 0) {
        return cudaSuccess;
    }
    struct copy *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *copy = (struct copy){.to = to, .from = from, .bytes = bytes};
    if (!from_device && !standin_is_pinned(from, bytes)) {
        copy->staged = malloc(bytes);
        if (copy->staged == NULL) {
            free(copy);
            return cudaErrorMemoryAllocation;
        }
        memcpy(copy->staged, from, bytes);
    }
    cudaError_t error = standin_post(stream, false, run_copy, drop_copy, copy);
    if (error == cudaSuccess && !to_device && !standin_is_pinned(to, bytes)) {
        error = standin_stream_finish(stream);
    }
    return error;
}

cudaError_t cudaMemcpyAsync(
    void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    STANDIN_CALL("cudaMemcpyAsync");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    return standin_remember(error != cudaSuccess ? error : copy_on(on, dst, src, count, kind));
}

cudaError_t cudaMemcpyPeerAsync(
    void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
    STANDIN_CALL("cudaMemcpyPeerAsync");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    if (error == cudaSuccess && (standin_memory_of(dst) != standin_device_at(dstDevice) ||
                                    standin_memory_of(src) != standin_device_at(srcDevice))) {
        error = cudaErrorInvalidValue;
    }
    return standin_remember(
        error != cudaSuccess ? error : copy_on(on, dst, src, count, cudaMemcpyDeviceToDevice));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    STANDIN_CALL("cudaMemcpy");
    struct CUstream_st *on = standin_stream(NULL);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    error = error != cudaSuccess ? error : copy_on(on, dst, src, count, kind);
    return standin_remember(error != cudaSuccess ? error : standin_stream_finish(on));
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    STANDIN_CALL("cudaMemsetAsync");
    struct CUstream_st *on = standin_stream(stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    if (error != cudaSuccess || count == 0) {
        return standin_remember(error);
    }
    if (standin_memory_of(devPtr) == NULL && !standin_is_pinned(devPtr, count)) {
        return standin_remember(cudaErrorInvalidValue);
    }
    struct copy *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return standin_remember(cudaErrorMemoryAllocation);
    }
    *copy = (struct copy){.to = devPtr, .bytes = count, .byte = value};
    return standin_remember(standin_post(on, false, run_fill, drop_copy, copy));
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    cudaError_t error = cudaMemsetAsync(devPtr, value, count, NULL);
    return error != cudaSuccess ? error : cudaStreamSynchronize(NULL);
}
