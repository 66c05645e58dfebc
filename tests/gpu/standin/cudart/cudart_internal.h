/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: what the files of libcudart-standin share. One mutex guards all of it;
 * functions that end in _locked are called with it held. */
#ifndef CADRE_TESTS_GPU_STANDIN_CUDART_INTERNAL_H
#define CADRE_TESTS_GPU_STANDIN_CUDART_INTERNAL_H

#include <pthread.h>

#include "tests/gpu/standin/standin.h"

#define STANDIN_DEVICES_MAX 16

/* One block of a device's memory: the bytes at `offset` of its window. */
struct standin_block {
    size_t offset;
    size_t bytes;
};

struct CUmemPoolHandle_st {
    int device;
    uint64_t threshold;
};

struct standin_device {
    int number;           /* as the machine counts them; CUDA_VISIBLE_DEVICES hides and orders */
    int fd;               /* -1: not in use yet */
    char *_Atomic window; /* set last, under the lock; read without it */
    char *shadow;
    size_t bytes; /* of the window; a little more than `capacity`, for the gaps between blocks */
    size_t capacity;
    size_t used;
    size_t next;                  /* where the search for the next block begins */
    struct standin_block *blocks; /* in order */
    size_t block_count;
    size_t block_limit;
    unsigned int opened; /* streams that run kernels */
    cudaError_t error;   /* stays */
    bool held;
    struct CUstream_st *streams;
    struct CUstream_st *legacy;
    struct CUmemPoolHandle_st pool;
};

struct standin_operation {
    struct standin_operation *next;
    cudaError_t (*run)(void *user);
    void (*drop)(void *user);
    void *user;
    bool always; /* done after an error too */
};

struct CUstream_st {
    struct standin_device *device;
    unsigned int flags;
    int priority;
    unsigned int refs;
    pthread_cond_t work;
    pthread_cond_t progress;
    struct standin_operation *first;
    struct standin_operation **last;
    uint64_t posted;
    uint64_t done;
    uint64_t lost; /* to here it came when the device was healed */
    bool held;
    bool captured;
    bool closing;
    bool opened; /* counts in device->opened */
    struct CUstream_st *next;
};

extern pthread_mutex_t standin_mutex;

/* --- device.c --- */

int standin_device_count(void);
/* NULL: there is no such device. */
struct standin_device *standin_device_at(int device);
int standin_device_index(const struct standin_device *device);
struct standin_device *standin_device_current(void);
cudaError_t standin_remember(cudaError_t error); /* as the thread's last error; returns it */
/* The fault that was met, or the error that stays with the device, or cudaSuccess. */
cudaError_t standin_begin(int fault, const struct standin_device *device);

/* --- memory.c --- */

cudaError_t standin_memory_open_locked(struct standin_device *device);
cudaError_t standin_memory_get_locked(struct standin_device *device, size_t bytes, void **ret);
/* False: it is no block's beginning. */
bool standin_memory_give_locked(struct standin_device *device, void *memory);
/* The device whose window `pointer` is in; NULL: none. */
struct standin_device *standin_memory_of(const void *pointer);
bool standin_memory_holds_locked(
    const struct standin_device *device, const void *pointer, size_t bytes);
/* Kernels may use the window, until as many calls of window_close as of window_open. */
void standin_window_open_locked(struct CUstream_st *stream);
void standin_window_close_locked(struct CUstream_st *stream);
/* Whether all of it is page-locked. */
bool standin_is_pinned(const void *pointer, size_t bytes);

/* --- stream.c --- */

/* NULL becomes the current device's default stream. NULL: no memory. */
struct CUstream_st *standin_stream(cudaStream_t stream);
/* `run` on the stream's thread in its order, after an error of the device too where `always`; then
 * `drop` (may be NULL), when this fails too. */
cudaError_t standin_post(struct CUstream_st *stream, bool always, cudaError_t (*run)(void *user),
    void (*drop)(void *user), void *user);
/* The same; *ret_count: the stream's count when it will be done. */
cudaError_t standin_post_counted(struct CUstream_st *stream, bool always,
    cudaError_t (*run)(void *user), void (*drop)(void *user), void *user, uint64_t *ret_count);
cudaError_t standin_stream_finish(struct CUstream_st *stream);
cudaError_t standin_device_finish(struct standin_device *device);
struct CUstream_st *standin_stream_running(void); /* of the calling thread */
/* Releases a reference: the stream's thread, its owner and events hold one each. */
void standin_stream_drop_locked(struct CUstream_st *stream);
/* `stream` waits until `count` operations of `on` are done; no error of another device comes. */
cudaError_t standin_post_wait_locked(
    struct CUstream_st *stream, struct CUstream_st *on, uint64_t count);

/* --- grid.c --- */

#define STANDIN_THREADS_MAX 1024 /* of a block */

/* On the calling thread, a stream's: `run` once for each thread of each block. */
cudaError_t standin_grid_run(dim3 grid, dim3 block, void (*run)(void *packed), void *packed);
void standin_runner_end(void); /* what the calling thread keeps for kernels */

#endif
