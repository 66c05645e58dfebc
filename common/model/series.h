/* SPDX-License-Identifier: Apache-2.0
 * Values that programs report, by step. */
#ifndef CADRE_MODEL_SERIES_H
#define CADRE_MODEL_SERIES_H

#include <stdint.h>

/* A value and the number of steps that were applied when it was reported. */
struct series_point {
    uint64_t step;
    double value; /* may be not finite */
};

/* The values of steps that are so long ago that they are not kept one by one. */
struct series_bucket {
    uint64_t first_step;
    uint64_t last_step;
    uint64_t count;      /* of values, at least 1 */
    uint64_t not_finite; /* of them NaN or infinite, which the next three leave out */
    double minimum;      /* 0 where no value is finite */
    double maximum;
    double mean;
    double last; /* the value of last_step, whatever it is */
};

#endif
