/* SPDX-License-Identifier: Apache-2.0
 * The NVIDIA management library, if it is installed: memory and use of a GPU, without a context on
 * it (cudaMemGetInfo would make one, of some hundred MB and milliseconds) and without libcuda. Also
 * linked into cadre-devices. */
#ifndef CADRE_WORKER_CUDA_NVML_H
#define CADRE_WORKER_CUDA_NVML_H

#include <stdbool.h>
#include <stdint.h>

/* Of the GPU, or part of one (MIG), whose UUID is "<kind><uuid>". False: it cannot be read. */
bool nvml_memory_free(const char *kind, const char *uuid, uint64_t *ret_bytes);

/* A value whose flag is false is 0, and not known. */
struct nvml_use {
    bool has_percent; /* NVML has none of a MIG instance, nor of a GPU that is divided into some */
    bool has_memory;
    uint32_t percent;      /* of the newest sample period, a sixth of a second to a second: the time
                              in which a kernel ran, of whatever program */
    uint64_t memory_bytes; /* allocated by whatever program, and what the driver reserves */
};

/* Whether NVML can be asked at all; false: ret_reason says why not. */
bool nvml_is_there(char ret_reason[256]);
/* Whether NVML has a GPU, or part of one, of this name now. */
bool nvml_has(const char *name);
/* The use of the GPU, or part of one, with this name ("GPU-<uuid>", "MIG-<uuid>"). What NVML does
 * not say, of this name or at all, is not known. */
void nvml_use_of(const char *name, struct nvml_use *ret_use);

#endif
