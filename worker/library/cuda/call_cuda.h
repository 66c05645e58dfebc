/* SPDX-License-Identifier: Apache-2.0
 * What surrounds each call to CUDA: the device that is current for it, and what its failure is
 * called. */
#ifndef CADRE_WORKER_CUDA_CALL_CUDA_H
#define CADRE_WORKER_CUDA_CALL_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/base/error.h"

/* "GPU 0: <what, by format>: cudaErrorMemoryAllocation: out of memory"; of an error that a kernel
 * left behind it says that, since what was called is not to blame. Returns the code that stands for
 * `result`, which is none of success and cudaErrorNotReady. The calling thread's last error of CUDA
 * is cleared when it is this one: it was told, and is none of the program's own. */
cadre_status cuda_fail(struct cadre_error *error, cudaError_t result, uint32_t device,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same clearing alone, of a failure that is not told; and of cudaErrorNotReady. */
void cuda_forget(cudaError_t result);

/* What the thread had before cuda_enter. */
struct cuda_scope {
    int before;
    bool changed; /* the device, and it is to be put back */
    bool relaxed; /* the mode is to be put back */
    enum cudaStreamCaptureMode mode;
};

/* Makes `device` current; cuda_leave puts back what was. A thread without a context stays with
 * `device`: its number is 0 only because all threads begin so, and putting that back would make a
 * context on GPU 0. Until cuda_leave no call invalidates a graph that any thread captures. */
cadre_status cuda_enter(uint32_t device, struct cuda_scope *ret_scope, struct cadre_error *error);
void cuda_leave(const struct cuda_scope *scope);

#endif
