/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the part of the CUDA runtime's C interface that this project uses.
 * ../README.md has what each function does here and what it does not. */
#ifndef CADRE_STANDIN_CUDA_RUNTIME_API_H
#define CADRE_STANDIN_CUDA_RUNTIME_API_H

#include "standin_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Errors */
STANDIN_API cudaError_t cudaGetLastError(void);
STANDIN_API cudaError_t cudaPeekAtLastError(void);
STANDIN_API const char *cudaGetErrorName(cudaError_t error);
STANDIN_API const char *cudaGetErrorString(cudaError_t error);

/* Devices */
STANDIN_API cudaError_t cudaDriverGetVersion(int *version);
STANDIN_API cudaError_t cudaRuntimeGetVersion(int *version);
STANDIN_API cudaError_t cudaGetDeviceCount(int *count);
STANDIN_API cudaError_t cudaGetDevice(int *device);
STANDIN_API cudaError_t cudaSetDevice(int device);
STANDIN_API cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags);
STANDIN_API cudaError_t cudaSetDeviceFlags(unsigned int flags);
STANDIN_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
STANDIN_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
STANDIN_API cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device);
STANDIN_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId);
STANDIN_API cudaError_t cudaDeviceSynchronize(void);
STANDIN_API cudaError_t cudaDeviceReset(void);
STANDIN_API cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority);
STANDIN_API cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice);
STANDIN_API cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags);
STANDIN_API cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

/* Memory */
STANDIN_API cudaError_t cudaMalloc(void **devPtr, size_t size);
STANDIN_API cudaError_t cudaFree(void *devPtr);
STANDIN_API cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t stream);
STANDIN_API cudaError_t cudaMallocFromPoolAsync(
    void **devPtr, size_t size, cudaMemPool_t memPool, cudaStream_t stream);
STANDIN_API cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t stream);
STANDIN_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device);
STANDIN_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device);
STANDIN_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool);
STANDIN_API cudaError_t cudaMemPoolCreate(
    cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps);
STANDIN_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool);
STANDIN_API cudaError_t cudaMemPoolSetAttribute(
    cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value);
STANDIN_API cudaError_t cudaMemPoolGetAttribute(
    cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value);
STANDIN_API cudaError_t cudaMemPoolSetAccess(
    cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count);
STANDIN_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep);
STANDIN_API cudaError_t cudaMallocHost(void **ptr, size_t size);
STANDIN_API cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
STANDIN_API cudaError_t cudaFreeHost(void *ptr);
STANDIN_API cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
STANDIN_API cudaError_t cudaHostUnregister(void *ptr);
STANDIN_API cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags);
STANDIN_API cudaError_t cudaPointerGetAttributes(
    struct cudaPointerAttributes *attributes, const void *ptr);

/* Copies */
STANDIN_API cudaError_t cudaMemcpy(
    void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
STANDIN_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
    enum cudaMemcpyKind kind, cudaStream_t stream STANDIN_DEFAULT(0));
STANDIN_API cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src,
    int srcDevice, size_t count, cudaStream_t stream STANDIN_DEFAULT(0));
STANDIN_API cudaError_t cudaMemset(void *devPtr, int value, size_t count);
STANDIN_API cudaError_t cudaMemsetAsync(
    void *devPtr, int value, size_t count, cudaStream_t stream STANDIN_DEFAULT(0));

/* Streams and events */
STANDIN_API cudaError_t cudaStreamCreate(cudaStream_t *pStream);
STANDIN_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags);
STANDIN_API cudaError_t cudaStreamCreateWithPriority(
    cudaStream_t *pStream, unsigned int flags, int priority);
STANDIN_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
STANDIN_API cudaError_t cudaStreamQuery(cudaStream_t stream);
STANDIN_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
STANDIN_API cudaError_t cudaStreamWaitEvent(
    cudaStream_t stream, cudaEvent_t event, unsigned int flags STANDIN_DEFAULT(0));
STANDIN_API cudaError_t cudaStreamIsCapturing(
    cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus);
STANDIN_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
STANDIN_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
STANDIN_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
STANDIN_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
STANDIN_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);
STANDIN_API cudaError_t cudaEventCreate(cudaEvent_t *event);
STANDIN_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
STANDIN_API cudaError_t cudaEventDestroy(cudaEvent_t event);
STANDIN_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream STANDIN_DEFAULT(0));
STANDIN_API cudaError_t cudaEventQuery(cudaEvent_t event);
STANDIN_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
STANDIN_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* Kernels: see cuda_runtime.h. The results of these are fixed. */
STANDIN_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func);
STANDIN_API cudaError_t cudaFuncSetAttribute(
    const void *func, enum cudaFuncAttribute attr, int value);
STANDIN_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize);

/* What cudaLaunchKernelEx becomes: `run` is called once for each thread of the grid, `drop` once
 * when the launch is over, or was refused. */
STANDIN_API cudaError_t standinLaunch(const cudaLaunchConfig_t *config, void (*run)(void *packed),
    void (*drop)(void *packed), void *packed);

#ifdef __cplusplus
}
#endif
#endif
