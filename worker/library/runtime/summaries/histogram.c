/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/summaries/histogram.h"

#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/preprocessing/reals.h"

#define BATCH 512

/* Least, greatest, sums. */
static void histogram_measure(
    const double values[], size_t count, struct summary_histogram *histogram)
{
    for (size_t i = 0; i < count; i++) {
        double value = values[i];
        if (!isfinite(value)) {
            continue;
        }
        histogram->min = histogram->count == 0 || value < histogram->min ? value : histogram->min;
        histogram->max = histogram->count == 0 || value > histogram->max ? value : histogram->max;
        histogram->count += 1;
        histogram->sum += value;
        histogram->sum_squares += value * value;
    }
}

/* The bucket of a value: its left limit belongs to it, the greatest value to the last. Halves, so
 * that no difference overflows. */
static uint32_t histogram_bucket(const struct summary_histogram *histogram, double value)
{
    uint32_t count = histogram->bucket_count;
    double span = histogram->max / 2 - histogram->min / 2;
    double share = (value / 2 - histogram->min / 2) / span;
    uint32_t bucket = (uint32_t)(share * count);
    return bucket >= count ? count - 1 : bucket;
}

static void histogram_set_limits(struct summary_histogram *histogram, uint32_t buckets)
{
    double half = histogram->max / 2 - histogram->min / 2;
    bool one = half <= 0 || !isnormal(half);
    histogram->bucket_count = histogram->count == 0 ? 0 : one ? 1 : buckets;
    for (uint32_t i = 0; i < histogram->bucket_count; i++) {
        double share = (double)(i + 1) / histogram->bucket_count;
        histogram->limits[i] = histogram->min + half * share + half * share;
        histogram->counts[i] = 0;
    }
    if (histogram->bucket_count > 0) {
        histogram->limits[histogram->bucket_count - 1] = histogram->max;
    }
}

void histogram_of(const cadre_tensor *values, uint32_t buckets, struct summary_histogram *histogram,
    uint64_t *ret_left_out)
{
    CADRE_ASSERT(buckets > 0);
    CADRE_ASSERT(buckets <= HISTOGRAM_BUCKETS_MAX);
    double batch[BATCH];
    int64_t whole = cadre_tensor_count(values);
    *histogram =
        (struct summary_histogram){.limits = histogram->limits, .counts = histogram->counts};
    for (int64_t first = 0; first < whole; first += BATCH) {
        size_t count = whole - first < BATCH ? (size_t)(whole - first) : BATCH;
        reals_double(values, first, count, batch);
        histogram_measure(batch, count, histogram);
    }
    *ret_left_out = (uint64_t)whole - (uint64_t)histogram->count;
    histogram_set_limits(histogram, buckets);
    for (int64_t first = 0; first < whole && histogram->bucket_count > 0; first += BATCH) {
        size_t count = whole - first < BATCH ? (size_t)(whole - first) : BATCH;
        reals_double(values, first, count, batch);
        for (size_t i = 0; i < count; i++) {
            if (isfinite(batch[i])) {
                bool one = histogram->bucket_count == 1;
                histogram->counts[one ? 0 : histogram_bucket(histogram, batch[i])] += 1;
            }
        }
    }
}
