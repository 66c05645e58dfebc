/* SPDX-License-Identifier: Apache-2.0
 * Scaling and arithmetic, launched by work_cuda.c. Both are bound by memory, not by sums: a thread
 * has four loads of 16 bytes under way (and as many of the second operand), and blocks take tiles
 * by turns.
 *
 *    data      ├─head─┼──────── vectors of 16 bytes ────────┼─tail─┤
 *               by elements    tile 0 │ tile 1 │ ...           by elements */
#include "worker/library/cuda/kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace
{

constexpr unsigned threads = 256;
constexpr unsigned each = 4; /* vectors of a thread in a tile */
constexpr unsigned blocks_max = 2048;
constexpr unsigned vector_bytes = 16;

template <typename Number> struct alignas(vector_bytes) Vector {
    static constexpr unsigned size = vector_bytes / sizeof(Number);
    Number at[size];
};

/* The type that elements are computed in: their own, half-width floats float32, and narrow integers
 * uint32_t. Results are rounded to nearest even. */
template <typename Number> struct Wide {
    static __device__ Number widen(Number value)
    {
        return value;
    }
    static __device__ Number narrow(Number value)
    {
        return value;
    }
};
template <> struct Wide<__half> {
    static __device__ float widen(__half value)
    {
        return __half2float(value);
    }
    static __device__ __half narrow(float value)
    {
        return __float2half_rn(value);
    }
};
template <> struct Wide<__nv_bfloat16> {
    static __device__ float widen(__nv_bfloat16 value)
    {
        return __bfloat162float(value);
    }
    static __device__ __nv_bfloat16 narrow(float value)
    {
        return __float2bfloat16_rn(value);
    }
};
template <typename Number> struct Wrapping {
    static __device__ uint32_t widen(Number value)
    {
        return value;
    }
    static __device__ Number narrow(uint32_t value)
    {
        return static_cast<Number>(value);
    }
};
template <> struct Wide<uint8_t> : Wrapping<uint8_t> {
};
template <> struct Wide<uint16_t> : Wrapping<uint16_t> {
};

__device__ double rounded(double value, double)
{
    return value;
}
__device__ float rounded(double value, float)
{
    return static_cast<float>(value);
}
__device__ __half rounded(double value, __half)
{
    return __double2half(value);
}
__device__ __nv_bfloat16 rounded(double value, __nv_bfloat16)
{
    return __double2bfloat16(value);
}

template <typename Number> struct Scale {
    double factor;
    __device__ void operator()(Number &to) const
    {
        to = rounded(static_cast<double>(Wide<Number>::widen(to)) * factor, to);
    }
};

template <typename Number> __device__ Number combined(kernel_how how, Number a, Number b)
{
    auto x = Wide<Number>::widen(a);
    auto y = Wide<Number>::widen(b);
    /* `how` is the same for all: no branch diverges. */
    return Wide<Number>::narrow(how == KERNEL_ADD ? x + y : how == KERNEL_SUB ? x - y : x * y);
}

/* The elements before the vectors and behind them: [0, head) and [tail, count). One block. */
template <typename Each> __device__ void edges(size_t head, size_t tail, size_t count, Each one)
{
    if (blockIdx.x != 0) {
        return;
    }
    for (size_t i = threadIdx.x; i < head; i += threads) {
        one(i);
    }
    for (size_t i = tail + threadIdx.x; i < count; i += threads) {
        one(i);
    }
}

template <typename Number>
__global__ void __launch_bounds__(threads)
    scale_kernel(Number *data, size_t head, size_t vectors, size_t count, double factor)
{
    Scale<Number> scale{factor};
    auto *body = reinterpret_cast<Vector<Number> *>(data + head);
    for (size_t tile = blockIdx.x; tile * (threads * each) < vectors; tile += gridDim.x) {
        Vector<Number> values[each];
        size_t first = tile * (threads * each) + threadIdx.x;
        for (unsigned k = 0; k < each; k++) {
            if (first + k * threads < vectors) {
                values[k] = body[first + k * threads];
            }
        }
        for (unsigned k = 0; k < each; k++) {
            if (first + k * threads < vectors) {
                for (unsigned i = 0; i < Vector<Number>::size; i++) {
                    scale(values[k].at[i]);
                }
                body[first + k * threads] = values[k];
            }
        }
    }
    edges(head, head + vectors * Vector<Number>::size, count, [=](size_t i) { scale(data[i]); });
}

template <typename Number>
__global__ void __launch_bounds__(threads) arithmetic_kernel(
    kernel_how how, Number *to, const Number *from, size_t head, size_t vectors, size_t count)
{
    auto *body = reinterpret_cast<Vector<Number> *>(to + head);
    auto *other = reinterpret_cast<const Vector<Number> *>(from + head);
    for (size_t tile = blockIdx.x; tile * (threads * each) < vectors; tile += gridDim.x) {
        Vector<Number> values[each];
        Vector<Number> others[each];
        size_t first = tile * (threads * each) + threadIdx.x;
        for (unsigned k = 0; k < each; k++) {
            if (first + k * threads < vectors) {
                values[k] = body[first + k * threads];
                others[k] = other[first + k * threads];
            }
        }
        for (unsigned k = 0; k < each; k++) {
            if (first + k * threads < vectors) {
                for (unsigned i = 0; i < Vector<Number>::size; i++) {
                    values[k].at[i] = combined(how, values[k].at[i], others[k].at[i]);
                }
                body[first + k * threads] = values[k];
            }
        }
    }
    edges(head, head + vectors * Vector<Number>::size, count,
        [=](size_t i) { to[i] = combined(how, to[i], from[i]); });
}

/* Where operands are aligned differently there are no vectors, and all blocks take elements. */
template <typename Number>
__global__ void __launch_bounds__(threads)
    arithmetic_apart_kernel(kernel_how how, Number *to, const Number *from, size_t count)
{
    size_t stride = static_cast<size_t>(gridDim.x) * threads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x; i < count;
         i += stride) {
        to[i] = combined(how, to[i], from[i]);
    }
}

