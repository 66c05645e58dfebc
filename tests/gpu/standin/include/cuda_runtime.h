/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the part of CUDA C++ that a .cu file of this project needs to be
 * compiled as C++ for the processor. Kernels are launched by cudaLaunchKernelEx alone; `extern
 * __shared__` (dynamic shared memory), textures, cooperative groups and inline PTX are not
 * there. */
#ifndef CADRE_STANDIN_CUDA_RUNTIME_H
#define CADRE_STANDIN_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__  inline __attribute__((always_inline))

#ifdef __cplusplus
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "standin_device_code.h"
#include "standin_math.h"

template <typename T> static inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    return cudaMalloc(reinterpret_cast<void **>(pointer), size);
}

template <typename T>
static inline cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync(reinterpret_cast<void **>(pointer), size, stream);
}

template <typename T> static inline cudaError_t cudaMallocHost(T **pointer, size_t size)
{
    return cudaMallocHost(reinterpret_cast<void **>(pointer), size);
}

template <typename T>
static inline cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned int flags)
{
    return cudaHostAlloc(reinterpret_cast<void **>(pointer), size, flags);
}

template <typename... Types>
static inline cudaError_t cudaFuncGetAttributes(
    struct cudaFuncAttributes *attributes, void (*kernel)(Types...))
{
    return cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(kernel));
}

template <typename... Types>
static inline cudaError_t cudaFuncSetAttribute(
    void (*kernel)(Types...), enum cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}

template <typename... Types>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, void (*kernel)(Types...), int block_size, size_t dynamic_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void *>(kernel), block_size, dynamic_bytes);
}

/* A kernel with its arguments, as a launch copies them. */
template <typename... Types> struct standin_packed_kernel {
    void (*kernel)(Types...);
    std::tuple<std::decay_t<Types>...> arguments;
};

/* Arguments are converted to the kernel's types, as CUDA's template does. */
template <typename... Types, typename... Given>
static inline cudaError_t cudaLaunchKernelEx(
    const cudaLaunchConfig_t *config, void (*kernel)(Types...), Given &&...given)
{
    using packed_kernel = standin_packed_kernel<Types...>;
    auto *packed = [&](Types... converted) {
        return new packed_kernel{kernel, std::tuple<std::decay_t<Types>...>(converted...)};
    }(std::forward<Given>(given)...);
    return standinLaunch(
        config,
        [](void *launched) {
            auto *self = static_cast<packed_kernel *>(launched);
            std::apply(self->kernel, self->arguments);
        },
        [](void *launched) { delete static_cast<packed_kernel *>(launched); }, packed);
}
#endif
#endif
