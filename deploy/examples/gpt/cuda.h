/* SPDX-License-Identifier: Apache-2.0
 * What the files of the operations on a GPU have in common: the stream that all of them enqueue on,
 * and how a kernel is launched on it. C++, for nvcc. */
#ifndef GPT_CUDA_H
#define GPT_CUDA_H

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "compute.h"

enum { WARP = 32, THREADS = 256, WARPS = THREADS / WARP };
static const int64_t BLOCKS_MAX = 0x7fffffff;

struct cuda {
    struct compute compute; /* the first member: what all are given */
    int device;
    cudaStream_t stream;
    cublasHandle_t products;
    cublasComputeType_t precision;
};

/* Keeps the first failure; `what` was being done. */
void cuda_failed(struct cuda *cuda, const char *what, const char *why);

static inline void cuda_check(struct cuda *cuda, const char *what, cudaError_t status)
{
    if (status != cudaSuccess) {
        cuda_failed(cuda, what, cudaGetErrorString(status));
    }
}

static inline int64_t blocks_for(int64_t count, int64_t per_block)
{
    return (count + per_block - 1) / per_block;
}

/* Kernels are called with their own arguments, in `blocks` blocks of THREADS threads. */
template <typename... Parameters, typename... Arguments>
void cuda_launch(struct compute *compute, const char *what, int64_t blocks,
    void (*kernel)(Parameters...), Arguments... arguments)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    if (compute->status != CADRE_OK || blocks == 0) {
        return;
    }
    if (blocks > BLOCKS_MAX) {
        cuda_failed(cuda, what, "it is too large for one launch");
        return;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(THREADS);
    config.stream = cuda->stream;
    cuda_check(
        cuda, what, cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

/* Memory of the GPU from here to cuda_room_end, in the order of the stream; NULL after a failure.
 */
float *cuda_room(struct compute *compute, const char *what, int64_t count);
void cuda_room_end(struct compute *compute, float *room);

/* Those that work on rows (rows_cuda.cu): see struct operations. */
void cuda_norm(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, float *out, float *moments);
void cuda_norm_back(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, const float *moments, const float *out_errors, float *in_errors,
    float *slopes);
void cuda_softmax(
    struct compute *compute, int64_t matrices, int64_t length, float scale, float *scores);
void cuda_softmax_back(struct compute *compute, int64_t matrices, int64_t length, float scale,
    const float *odds, float *errors);
void cuda_loss(struct compute *compute, const struct windows *windows, float scale, float *scores,
    float *losses, float *total);

#endif
