/* SPDX-License-Identifier: Apache-2.0
 * The blocks of memory_blocks_cuda.h, for memory_cuda.c. A program has tens or hundreds of tensors,
 * so lists are searched. */
#include "worker/library/cuda/memory_blocks_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "worker/library/cuda/call_cuda.h"

#define SMALL_BYTES ((size_t)512)
#define LARGE_BYTES ((size_t)1 << 20)

struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    uint32_t device;
    cudaStream_t stream; /* it was freed on */
    cudaEvent_t given;   /* recorded there */
};

static struct {
    pthread_mutex_t mutex;
    struct block *used;
    struct block *kept;
} blocks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Sizes are rounded, so that blocks fit again. SIZE_MAX: there is no such size. */
static size_t round_up(size_t bytes)
{
    size_t unit = bytes > LARGE_BYTES ? LARGE_BYTES : SMALL_BYTES;
    return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) / unit * unit;
}

/* Takes a kept block out: one of the stream's own first, which needs no waiting. */
static struct block *take_kept(uint32_t device, size_t bytes, cudaStream_t stream)
{
    struct block **found = NULL;
    for (struct block **at = &blocks.kept; *at != NULL; at = &(*at)->next) {
        if ((*at)->device == device && (*at)->bytes == bytes) {
            found = at;
            if ((*at)->stream == stream) {
                break;
            }
        }
    }
    struct block *block = found != NULL ? *found : NULL;
    if (block != NULL) {
        *found = block->next;
    }
    return block;
}

static void end_block(struct block *block)
{
    cudaError_t result = block->memory != NULL ? cudaFree(block->memory) : cudaSuccess;
    if (result != cudaSuccess) {
        cuda_forget(result);
    }
    result = block->given != NULL ? cudaEventDestroy(block->given) : cudaSuccess;
    if (result != cudaSuccess) {
        cuda_forget(result);
    }
    free(block);
}

/* True: some memory went back to the device. cudaFree waits for what still uses it. */
static bool end_kept(uint32_t device)
{
    bool any = false;
    for (struct block **at = &blocks.kept; *at != NULL;) {
        struct block *block = *at;
        if (block->device != device) {
            at = &block->next;
            continue;
        }
        *at = block->next;
        end_block(block);
        any = true;
    }
    return any;
}

static cudaError_t new_block(uint32_t device, size_t bytes, struct block **ret_block)
{
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *block = (struct block){.bytes = bytes, .device = device};
    cudaError_t result = cudaEventCreateWithFlags(&block->given, cudaEventDisableTiming);
    if (result == cudaSuccess) {
        result = cudaMalloc(&block->memory, bytes);
        if (result == cudaErrorMemoryAllocation && end_kept(device)) {
            cuda_forget(result);
            result = cudaMalloc(&block->memory, bytes);
        }
    }
    if (result != cudaSuccess) {
        end_block(block);
        return result;
    }
    *ret_block = block;
    return cudaSuccess;
}

cudaError_t memory_blocks_get(uint32_t device, size_t bytes, cudaStream_t stream, void **ret_memory)
{
    size_t rounded = round_up(bytes);
    cudaError_t result = cudaSuccess;
    pthread_mutex_lock(&blocks.mutex);
    struct block *block = take_kept(device, rounded, stream);
    if (block == NULL) {
        result = new_block(device, rounded, &block);
    } else if (block->stream != stream) {
        result = cudaStreamWaitEvent(stream, block->given, 0);
        if (result != cudaSuccess) {
            block->next = blocks.kept;
            blocks.kept = block;
        }
    }
    if (result == cudaSuccess) {
        block->next = blocks.used;
        blocks.used = block;
        *ret_memory = block->memory;
    }
    pthread_mutex_unlock(&blocks.mutex);
    return result;
}

cudaError_t memory_blocks_give(void *memory, cudaStream_t stream)
{
    cudaError_t result = cudaErrorInvalidValue;
    pthread_mutex_lock(&blocks.mutex);
    struct block **at = &blocks.used;
    while (*at != NULL && (*at)->memory != memory) {
        at = &(*at)->next;
    }
    struct block *block = *at;
    if (block != NULL) {
        *at = block->next;
        block->stream = stream;
        result = cudaEventRecord(block->given, stream);
        if (result == cudaSuccess) {
            block->next = blocks.kept;
            blocks.kept = block;
        } else {
            end_block(block);
        }
    }
    pthread_mutex_unlock(&blocks.mutex);
    return result;
}
