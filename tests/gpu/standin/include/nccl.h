/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the part of NCCL 2.28's interface that this project uses. */
#ifndef CADRE_STANDIN_NCCL_H
#define CADRE_STANDIN_NCCL_H

#include <limits.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR        2
#define NCCL_MINOR        28
#define NCCL_PATCH        9
#define NCCL_SUFFIX       ""
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(x, y, z)                                                                      \
    (((x) <= 2 && (y) <= 8) ? (x)*1000 + (y)*100 + (z) : (x)*10000 + (y)*100 + (z))

typedef struct ncclComm *ncclComm_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL

typedef struct ncclConfig {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                                    \
    {                                                                                              \
        sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT,                \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                   \
            NCCL_CONFIG_UNDEF_PTR                                                                  \
    }

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclNumTypes = 12
} ncclDataType_t;

STANDIN_API ncclResult_t ncclMemAlloc(void **ptr, size_t size);
STANDIN_API ncclResult_t ncclMemFree(void *ptr);
STANDIN_API ncclResult_t ncclGetVersion(int *version);
STANDIN_API ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId);
STANDIN_API ncclResult_t ncclCommInitRankConfig(
    ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config);
STANDIN_API ncclResult_t ncclCommInitRank(
    ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);
STANDIN_API ncclResult_t ncclCommFinalize(ncclComm_t comm);
STANDIN_API ncclResult_t ncclCommDestroy(ncclComm_t comm);
STANDIN_API ncclResult_t ncclCommAbort(ncclComm_t comm);
STANDIN_API const char *ncclGetErrorString(ncclResult_t result);
STANDIN_API const char *ncclGetLastError(ncclComm_t comm);
STANDIN_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);
STANDIN_API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
STANDIN_API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
STANDIN_API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);
STANDIN_API ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
    ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
STANDIN_API ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
    ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
STANDIN_API ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
    ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
STANDIN_API ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
    ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
STANDIN_API ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
    ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
STANDIN_API ncclResult_t ncclGroupStart(void);
STANDIN_API ncclResult_t ncclGroupEnd(void);

#ifdef __cplusplus
}
#endif
#endif
