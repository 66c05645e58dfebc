/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the calls that allocate and free memory, of devices and page-locked. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdlib.h>
#include <string.h>

/* Page-locked memory of the host; `own`: got by cudaHostAlloc. */
struct pinned {
    struct pinned *next;
    char *memory;
    size_t bytes;
    int device;
    bool own;
};

static struct pinned *pinned;

static cudaError_t get(struct standin_device *device, size_t bytes, void **ret)
{
    pthread_mutex_lock(&standin_mutex);
    cudaError_t error = standin_memory_get_locked(device, bytes, ret);
    pthread_mutex_unlock(&standin_mutex);
    return error;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    STANDIN_CALL("cudaMalloc");
    struct standin_device *device = standin_device_current();
    cudaError_t error = standin_begin(standin_fault, device);
    if (error != cudaSuccess) {
        return standin_remember(error);
    }
    *devPtr = NULL;
    return standin_remember(size == 0 ? cudaSuccess : get(device, size, devPtr));
}

/* As CUDA's it waits for all that is under way on the device. */
cudaError_t cudaFree(void *devPtr)
{
    STANDIN_CALL("cudaFree");
    if (devPtr == NULL) {
        return standin_remember(standin_begin(standin_fault, standin_device_current()));
    }
    struct standin_device *device = standin_memory_of(devPtr);
    if (device == NULL) {
        return standin_remember(cudaErrorInvalidValue);
    }
    cudaError_t error = standin_begin(standin_fault, device);
    cudaError_t finished = standin_device_finish(device);
    error = error == cudaSuccess ? finished : error;
    pthread_mutex_lock(&standin_mutex);
    if (!standin_memory_give_locked(device, devPtr) && error == cudaSuccess) {
        error = cudaErrorInvalidValue;
    }
    pthread_mutex_unlock(&standin_mutex);
    return standin_remember(error);
}

static cudaError_t get_on(struct CUstream_st *stream, size_t size, void **ret)
{
    if (size == 0) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = get(stream->device, size, ret);
    if (error == cudaErrorMemoryAllocation) { /* memory that the stream will have freed counts */
        error = standin_stream_finish(stream);
        error = error == cudaSuccess ? get(stream->device, size, ret) : error;
    }
    return error;
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream)
{
    STANDIN_CALL("cudaMallocAsync");
    struct CUstream_st *on = standin_stream(stream);
    if (on == NULL) {
        return standin_remember(cudaErrorInvalidDevice);
    }
    cudaError_t error = standin_begin(standin_fault, on->device);
    return standin_remember(error != cudaSuccess ? error : get_on(on, size, devPtr));
}

cudaError_t cudaMallocFromPoolAsync(
    void **devPtr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
    STANDIN_CALL("cudaMallocFromPoolAsync");
    struct CUstream_st *on = standin_stream(stream);
    struct standin_device *device = memPool != NULL ? standin_device_at(memPool->device) : NULL;
    if (on == NULL || device == NULL || device != on->device) {
        return standin_remember(cudaErrorInvalidValue);
    }
    cudaError_t error = standin_begin(standin_fault, device);
    return standin_remember(error != cudaSuccess ? error : get_on(on, size, devPtr));
}

static cudaError_t run_free(void *memory)
{
    struct standin_device *device = standin_memory_of(memory);
    pthread_mutex_lock(&standin_mutex);
    bool given = standin_memory_give_locked(device, memory);
    pthread_mutex_unlock(&standin_mutex);
    return given ? cudaSuccess : cudaErrorIllegalAddress;
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t stream)
{
    STANDIN_CALL("cudaFreeAsync");
    if (devPtr == NULL) {
        return cudaSuccess;
    }
    struct CUstream_st *on = standin_stream(stream);
    struct standin_device *device = standin_memory_of(devPtr);
    if (on == NULL || device == NULL) {
        return standin_remember(cudaErrorInvalidValue);
    }
    cudaError_t error = standin_begin(standin_fault, on->device);
    cudaError_t posted = standin_post(on, true, run_free, NULL, devPtr);
    return standin_remember(error != cudaSuccess ? error : posted);
}

