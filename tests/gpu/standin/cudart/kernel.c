/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: launches of kernels, and a program's queries about them. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdlib.h>

struct launch {
    dim3 grid;
    dim3 block;
    void (*run)(void *packed);
    void (*drop)(void *packed);
    void *packed;
};

static cudaError_t run_kernel(void *user)
{
    const struct launch *launch = user;
    STANDIN_CALL("kernel");
    return standin_fault != 0
               ? (cudaError_t)standin_fault
               : standin_grid_run(launch->grid, launch->block, launch->run, launch->packed);
}

static void drop_launch(void *user)
{
    struct launch *launch = user;
    launch->drop(launch->packed);
    free(launch);
}

static bool fits(const cudaLaunchConfig_t *config)
{
    dim3 grid = config->gridDim;
    dim3 block = config->blockDim;
    return grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0 &&
           grid.x <= 2147483647 && grid.y <= 65535 && grid.z <= 65535 &&
           block.x <= STANDIN_THREADS_MAX && block.y <= STANDIN_THREADS_MAX && block.z <= 64 &&
           (uint64_t)block.x * block.y * block.z <= STANDIN_THREADS_MAX;
}

cudaError_t standinLaunch(const cudaLaunchConfig_t *config, void (*run)(void *packed),
    void (*drop)(void *packed), void *packed)
{
    STANDIN_CALL("cudaLaunchKernelExC");
    struct CUstream_st *on = standin_stream(config->stream);
    cudaError_t error = standin_begin(standin_fault, on != NULL ? on->device : NULL);
    if (error == cudaSuccess && on->device != standin_device_current()) {
        error = cudaErrorInvalidResourceHandle; /* a kernel goes to the thread's current device */
    } else if (error == cudaSuccess && !fits(config)) {
        error = cudaErrorInvalidConfiguration;
    }
    struct launch *launch = error == cudaSuccess ? malloc(sizeof(*launch)) : NULL;
    if (launch == NULL) {
        drop(packed);
        return standin_remember(error != cudaSuccess ? error : cudaErrorMemoryAllocation);
    }
    *launch = (struct launch){.grid = config->gridDim,
        .block = config->blockDim,
        .run = run,
        .drop = drop,
        .packed = packed};
    return standin_remember(standin_post(on, false, run_kernel, drop_launch, launch));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    (void)func;
    *attr = (struct cudaFuncAttributes){.maxThreadsPerBlock = STANDIN_THREADS_MAX,
        .numRegs = 32,
        .ptxVersion = 90,
        .binaryVersion = 90};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    (void)func;
    (void)attr;
    (void)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize)
{
    (void)func;
    (void)dynamicSMemSize;
    *numBlocks = blockSize > 0 && blockSize <= STANDIN_THREADS_MAX ? 2048 / blockSize : 0;
    return cudaSuccess;
}
