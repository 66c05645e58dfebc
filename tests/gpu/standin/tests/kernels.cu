/* SPDX-License-Identifier: Apache-2.0
 * See kernels.h. */
#include "tests/gpu/standin/tests/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

static cudaLaunchConfig_t config_of(dim3 grid, dim3 block, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    return config;
}

template <typename T>
__global__ void add_kernel(
    T *__restrict__ to, const T *__restrict__ from, float factor, size_t count)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += step) {
        to[i] += static_cast<T>(factor * from[i]);
    }
}

static __device__ __forceinline__ float sum_of_warp(float value)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, static_cast<unsigned int>(distance));
    }
    return value;
}

__global__ void __launch_bounds__(1024) sum_kernel(float *sum, const float *from, size_t count)
{
    __shared__ float parts[32];
    float value = 0;
    for (size_t i = threadIdx.x + static_cast<size_t>(blockIdx.x) * blockDim.x; i < count;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        value += from[i];
    }
    value = sum_of_warp(value);
    if (threadIdx.x % warpSize == 0) {
        parts[threadIdx.x / warpSize] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < (blockDim.x + 31) / 32 ? parts[threadIdx.x] : 0.0f;
        value = sum_of_warp(value);
        if (threadIdx.x == 0) {
            atomicAdd(sum, value);
        }
    }
}

__global__ void shuffle_kernel(uint32_t *rows)
{
    uint32_t lane = threadIdx.x;
    uint32_t value = lane * 10;
    rows[lane] = __shfl_up_sync(0xffffffffu, value, 3);
    rows[32 + lane] = __shfl_down_sync(0xffffffffu, value, 3);
    rows[64 + lane] = __shfl_xor_sync(0xffffffffu, value, 1);
    rows[96 + lane] = __shfl_sync(0xffffffffu, value, 5);
    rows[128 + lane] = __shfl_sync(0xffffffffu, value, 1, 16);
    rows[160 + lane] = __ballot_sync(0xffffffffu, lane % 2);
    if (lane < 8) { /* a part of the warp synchronizes by itself */
        rows[192 + lane] = __shfl_xor_sync(0xffu, value, 7);
    }
}

__global__ void rounds_kernel(uint32_t *values, uint32_t rounds)
{
    __shared__ uint32_t shown[1024];
    uint32_t value = threadIdx.x;
    for (uint32_t round = 0; round < rounds; round++) {
        shown[threadIdx.x] = value;
        __syncthreads();
        value = shown[(threadIdx.x + 2) % blockDim.x] + 1;
        __syncthreads();
        if (threadIdx.x % 2 == 1) {
            break;
        }
    }
    values[threadIdx.x] = value;
}

__global__ void index_kernel(uint32_t *places)
{
    uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    __syncthreads();
    places[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 100 + thread;
}

__global__ void stuck_kernel()
{
    if (threadIdx.x == 0) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

__global__ void write_kernel(uint32_t *at, size_t offset, uint32_t value)
{
    at[offset] = value;
}

cudaError_t launch_add(
    float *to, const float *from, float factor, size_t count, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(3, 64, stream);
    return cudaLaunchKernelEx(&config, add_kernel<float>, to, from, factor, count);
}

cudaError_t launch_sum(
    float *sum, const float *from, size_t count, unsigned int threads, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(4, threads, stream);
    return cudaLaunchKernelEx(&config, sum_kernel, sum, from, count);
}

cudaError_t launch_shuffles(uint32_t *rows, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(1, 32, stream);
    return cudaLaunchKernelEx(&config, shuffle_kernel, rows);
}

cudaError_t launch_rounds(uint32_t *values, uint32_t rounds, uint32_t threads, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(1, threads, stream);
    return cudaLaunchKernelEx(&config, rounds_kernel, values, rounds);
}

cudaError_t launch_indices(uint32_t *places, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(dim3(2, 3, 2), dim3(4, 2, 2), stream);
    return cudaLaunchKernelEx(&config, index_kernel, places);
}

cudaError_t launch_stuck(cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(1, 64, stream);
    return cudaLaunchKernelEx(&config, stuck_kernel);
}

cudaError_t launch_write(uint32_t *at, size_t offset, uint32_t value, cudaStream_t stream)
{
    cudaLaunchConfig_t config = config_of(1, 1, stream);
    return cudaLaunchKernelEx(&config, write_kernel, at, offset, value);
}

void convert_bf16(float value, uint16_t *ret_bits, float *ret_back)
{
    __nv_bfloat16 narrow = __float2bfloat16(value);
    *ret_bits = __bfloat16_as_ushort(narrow);
    *ret_back = __bfloat162float(narrow);
}

void convert_half(float value, uint16_t *ret_bits, float *ret_back)
{
    __half narrow = __float2half(value);
    *ret_bits = __half_as_ushort(narrow);
    *ret_back = __half2float(narrow);
}