/* --- pools: a device has one that counts; others are names for it --- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
    STANDIN_CALL("cudaDeviceGetDefaultMemPool");
    struct standin_device *asked = standin_device_at(device);
    cudaError_t error = standin_begin(standin_fault, asked);
    if (error == cudaSuccess) {
        *memPool = &asked->pool;
    }
    return standin_remember(error);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
    return cudaDeviceGetDefaultMemPool(memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
    bool fits = memPool != NULL && memPool->device == device && standin_device_at(device) != NULL;
    return standin_remember(fits ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
    STANDIN_CALL("cudaMemPoolCreate");
    struct standin_device *device = standin_device_at(poolProps->location.id);
    cudaError_t error = standin_begin(standin_fault, device);
    if (error != cudaSuccess) {
        return standin_remember(error);
    }
    *memPool = malloc(sizeof(**memPool));
    if (*memPool == NULL) {
        return standin_remember(cudaErrorMemoryAllocation);
    }
    **memPool = (struct CUmemPoolHandle_st){.device = poolProps->location.id};
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
    struct standin_device *device = memPool != NULL ? standin_device_at(memPool->device) : NULL;
    if (device == NULL || memPool == &device->pool) {
        return standin_remember(cudaErrorInvalidValue);
    }
    free(memPool);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    STANDIN_CALL("cudaMemPoolSetAttribute");
    if (standin_fault != 0 || memPool == NULL) {
        return standin_remember(
            standin_fault != 0 ? (cudaError_t)standin_fault : cudaErrorInvalidValue);
    }
    if (attr == cudaMemPoolAttrReleaseThreshold) {
        memPool->threshold = *(const uint64_t *)value;
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    if (memPool == NULL) {
        return standin_remember(cudaErrorInvalidValue);
    }
    uint64_t used = standin_memory_used(memPool->device);
    if (attr <= cudaMemPoolReuseAllowInternalDependencies) {
        *(int *)value = 1;
    } else {
        *(uint64_t *)value = attr == cudaMemPoolAttrReleaseThreshold ? memPool->threshold : used;
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(
    cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count)
{
    (void)descList;
    return standin_remember(memPool != NULL || count == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
    (void)minBytesToKeep;
    return standin_remember(memPool != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    STANDIN_CALL("cudaMemGetInfo");
    struct standin_device *device = standin_device_current();
    cudaError_t error = standin_begin(standin_fault, device);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&standin_mutex);
        *free_bytes = device->capacity - device->used;
        *total = device->capacity;
        pthread_mutex_unlock(&standin_mutex);
    }
    return standin_remember(error);
}

/* --- page-locked memory --- */

static cudaError_t pin(char *memory, size_t bytes, bool own)
{
    struct pinned *block = malloc(sizeof(*block));
    if (block == NULL) {
        return cudaErrorMemoryAllocation;
    }
    struct standin_device *device = standin_device_current();
    *block = (struct pinned){.memory = memory,
        .bytes = bytes,
        .device = device != NULL ? standin_device_index(device) : 0,
        .own = own};
    pthread_mutex_lock(&standin_mutex);
    block->next = pinned;
    pinned = block;
    pthread_mutex_unlock(&standin_mutex);
    return cudaSuccess;
}

/* The block is the caller's; NULL: there is none that begins there. */
static struct pinned *unpin(const void *memory, bool own)
{
    pthread_mutex_lock(&standin_mutex);
    struct pinned **at = &pinned;
    while (*at != NULL && ((*at)->memory != memory || (*at)->own != own)) {
        at = &(*at)->next;
    }
    struct pinned *block = *at;
    if (block != NULL) {
        *at = block->next;
    }
    pthread_mutex_unlock(&standin_mutex);
    return block;
}

