/* SPDX-License-Identifier: Apache-2.0
 * A tensor's values counted in buckets of equal width, as tf.summary.histogram does. */
#ifndef CADRE_RUNTIME_SUMMARIES_HISTOGRAM_H
#define CADRE_RUNTIME_SUMMARIES_HISTOGRAM_H

#include <stdint.h>

#include "cadre/tensor.h"
#include "common/wire/summary_event.h"

#define HISTOGRAM_BUCKETS_MAX 1000

/* Fills everything but the arrays, which have room for `buckets`, and those. Values that are NaN or
 * infinite are left out; *ret_left_out is how many. Equal values, or one, share one bucket; without
 * values there is none. The tensor is on the host, of numbers. */
void histogram_of(const cadre_tensor *values, uint32_t buckets, struct summary_histogram *histogram,
    uint64_t *ret_left_out);

#endif
