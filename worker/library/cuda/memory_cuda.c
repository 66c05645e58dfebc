/* SPDX-License-Identifier: Apache-2.0
 * Memory of devices from CUDA's pools, and page-locked memory of the host, for plugin_cuda.c. */
#include "worker/library/cuda/plugin_cuda.h"

#include <pthread.h>
#include <stdbool.h>

#include "worker/library/cuda/memory_blocks_cuda.h"
#include "worker/library/cuda/streams_cuda.h"
#include "worker/library/device/device_ops.h"

enum pool_state { POOL_UNKNOWN, POOL_NONE, POOL_READY };

static struct {
    pthread_mutex_t mutex;
    enum pool_state of[DEVICES_MAX];
} pools = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Gives other devices direct access to the pool's memory, where the machine can; else CUDA copies
 * through the host by itself. */
static void open_to_peers(uint32_t device, cudaMemPool_t pool)
{
    int count = 0;
    cudaError_t result = cudaGetDeviceCount(&count);
    for (int peer = 0; result == cudaSuccess && peer < count; peer++) {
        int can = 0;
        if ((uint32_t)peer == device) {
            continue;
        }
        result = cudaDeviceCanAccessPeer(&can, peer, (int)device);
        if (result == cudaSuccess && can != 0) {
            struct cudaMemAccessDesc access = {
                .location = {.type = cudaMemLocationTypeDevice, .id = peer},
                .flags = cudaMemAccessFlagsProtReadWrite};
            result = cudaMemPoolSetAccess(pool, &access, 1);
        }
    }
    if (result != cudaSuccess) {
        cuda_forget(result);
    }
}

/* `device` is current. A pool returns nothing to the driver on its own. */
static enum pool_state memory_cuda_prepare(uint32_t device)
{
    int supported = 0;
    cudaMemPool_t pool = NULL;
    uint64_t threshold = UINT64_MAX;
    cudaError_t result =
        cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, (int)device);
    if (result == cudaSuccess && supported != 0) {
        result = cudaDeviceGetDefaultMemPool(&pool, (int)device);
        if (result == cudaSuccess) {
            result = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
        }
    }
    if (result != cudaSuccess || supported == 0) {
        cuda_forget(result);
        return POOL_NONE;
    }
    open_to_peers(device, pool);
    return POOL_READY;
}

static bool has_pool(uint32_t device)
{
    pthread_mutex_lock(&pools.mutex);
    if (pools.of[device] == POOL_UNKNOWN) {
        pools.of[device] = memory_cuda_prepare(device);
    }
    bool has = pools.of[device] == POOL_READY;
    pthread_mutex_unlock(&pools.mutex);
    return has;
}

static cadre_status no_memory(
    struct cadre_error *error, cudaError_t result, uint32_t device, size_t bytes)
{
    size_t free_bytes = 0;
    size_t total = 0;
    if (result != cudaErrorMemoryAllocation || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        return cuda_fail(error, result, device, "no memory of %zu bytes", bytes);
    }
    return cuda_fail(error, result, device, "no memory of %zu bytes (%zu of %zu are free)", bytes,
        free_bytes, total);
}

cadre_status memory_get(
    uint32_t device, size_t bytes, void *stream, void **ret_memory, struct cadre_error *error)
{
    uint32_t of_stream = 0;
    struct cuda_scope scope;
    *ret_memory = NULL;
    CADRE_TRY(streams_device(stream, &of_stream, error));
    if (of_stream != device || bytes == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "GPU %u: memory of %zu bytes in the order of a stream of GPU %u: give at least one "
            "byte, on a stream of the GPU itself",
            device, bytes, of_stream);
    }
    CADRE_TRY(streams_enter(stream, &of_stream, &scope, error));
    cudaError_t result = has_pool(device) ? cudaMallocAsync(ret_memory, bytes, stream)
                                          : memory_blocks_get(device, bytes, stream, ret_memory);
    cadre_status status = CADRE_OK;
    if (result != cudaSuccess) {
        *ret_memory = NULL;
        status = no_memory(error, result, device, bytes);
    }
    cuda_leave(&scope);
    return status;
}

void memory_give(uint32_t device, void *memory, void *stream)
{
    struct cuda_scope scope;
    if (memory == NULL || device >= DEVICES_MAX || cuda_enter(device, &scope, NULL) != CADRE_OK) {
        return;
    }
    cudaError_t result = cudaSuccess;
    if (!streams_captured(stream)) { /* else the graph may use it: it is kept with the graph */
        result =
            has_pool(device) ? cudaFreeAsync(memory, stream) : memory_blocks_give(memory, stream);
    }
    if (result != cudaSuccess) {
        cuda_forget(result); /* of a device that failed before: its memory ends with the process */
    }
    cuda_leave(&scope);
}

/* Page-locked memory belongs to all devices, but the call is of the current one, on which it makes
 * a context: a device in use, where there is one. */
static bool enter_any(struct cuda_scope *ret_scope)
{
    uint32_t device = 0;
    return streams_any_device(&device) && cuda_enter(device, ret_scope, NULL) == CADRE_OK;
}

void *memory_pinned_get(size_t bytes)
{
    void *memory = NULL;
    struct cuda_scope scope;
    bool entered = enter_any(&scope);
    cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
    if (result != cudaSuccess) {
        cuda_forget(result);
        memory = NULL;
    }
    if (entered) {
        cuda_leave(&scope);
    }
    return memory;
}

void memory_pinned_give(void *memory, size_t bytes)
{
    (void)bytes;
    struct cuda_scope scope;
    bool entered = enter_any(&scope);
    if (memory != NULL) {
        cuda_forget(cudaFreeHost(memory));
    }
    if (entered) {
        cuda_leave(&scope);
    }
}
