/* SPDX-License-Identifier: Apache-2.0 */
#include "step_kernels.h"

#include <atomic>

#include <cuda_runtime.h>

namespace
{

std::atomic<bool> wild;

__global__ void add_kernel(float *to, const float *from, float factor, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] += factor * from[i];
    }
}

__global__ void sum_kernel(float *to, const int64_t *from, int64_t rows, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t row = 0; i < count && row < rows; row++) {
        to[i] += static_cast<float>(from[row] * (i + 1));
    }
}

__global__ void product_kernel(
    float *to, const float *left, const float *right, step_product sizes, bool turned)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < sizes.rows * sizes.columns) {
        int64_t row = i / sizes.columns;
        int64_t column = i % sizes.columns;
        float sum = 0;
        for (int64_t k = 0; k < sizes.inner; k++) {
            float a = turned ? left[k * sizes.rows + row] : left[row * sizes.inner + k];
            sum += a * right[k * sizes.columns + column];
        }
        to[i] = sum;
    }
}

cudaLaunchConfig_t config_of(void *stream, int64_t count)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((count + 63) / 64));
    config.blockDim = dim3(64);
    config.stream = static_cast<cudaStream_t>(stream);
    return config;
}

} /* namespace */

void step_kernel_wild(void)
{
    wild = true;
}

int step_kernel_add(void *stream, float *to, const float *from, float factor, int64_t count)
{
    if (stream == nullptr) {
        for (int64_t i = 0; i < count; i++) {
            to[i] += factor * from[i];
        }
        return 0;
    }
    if (wild.exchange(false)) {
        to = reinterpret_cast<float *>(uintptr_t{1} << 44);
    }
    cudaLaunchConfig_t config = config_of(stream, count);
    return cudaLaunchKernelEx(&config, add_kernel, to, from, factor, count);
}

int step_kernel_sum(void *stream, float *to, const int64_t *from, int64_t rows, int64_t count)
{
    if (stream == nullptr) {
        for (int64_t i = 0; i < count * rows; i++) {
            to[i / rows] += static_cast<float>(from[i % rows] * (i / rows + 1));
        }
        return 0;
    }
    cudaLaunchConfig_t config = config_of(stream, count);
    return cudaLaunchKernelEx(&config, sum_kernel, to, from, rows, count);
}

int step_kernel_product(void *stream, float *to, const float *left, const float *right,
    struct step_product sizes, bool turned)
{
    cudaLaunchConfig_t config = config_of(stream, sizes.rows * sizes.columns);
    return cudaLaunchKernelEx(&config, product_kernel, to, left, right, sizes, turned);
}
