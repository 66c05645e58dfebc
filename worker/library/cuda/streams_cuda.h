/* SPDX-License-Identifier: Apache-2.0
 * Streams are CUDA's own, because programs and NCCL take them as they are. The device of each is
 * kept here: CUDA returns it only since 12.8. */
#ifndef CADRE_WORKER_CUDA_STREAMS_CUDA_H
#define CADRE_WORKER_CUDA_STREAMS_CUDA_H

#include <stdbool.h>

#include "worker/library/cuda/call_cuda.h"

/* device_ops.stream_open. */
cadre_status streams_open(
    uint32_t device, bool urgent, void **ret_stream, struct cadre_error *error);
/* device_ops.stream_close. */
void streams_close(void *stream);
/* device_ops.stream_test. */
cadre_status streams_test(void *stream, struct cadre_error *error);

/* The device of a stream. INVALID_ARGUMENT: streams_open did not make it, or it is closed. */
cadre_status streams_device(const void *stream, uint32_t *ret_device, struct cadre_error *error);

/* Any device that has a stream; false: none has. */
bool streams_any_device(uint32_t *ret_device);

/* Whether what is enqueued on the stream would not be done but become part of a graph, to be done
 * with each of its launches and without the other replicas. Its device is current. */
bool streams_captured(cudaStream_t stream);

/* The device of a stream, which becomes current: cuda_leave(scope) afterwards. FAILED_PRECONDITION
 * when streams_captured. */
cadre_status streams_enter(const void *stream, uint32_t *ret_device, struct cuda_scope *ret_scope,
    struct cadre_error *error);

#endif
