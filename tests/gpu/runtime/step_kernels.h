/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the programs under test; on a replica of the host the same is done at once. Each
 * returns what the program's function is to return. */
#ifndef CADRE_TESTS_GPU_STEP_KERNELS_H
#define CADRE_TESTS_GPU_STEP_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] += factor * from[i]; on a stream the number of CUDA's error, 0: none. `stream` NULL: here.
 */
int step_kernel_add(void *stream, float *to, const float *from, float factor, int64_t count);

/* to[i] += the sum of `rows` numbers times (i + 1). */
int step_kernel_sum(void *stream, float *to, const int64_t *from, int64_t rows, int64_t count);

/* On a device the next step_kernel_add adds to an invalid address. For CUDA alone: the stand-in's
 * kernels are this process's code. */
void step_kernel_wild(void);

struct step_product {
    int64_t rows;
    int64_t inner;
    int64_t columns;
};

/* to[rows, columns] = left[rows, inner] right[inner, columns], on a stream; `turned`: of left's
 * transpose, which is stored as [inner, rows]. */
int step_kernel_product(void *stream, float *to, const float *left, const float *right,
    struct step_product sizes, bool turned);

#ifdef __cplusplus
}
#endif
#endif
