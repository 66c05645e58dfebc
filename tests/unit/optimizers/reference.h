/* SPDX-License-Identifier: Apache-2.0
 * The published formulas, in float64 and one element at a time, written down once more. */
#ifndef CADRE_TESTS_OPTIMIZERS_REFERENCE_H
#define CADRE_TESTS_OPTIMIZERS_REFERENCE_H

#include "cadre/optimizer.h"

enum { REFERENCE_MAX = 64 };

struct reference {
    cadre_optimizer_options options; /* every number is given */
    size_t count;
    double w[REFERENCE_MAX];
    double a[REFERENCE_MAX]; /* momentum, accumulator, velocity, m */
    double b[REFERENCE_MAX]; /* v; of RMSPROP its momentum */
    double c[REFERENCE_MAX]; /* average_gradient */
    int updates;
};

/* One update by the gradient g. */
void reference_update(struct reference *reference, const double *g);

#endif
