/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the functions of the stand-in for tests, besides CUDA's interface:
 * faults, streams that wait, counts. All of it works on this process only; README.md has the same
 * as environment variables, for programs under test. Any thread. */
#ifndef CADRE_TESTS_GPU_STANDIN_H
#define CADRE_TESTS_GPU_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The nth call of `name` from now on (1: the next) fails with `error`, once. Names are those of the
 * CUDA, NCCL and cuBLAS functions, and "kernel", "copy" and "fill": work on a device, which leaves
 * its error with the device as CUDA does. NULL-terminated text that outlives the process's tests.
 */
STANDIN_API void standin_fail(const char *name, uint64_t nth, int error);
/* From the nth on all calls fail. */
STANDIN_API void standin_fail_from(const char *name, uint64_t nth, int error);
/* No more of these faults, and no error that stays with a device. */
STANDIN_API void standin_heal(void);
/* Calls of `name` so far. */
STANDIN_API uint64_t standin_calls(const char *name);

/* The stream begins nothing more until it is released; what it is doing is ended first. */
STANDIN_API void standin_hold(cudaStream_t stream);
STANDIN_API void standin_release(cudaStream_t stream);
/* The same of all streams of a device, those of the future too. */
STANDIN_API void standin_device_hold(int device);
STANDIN_API void standin_device_release(int device);

/* Marks the stream as being captured into a graph; no other part of that is imitated, but that the
 * calling thread's mode of capture is kept. */
STANDIN_API void standin_capture(cudaStream_t stream, bool captured);

/* Memory of a device that was not freed: bytes as requested, and blocks. */
STANDIN_API size_t standin_memory_used(int device);
STANDIN_API size_t standin_memory_blocks(int device);
/* Page-locked blocks of this process. */
STANDIN_API size_t standin_pinned_blocks(void);

/* --- for the other stand-ins --- */

/* Where a call of a function that can fail is counted; made by STANDIN_CALL. */
struct standin_site {
    const char *name;
    uint64_t calls;
    bool listed;
    struct standin_site *next;
};
/* Counts a call; 0, or the error that it shall have. */
STANDIN_API int standin_count_call(struct standin_site *site);

/* `run` is called on the stream's thread in its order, unless an earlier error stays with the
 * device; what it returns stays with the device. `drop` is called afterwards in any case, and when
 * this fails too. While `run` waits for something it calls standin_idle first. */
STANDIN_API cudaError_t standin_enqueue(
    cudaStream_t stream, cudaError_t (*run)(void *user), void (*drop)(void *user), void *user);
STANDIN_API void standin_idle(void);

/* The `bytes` at a device's address, as the host may reach them; NULL unless they are within one
 * block. An address that is no device's comes back as it is. */
STANDIN_API void *standin_reach(const void *pointer, size_t bytes);

#define STANDIN_CALL(text)                                                                         \
    static struct standin_site standin_here = {(text), 0, false, NULL};                            \
    int standin_fault = standin_count_call(&standin_here)

#ifdef __cplusplus
}
#endif
#endif
