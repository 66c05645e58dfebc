/* SPDX-License-Identifier: Apache-2.0
 * Memory of devices without pools: blocks of cudaMalloc, kept when they are freed. A block that is
 * used again on another stream waits there, by an event, for the one it was freed on. The block's
 * device is current in all calls. */
#ifndef CADRE_WORKER_CUDA_MEMORY_BLOCKS_CUDA_H
#define CADRE_WORKER_CUDA_MEMORY_BLOCKS_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* cudaErrorMemoryAllocation only after all kept blocks of the device were returned to it. */
cudaError_t memory_blocks_get(
    uint32_t device, size_t bytes, cudaStream_t stream, void **ret_memory);
/* Frees a block in the order of `stream`. */
cudaError_t memory_blocks_give(void *memory, cudaStream_t stream);

#endif
