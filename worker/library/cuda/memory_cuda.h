/* SPDX-License-Identifier: Apache-2.0
 * Memory of devices, and of the host for them. See device_ops.h.
 *
 * A device's memory comes from CUDA's own pool of the device, which keeps what was freed;
 * memory_blocks_cuda.h where a device has no pools (some virtual GPUs). */
#ifndef CADRE_WORKER_CUDA_MEMORY_CUDA_H
#define CADRE_WORKER_CUDA_MEMORY_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* device_ops.memory_get. */
cadre_status memory_get(
    uint32_t device, size_t bytes, void *stream, void **ret_memory, struct cadre_error *error);
/* device_ops.memory_give. */
void memory_give(uint32_t device, void *memory, void *stream);

/* device_ops.pinned_get. */
void *memory_pinned_get(size_t bytes);
/* device_ops.pinned_give. */
void memory_pinned_give(void *memory, size_t bytes);

#endif
