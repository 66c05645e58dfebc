/* SPDX-License-Identifier: Apache-2.0
 * What the tests of logical devices share: strategies of replicas with two GPUs each, and numbers.
 */
#ifndef CADRE_TESTS_GPU_STEP_PAIRS_H
#define CADRE_TESTS_GPU_STEP_PAIRS_H

#include <string.h>

#include "step_program.h"

#define PAIR 2 /* logical devices of each replica */

/* In a replica's function. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return cadre_fail(                                                                     \
                CADRE_INTERNAL, "line %d: %s (%s)", __LINE__, #condition, cadre_error_message());  \
        }                                                                                          \
    } while (0)

#define REQUIRE_ERROR(call, status, part)                                                          \
    do {                                                                                           \
        REQUIRE((call) == (status));                                                               \
        REQUIRE(strstr(cadre_error_message(), (part)) != NULL);                                    \
    } while (0)

/* Four devices of the stand-in, then as step_program_begin. */
void pairs_begin(int argc, char **argv);

/* `replicas` pairs, side by side, of so many devices. */
cadre_status pairs_assign(cadre_strategy *strategy, int32_t devices, uint32_t replicas);

/* Replicas on GPU:0 and GPU:2. */
cadre_strategy *pairs_strategy(void);

/* Number `i` of replica `id`; a matrix of them in the replica's memory. */
float pairs_number(int64_t i, uint32_t id);
cadre_status pairs_numbers(
    cadre_replica *replica, int64_t rows, int64_t columns, uint32_t id, cadre_tensor **ret_tensor);

#endif
