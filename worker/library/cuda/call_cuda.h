/* SPDX-License-Identifier: Apache-2.0
 * What surrounds each call to CUDA: the device that is current for it, and the message of its
 * failure. */
#ifndef CADRE_WORKER_CUDA_CALL_CUDA_H
#define CADRE_WORKER_CUDA_CALL_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/base/error.h"

/* "GPU 0: <what, by format>: cudaErrorMemoryAllocation: out of memory"; an error that a kernel left
 * behind is named as such, because the call did not cause it. Returns the code for `result`, which
 * is none of success and cudaErrorNotReady. The calling thread's last error of CUDA is cleared when
 * it is this one: it was reported, and is none of the program's own. */
cadre_status cuda_fail(struct cadre_error *error, cudaError_t result, uint32_t device,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same clearing alone, of a failure that is not reported; and of cudaErrorNotReady. */
void cuda_forget(cudaError_t result);

/* The thread's state before cuda_enter. */
struct cuda_scope {
    int before;
    bool changed; /* the device, and it is to be put back */
    bool relaxed; /* the mode is to be put back */
    enum cudaStreamCaptureMode mode;
};

/* Makes `device` current; cuda_leave restores the state before. A thread without a context stays
 * with `device`: its number is 0 only because all threads begin so, and restoring that would make a
 * context on GPU 0. Until cuda_leave no call invalidates a graph that any thread captures. */
cadre_status cuda_enter(uint32_t device, struct cuda_scope *ret_scope, struct cadre_error *error);
/* Restores the thread's state. */
void cuda_leave(const struct cuda_scope *scope);

#endif
