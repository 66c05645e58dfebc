/* SPDX-License-Identifier: Apache-2.0
 * Counts of durations in fixed buckets, without allocation. */
#ifndef CADRE_BASE_HISTOGRAM_H
#define CADRE_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Bounds of the buckets; the last bucket is for what took longer. */
#define HISTOGRAM_BOUNDS 17
static const uint64_t histogram_bounds_us[HISTOGRAM_BOUNDS] = {50, 100, 250, 500, 1000, 2500, 5000,
    10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

/* Begins as {0}. */
struct histogram {
    uint64_t buckets[HISTOGRAM_BOUNDS + 1];
    uint64_t count;
    uint64_t sum_us;
};

static inline void histogram_add(struct histogram *histogram, uint64_t us)
{
    size_t at = 0;
    while (at < HISTOGRAM_BOUNDS && us > histogram_bounds_us[at]) {
        at++;
    }
    histogram->buckets[at]++;
    histogram->count++;
    histogram->sum_us += us;
}

#endif
