/* SPDX-License-Identifier: Apache-2.0
 * A ps job of workers with several replicas each, by hand, whose closures tests call one by one. */
#ifndef CADRE_TESTS_UNIT_PS_JOB_WORKER_CALLS_H
#define CADRE_TESTS_UNIT_PS_JOB_WORKER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cluster_coordinator.h"

#define REPLICAS 3
#define WORKERS  2

extern cadre_strategy *chief;

/* cadre_init, for so many; 0: it went wrong. */
bool worker_calls_init(void);

/* Fixtures of a group: the strategy, and its end in order. */
int worker_calls_begin(void **state);
int worker_calls_end(void **state);

/* Runs one closure; the status that it ends with, and its first output, if that is wanted. */
cadre_status call(const char *function, const cadre_closure_argument *arguments, uint32_t count,
    cadre_tensor **ret_output);

/* The one number that a closure returns; the test fails with its error. */
float call_f32(const char *function);

/* Whether a call was refused so; else it prints what came instead. */
bool expected_text(cadre_status status, cadre_status wanted, const char *part);

#endif
