/* SPDX-License-Identifier: Apache-2.0 */
#include "learner_kernels.h"

#include <cuda_runtime.h>

namespace
{

__host__ __device__ void count_one(int64_t *hits, int64_t i, const int64_t *ids, int64_t rows)
{
    hits[i] = 0;
    for (int64_t row = 0; row < rows; row++) {
        hits[i] += ids[row] == i;
    }
}

__host__ __device__ void gradient_one(float *gradient, int64_t i, const int64_t *ids, int64_t rows)
{
    gradient[i] = 0;
    for (int64_t row = 0; row < rows; row++) {
        gradient[i] += static_cast<float>(ids[row] * (i + 1));
    }
}

/* Added to `order` for a sample; wraps. */
__host__ __device__ uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ (value >> 27);
}

__host__ __device__ void chain(int64_t *order, const int64_t *hits, int64_t samples)
{
    uint64_t all = 0;
    for (int64_t i = 0; i < samples; i++) {
        all += static_cast<uint64_t>(hits[i]) * mix(static_cast<uint64_t>(i) + 1);
    }
    *order =
        static_cast<int64_t>(static_cast<uint64_t>(*order) * UINT64_C(6364136223846793005) + all);
}

__global__ void count_kernel(int64_t *hits, int64_t samples, const int64_t *ids, int64_t rows)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < samples) {
        count_one(hits, i, ids, rows);
    }
}

__global__ void gradient_kernel(float *gradient, int64_t count, const int64_t *ids, int64_t rows)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        gradient_one(gradient, i, ids, rows);
    }
}

__global__ void apply_kernel(int64_t *count, int64_t *order, const int64_t *hits, int64_t samples)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < samples) {
        count[i] += hits[i];
    }
    if (i == 0) {
        chain(order, hits, samples);
    }
}

__global__ void add_kernel(float *to, const float *from, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] += from[i];
    }
}

cudaLaunchConfig_t config_of(void *stream, int64_t count)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((count + 31) / 32));
    config.blockDim = dim3(32);
    config.stream = static_cast<cudaStream_t>(stream);
    return config;
}

} /* namespace */

int learner_kernel_count(
    void *stream, int64_t *hits, int64_t samples, const int64_t *ids, int64_t rows)
{
    for (int64_t i = 0; stream == nullptr && i < samples; i++) {
        count_one(hits, i, ids, rows);
    }
    cudaLaunchConfig_t config = config_of(stream, samples);
    return stream == nullptr ? 0
                             : cudaLaunchKernelEx(&config, count_kernel, hits, samples, ids, rows);
}

int learner_kernel_gradient(
    void *stream, float *gradient, int64_t count, const int64_t *ids, int64_t rows)
{
    for (int64_t i = 0; stream == nullptr && i < count; i++) {
        gradient_one(gradient, i, ids, rows);
    }
    cudaLaunchConfig_t config = config_of(stream, count);
    return stream == nullptr
               ? 0
               : cudaLaunchKernelEx(&config, gradient_kernel, gradient, count, ids, rows);
}

int learner_kernel_apply(
    void *stream, int64_t *count, int64_t *order, const int64_t *hits, int64_t samples)
{
    if (stream == nullptr) {
        for (int64_t i = 0; i < samples; i++) {
            count[i] += hits[i];
        }
        chain(order, hits, samples);
        return 0;
    }
    cudaLaunchConfig_t config = config_of(stream, samples);
    return cudaLaunchKernelEx(&config, apply_kernel, count, order, hits, samples);
}

int learner_kernel_add(void *stream, float *to, const float *from, int64_t count)
{
    for (int64_t i = 0; stream == nullptr && i < count; i++) {
        to[i] += from[i];
    }
    cudaLaunchConfig_t config = config_of(stream, count);
    return stream == nullptr ? 0 : cudaLaunchKernelEx(&config, add_kernel, to, from, count);
}
