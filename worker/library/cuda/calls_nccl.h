/* SPDX-License-Identifier: Apache-2.0
 * One rank of a communicator, the messages of its failures, and the collectives on it. */
#ifndef CADRE_WORKER_CUDA_CALLS_NCCL_H
#define CADRE_WORKER_CUDA_CALLS_NCCL_H

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/library/device/device_ops.h"

struct device_comm {
    ncclComm_t nccl;
    uint32_t rank;
    uint32_t world;
    uint32_t device;
    struct cadre_error failure; /* how it failed, for ever; code CADRE_OK: it did not */
};

/* CADRE_OK, CADRE_PENDING, or "NCCL, rank 1 of 2 on GPU 0: <what>: <text>: <last error>". */
cadre_status nccl_status(const struct device_comm *comm, ncclResult_t result, const char *what,
    struct cadre_error *error);

/* The same, and keeps a failure as the communicator's own. */
cadre_status nccl_status_kept(
    struct device_comm *comm, ncclResult_t result, const char *what, struct cadre_error *error);

/* device_comm_ops.takes. */
bool calls_take(cadre_dtype dtype);

/* device_comm_ops.all_reduce. */
cadre_status calls_all_reduce(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error);
/* device_comm_ops.reduce_scatter. */
cadre_status calls_reduce_scatter(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector *part, void *stream, struct cadre_error *error);
/* device_comm_ops.all_gather. */
cadre_status calls_all_gather(struct device_comm *comm, const void *from, size_t bytes, void *to,
    void *stream, struct cadre_error *error);
/* device_comm_ops.broadcast. */
cadre_status calls_broadcast(struct device_comm *comm, uint32_t root,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error);

/* --- NCCL's library: opened at its first use, never linked, so that a plugin without it still
 * loads. --- */

#define NCCL_OLDEST NCCL_VERSION(2, 18, 0) /* non-blocking groups that can be aborted */

#define NCCL_EACH_FUNCTION(DO)                                                                     \
    DO(ncclGetVersion)                                                                             \
    DO(ncclGetUniqueId)                                                                            \
    DO(ncclGetErrorString)                                                                         \
    DO(ncclGetLastError)                                                                           \
    DO(ncclCommInitRankConfig)                                                                     \
    DO(ncclCommGetAsyncError)                                                                      \
    DO(ncclCommFinalize)                                                                           \
    DO(ncclCommDestroy)                                                                            \
    DO(ncclCommAbort)                                                                              \
    DO(ncclGroupStart)                                                                             \
    DO(ncclGroupEnd)                                                                               \
    DO(ncclAllReduce)                                                                              \
    DO(ncclReduceScatter)                                                                          \
    DO(ncclAllGather)                                                                              \
    DO(ncclBroadcast)

struct nccl_library {
#define NCCL_POINTER(name) __typeof__(name) *name;
    NCCL_EACH_FUNCTION(NCCL_POINTER)
#undef NCCL_POINTER
    int version;    /* 0: there is none */
    char from[192]; /* its file; or why there is none */
};

/* CADRE_NCCL names the file; else libnccl.so.2 as the dynamic linker finds it, in the toolkit's
 * folders, beside the plugin. The same for the rest of the process. Any thread. */
const struct nccl_library *nccl_library(void);

#endif
