/* SPDX-License-Identifier: Apache-2.0
 * Two passes over each tensor: the mean, then the squares of the differences. */
#include "worker/library/preprocessing/moments.h"

#include <string.h>

#include "worker/library/preprocessing/reals.h"

#define REALS_AT_ONCE 256

/* Which feature the numbers belong to, one after the other. */
struct feature_cursor {
    const struct moments_layout *layout;
    size_t feature;
    size_t inner;
};

static void step_on(struct feature_cursor *cursor)
{
    if (++cursor->inner == cursor->layout->inner) {
        cursor->inner = 0;
        cursor->feature = cursor->feature + 1 == cursor->layout->features ? 0 : cursor->feature + 1;
    }
}

void moments_of(const cadre_tensor *tensor, const struct moments_layout *layout, double *moments)
{
    size_t features = layout->features;
    size_t total = layout->outer * features * layout->inner;
    double *mean = moments_mean(moments);
    double *squares = moments_squares(moments, features);
    memset(moments, 0, MOMENTS_COUNT(features) * sizeof moments[0]);
    if (total == 0) {
        return;
    }
    double count = (double)(layout->outer * layout->inner);
    *moments_count(moments) = count;
    double block[REALS_AT_ONCE];
    for (int round = 0; round < 2; round++) {
        struct feature_cursor cursor = {.layout = layout};
        for (size_t first = 0; first < total; first += REALS_AT_ONCE) {
            size_t left = total - first < REALS_AT_ONCE ? total - first : REALS_AT_ONCE;
            reals_double(tensor, (int64_t)first, left, block);
            for (size_t i = 0; i < left; i++, step_on(&cursor)) {
                if (round == 0) {
                    mean[cursor.feature] += block[i];
                } else {
                    double off = block[i] - mean[cursor.feature];
                    squares[cursor.feature] += off * off;
                }
            }
        }
        for (size_t f = 0; round == 0 && f < features; f++) {
            mean[f] /= count;
        }
    }
}

void moments_merge(double *moments, const double *other, size_t features)
{
    double mine = moments[0];
    double theirs = other[0];
    if (theirs == 0) {
        return;
    }
    if (mine == 0) {
        memcpy(moments, other, MOMENTS_COUNT(features) * sizeof moments[0]);
        return;
    }
    double both = mine + theirs;
    double *mean = moments_mean(moments);
    double *squares = moments_squares(moments, features);
    for (size_t f = 0; f < features; f++) {
        double off = other[1 + f] - mean[f];
        mean[f] += off * (theirs / both);
        squares[f] += other[1 + features + f] + off * off * (mine * (theirs / both));
    }
    *moments_count(moments) = both;
}
