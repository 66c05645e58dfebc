/* SPDX-License-Identifier: Apache-2.0
 * Traces as a coordinator would send them, made of a few numbers. */
#ifndef CADRE_TESTS_UNIT_TRACE_MADE_TRACE_H
#define CADRE_TESTS_UNIT_TRACE_MADE_TRACE_H

#include "coordinator/cli/trace/trace_conclusion.h"

/* What a task does in each step, in microseconds. */
struct made_task {
    uint64_t between_us;
    uint64_t input_us;
    uint64_t checkpoint_us;
    uint64_t function_us;
    uint64_t ahead_us; /* its clock */
    const char *worker;
};

/* Adds `steps` steps of all tasks: each ends with an all-reduce that takes 100 us once all have
 * come. `knows`: whether the collective tells apart the wait and the transfer. */
void made_trace(struct trace_store *store, const struct made_task *tasks, uint32_t count,
    uint64_t steps, bool knows);

#endif
