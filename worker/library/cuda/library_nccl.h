/* SPDX-License-Identifier: Apache-2.0
 * NCCL's library: opened at its first use, never linked, so that a plugin without it still
 * loads. */
#ifndef CADRE_WORKER_CUDA_LIBRARY_NCCL_H
#define CADRE_WORKER_CUDA_LIBRARY_NCCL_H

#include <nccl.h>

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