unsigned blocks_for(size_t items, size_t items_each)
{
    size_t blocks = (items + items_each - 1) / items_each;
    return static_cast<unsigned>(blocks < 1 ? 1 : (blocks < blocks_max ? blocks : blocks_max));
}

cudaLaunchConfig_t launch(unsigned blocks, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    return config;
}

/* Elements until the first address that is aligned to a vector; no more than there are. */
template <typename Number> size_t head_of(const void *data, size_t count)
{
    size_t off = reinterpret_cast<uintptr_t>(data) % vector_bytes;
    size_t head = off == 0 ? 0 : (vector_bytes - off) / sizeof(Number);
    return head < count ? head : count;
}

template <typename Number>
cudaError_t scale(void *data, size_t count, double factor, cudaStream_t stream)
{
    size_t head = head_of<Number>(data, count);
    size_t vectors = (count - head) / Vector<Number>::size;
    cudaLaunchConfig_t config = launch(blocks_for(vectors, threads * each), stream);
    return cudaLaunchKernelEx(
        &config, scale_kernel<Number>, static_cast<Number *>(data), head, vectors, count, factor);
}

template <typename Number>
cudaError_t arithmetic(
    kernel_how how, void *to, const void *from, size_t count, cudaStream_t stream)
{
    auto *numbers = static_cast<Number *>(to);
    auto *others = static_cast<const Number *>(from);
    if ((reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % vector_bytes != 0) {
        cudaLaunchConfig_t config = launch(blocks_for(count, threads * each), stream);
        return cudaLaunchKernelEx(
            &config, arithmetic_apart_kernel<Number>, how, numbers, others, count);
    }
    size_t head = head_of<Number>(to, count);
    size_t vectors = (count - head) / Vector<Number>::size;
    cudaLaunchConfig_t config = launch(blocks_for(vectors, threads * each), stream);
    return cudaLaunchKernelEx(
        &config, arithmetic_kernel<Number>, how, numbers, others, head, vectors, count);
}

} /* namespace */

cudaError_t kernel_scale(
    kernel_number number, void *data, size_t count, double factor, cudaStream_t stream)
{
    switch (number) {
    case KERNEL_F64:
        return scale<double>(data, count, factor, stream);
    case KERNEL_F32:
        return scale<float>(data, count, factor, stream);
    case KERNEL_F16:
        return scale<__half>(data, count, factor, stream);
    case KERNEL_BF16:
        return scale<__nv_bfloat16>(data, count, factor, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t kernel_arithmetic(kernel_how how, kernel_number number, void *to, const void *from,
    size_t count, cudaStream_t stream)
{
    switch (number) {
    case KERNEL_F64:
        return arithmetic<double>(how, to, from, count, stream);
    case KERNEL_F32:
        return arithmetic<float>(how, to, from, count, stream);
    case KERNEL_F16:
        return arithmetic<__half>(how, to, from, count, stream);
    case KERNEL_BF16:
        return arithmetic<__nv_bfloat16>(how, to, from, count, stream);
    case KERNEL_WORD8:
        return arithmetic<uint8_t>(how, to, from, count, stream);
    case KERNEL_WORD16:
        return arithmetic<uint16_t>(how, to, from, count, stream);
    case KERNEL_WORD32:
        return arithmetic<uint32_t>(how, to, from, count, stream);
    case KERNEL_WORD64:
        return arithmetic<uint64_t>(how, to, from, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
