/* SPDX-License-Identifier: Apache-2.0
 * Kernels for the stand-in's own tests. All enqueue on `stream`. */
#ifndef CADRE_TESTS_GPU_STANDIN_KERNELS_H
#define CADRE_TESTS_GPU_STANDIN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] += factor * from[i], with fewer threads than elements. */
cudaError_t launch_add(
    float *to, const float *from, float factor, size_t count, cudaStream_t stream);
/* *sum += all of them: shuffles, shared memory, atomics. */
cudaError_t launch_sum(
    float *sum, const float *from, size_t count, unsigned int threads, cudaStream_t stream);
/* Row k of 32 values: the result in lane i of __shfl_up, down, xor, of lane 5, of the lane in its
 * half (width 16), the ballot of odd lanes. */
cudaError_t launch_shuffles(uint32_t *rows, cudaStream_t stream);
/* Threads of a block pass a value around it `rounds` times; odd ones leave after one round. */
cudaError_t launch_rounds(uint32_t *values, uint32_t rounds, uint32_t threads, cudaStream_t stream);
/* Its index in the grid, by each thread of 2x3x2 blocks of 4x2x2. */
cudaError_t launch_indices(uint32_t *places, cudaStream_t stream);
/* One thread waits for its warp, the others for the block. */
cudaError_t launch_stuck(cudaStream_t stream);
cudaError_t launch_write(uint32_t *at, size_t offset, uint32_t value, cudaStream_t stream);
/* Bits after float -> bf16, float -> half, and back to float. */
void convert_bf16(float value, uint16_t *ret_bits, float *ret_back);
void convert_half(float value, uint16_t *ret_bits, float *ret_back);

#ifdef __cplusplus
}
#endif
#endif
