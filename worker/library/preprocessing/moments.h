/* SPDX-License-Identifier: Apache-2.0
 * Count, mean and sum of squared differences of many numbers, feature by feature, in float64, and
 * how those of two parts are put together (Chan, Golub, LeVeque: Updating Formulae and a Pairwise
 * Algorithm for Computing Sample Variances, 1979). Nothing is lost where the mean is large and the
 * variance small, as it would be with a sum of squares. */
#ifndef CADRE_WORKER_PREPROCESSING_MOMENTS_H
#define CADRE_WORKER_PREPROCESSING_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* An array of MOMENTS_COUNT(features) doubles; all 0: of nothing. */
#define MOMENTS_COUNT(features) (1 + 2 * (features))

static inline double *moments_count(double *moments)
{
    return moments; /* of each feature: they have equally many numbers */
}

static inline double *moments_mean(double *moments)
{
    return moments + 1;
}

static inline double *moments_squares(double *moments, size_t features)
{
    return moments + 1 + features;
}

/* How a tensor's numbers belong to features: outer x features x inner. */
struct moments_layout {
    size_t outer;
    size_t features;
    size_t inner;
};

/* Those of a tensor's numbers alone. */
void moments_of(const cadre_tensor *tensor, const struct moments_layout *layout, double *moments);

/* Adds the numbers of `other`. */
void moments_merge(double *moments, const double *other, size_t features);

#endif
