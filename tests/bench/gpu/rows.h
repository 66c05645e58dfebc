/* SPDX-License-Identifier: Apache-2.0
 * Rows of figures: each is measured in blocks that take turns with those of all others, so that
 * what disturbs one disturbs all. */
#ifndef CADRE_TESTS_BENCH_GPU_ROWS_H
#define CADRE_TESTS_BENCH_GPU_ROWS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "cadre/cadre.h"

#define BENCH_BLOCKS   9
#define BENCH_ROWS_MAX 32

/* What a row does for a while; returns one figure. */
typedef double (*bench_block)(void *user);

/* `name` is static. */
void bench_add(const char *name, bench_block block, void *user);

/* Measures all that were added and prints "name=median" of each. */
void bench_measure(void);

/* Ends the program with a message when a call of CUDA failed. */
void bench_cuda(cudaError_t result, const char *what);

double bench_now_s(void);

/* The strategy of GPU:0 that all rows use, and the parts of the bench. */
void bench_steps(cadre_strategy *strategy);
void bench_input(cadre_strategy *strategy);
void bench_carry(cadre_strategy *strategy);

/* One pass over `count` floats on the device, as part of a step: data[i] = data[i] * a + b. */
cudaError_t bench_pass(float *data, size_t count, cudaStream_t stream);

#endif
