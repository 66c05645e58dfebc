/* SPDX-License-Identifier: Apache-2.0
 * What the ranks put into a collective, and what must come out. */
#ifndef BENCH_COLLECTIVES_VALUES_H
#define BENCH_COLLECTIVES_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness.h"

/* Small integers, so that sums are exact in any order. */
void values_fill(const struct bench_call *call, int rank, int ranks);
bool values_right(const struct bench_call *call, int rank, int ranks);

/* Numbers of many magnitudes, whose sum shows the order in which it was made. */
void values_fill_rough(float *values, size_t count, int rank);

/* FNV over the bits. */
uint64_t values_hash(const float *values, size_t count);

#endif
