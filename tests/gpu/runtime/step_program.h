/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the step on devices share: strategies on GPUs (the stand-in's unless
 * CADRE_PLUGIN names another plugin) and on the CPU, and steps that do the same on both. */
#ifndef CADRE_TESTS_GPU_STEP_PROGRAM_H
#define CADRE_TESTS_GPU_STEP_PROGRAM_H

#include "tests/unit/runtime/training.h"

#define STEP_REPLICAS 2

/* Names the plugin that is compiled against the stand-in and initialises the library, as a program
 * that is started by hand. With the argument "staged" there is no library that connects devices.
 * Ends the test as skipped where there is no such plugin. */
void step_program_begin(int argc, char **argv);

/* Whether devices are connected here: there are two of them, and a library. */
extern bool step_connected;

/* Replicas on GPUs: two, or one where there is no other GPU. */
extern uint32_t step_gpus;

/* A strategy of so many replicas on these devices ("GPU:0"). */
cadre_strategy *step_strategy(const char *const devices[], uint32_t count);
cadre_strategy *step_strategy_gpus(void); /* GPU:0 and GPU:1; or GPU:0 and CPU:0 */
cadre_strategy *step_strategy_cpus(void); /* CPU:0 and CPU:1 */

/* A vector in the replica's memory: of its values times (1 + its id). */
cadre_status step_vector(cadre_replica *replica, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor);

/* Their elements must be the same bytes, wherever they are. */
void step_assert_same(const cadre_tensor *one, const cadre_tensor *other);

/* Its elements must be these, wherever they are. */
void step_assert_f32(const cadre_tensor *tensor, size_t count, const float *values);

#endif
