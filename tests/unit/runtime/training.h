/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the runtime share: a program that was started by hand. */
#ifndef CADRE_TESTS_RUNTIME_TRAINING_H
#define CADRE_TESTS_RUNTIME_TRAINING_H

#include "cadre/cadre.h"
#include "tests/lib/test.h"

/* A mirrored strategy of so many replicas. The first call initialises the library, with the
 * variables that a daemon would set removed and a fresh folder for outputs. */
cadre_strategy *training_strategy(uint32_t replicas);

/* cadre_variable_find; NULL: there is no such variable. */
cadre_variable *training_find(const cadre_strategy *strategy, const char *name);

/* The folder that checkpoints go to. */
const char *training_folder(void);

/* The public call must succeed. */
#define assert_public_ok(call)                                                                     \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, cadre_error_message());                                      \
        }                                                                                          \
    } while (0)

/* The public call must fail with this status, and its message must contain `part`. */
#define assert_public_error(call, wanted, part)                                                    \
    training_check_error((call), (wanted), (part), #call, __FILE__, __LINE__)
/* The function of assert_public_error. */
void training_check_error(cadre_status status, cadre_status wanted, const char *part,
    const char *call, const char *file, int line);

/* A step that does nothing. */
cadre_status training_nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

/* A mirrored variable "v" of two f32, the strategy's. */
cadre_variable *training_variable(cadre_strategy *strategy);

/* A vector, the caller's. */
cadre_tensor *training_f32(size_t count, const float *values);
/* The same of integers. */
cadre_tensor *training_i32(size_t count, const int32_t *values);

/* The number of the GPU that it is on; -1: none. */
int32_t training_gpu_of(const cadre_tensor *tensor);

/* Its elements must be these. */
void training_assert_f32(const cadre_tensor *tensor, size_t count, const float *values);

/* Runs a step in which replica r returns `values[r]` (one reference of which it takes): how tests
 * make per-replica values. */
cadre_per_replica *training_values(cadre_strategy *strategy, cadre_tensor *const values[]);

#endif
