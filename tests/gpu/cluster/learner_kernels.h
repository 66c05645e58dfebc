/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the program under test; `stream` NULL: the same at once on the host. All return the
 * number of CUDA's error, 0: none. */
#ifndef CADRE_TESTS_GPU_CLUSTER_LEARNER_KERNELS_H
#define CADRE_TESTS_GPU_CLUSTER_LEARNER_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hits[i] = how often i is among the ids. */
int learner_kernel_count(
    void *stream, int64_t *hits, int64_t samples, const int64_t *ids, int64_t rows);

/* gradient[i] = the sum of the ids times (i + 1). */
int learner_kernel_gradient(
    void *stream, float *gradient, int64_t count, const int64_t *ids, int64_t rows);

/* count += hits; *order becomes another number for each other order of steps. */
int learner_kernel_apply(
    void *stream, int64_t *count, int64_t *order, const int64_t *hits, int64_t samples);

/* to += from. */
int learner_kernel_add(void *stream, float *to, const float *from, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