/* The block that holds `pointer` and `bytes` after it. */
static bool find_pinned(const void *pointer, size_t bytes, struct pinned *ret_block)
{
    bool found = false;
    pthread_mutex_lock(&standin_mutex);
    for (const struct pinned *block = pinned; block != NULL && !found; block = block->next) {
        uintptr_t within = (uintptr_t)pointer - (uintptr_t)block->memory;
        if ((uintptr_t)pointer >= (uintptr_t)block->memory && within < block->bytes &&
            bytes <= block->bytes - within) {
            *ret_block = *block;
            found = true;
        }
    }
    pthread_mutex_unlock(&standin_mutex);
    return found;
}

bool standin_is_pinned(const void *pointer, size_t bytes)
{
    struct pinned block;
    return find_pinned(pointer, bytes, &block);
}

size_t standin_pinned_blocks(void)
{
    size_t count = 0;
    pthread_mutex_lock(&standin_mutex);
    for (const struct pinned *block = pinned; block != NULL; block = block->next) {
        count++;
    }
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    STANDIN_CALL("cudaHostAlloc");
    (void)flags;
    cudaError_t error = standin_begin(standin_fault, standin_device_current());
    if (error != cudaSuccess || size == 0) {
        *pHost = NULL;
        return standin_remember(error);
    }
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, size) != 0) {
        return standin_remember(cudaErrorMemoryAllocation);
    }
    memset(memory, 0xcb, size);
    error = pin(memory, size, true);
    if (error != cudaSuccess) {
        free(memory);
        return standin_remember(error);
    }
    *pHost = memory;
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *ptr)
{
    STANDIN_CALL("cudaFreeHost");
    if (ptr == NULL) {
        return cudaSuccess;
    }
    struct pinned *block = unpin(ptr, true);
    if (block == NULL) {
        return standin_remember(cudaErrorInvalidValue);
    }
    free(block->memory);
    free(block);
    return standin_remember((cudaError_t)standin_fault);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    STANDIN_CALL("cudaHostRegister");
    (void)flags;
    cudaError_t error = standin_begin(standin_fault, standin_device_current());
    if (error == cudaSuccess && (ptr == NULL || size == 0)) {
        error = cudaErrorInvalidValue;
    } else if (error == cudaSuccess && standin_is_pinned(ptr, 1)) {
        error = cudaErrorHostMemoryAlreadyRegistered;
    }
    return standin_remember(error != cudaSuccess ? error : pin(ptr, size, false));
}

cudaError_t cudaHostUnregister(void *ptr)
{
    STANDIN_CALL("cudaHostUnregister");
    struct pinned *block = unpin(ptr, false);
    if (block == NULL) {
        return standin_remember(cudaErrorHostMemoryNotRegistered);
    }
    free(block);
    return standin_remember((cudaError_t)standin_fault);
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    (void)flags;
    if (!standin_is_pinned(pHost, 1)) {
        return standin_remember(cudaErrorInvalidValue);
    }
    *pDevice = pHost;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    STANDIN_CALL("cudaPointerGetAttributes");
    if (standin_fault != 0) {
        return standin_remember((cudaError_t)standin_fault);
    }
    void *place = (void *)(uintptr_t)ptr;
    struct standin_device *device = standin_memory_of(ptr);
    struct pinned block;
    *attributes = (struct cudaPointerAttributes){
        .type = cudaMemoryTypeUnregistered, .device = -2, .hostPointer = place};
    if (device != NULL && standin_reach(ptr, 1) != NULL) {
        *attributes = (struct cudaPointerAttributes){.type = cudaMemoryTypeDevice,
            .device = standin_device_index(device),
            .devicePointer = place};
    } else if (find_pinned(ptr, 1, &block)) {
        *attributes = (struct cudaPointerAttributes){.type = cudaMemoryTypeHost,
            .device = block.device,
            .devicePointer = place,
            .hostPointer = place};
    }
    return cudaSuccess;
}
