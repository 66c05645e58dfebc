/* SPDX-License-Identifier: Apache-2.0
 * The NVIDIA management library, if it is installed: the free memory of a GPU, without a context on
 * it (cudaMemGetInfo would make one, of some hundred MB and milliseconds). */
#ifndef CADRE_WORKER_CUDA_NVML_H
#define CADRE_WORKER_CUDA_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* Of the GPU, or part of one (MIG), whose UUID is "<kind><uuid>". False: it cannot be read. */
bool nvml_memory_free(const char *kind, const char *uuid, uint64_t *ret_bytes);

#endif
