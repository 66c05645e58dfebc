/* SPDX-License-Identifier: Apache-2.0
 * What numbers become, one element at a time, in plain C: what kernels are compared with. */
#ifndef CADRE_TESTS_GPU_PLUGIN_REFERENCE_H
#define CADRE_TESTS_GPU_PLUGIN_REFERENCE_H

#include <stdbool.h>

#include "common/pure/prng.h"
#include "worker/library/device/device_ops.h"

/* Every type of numbers, and how many bytes an element has; 0: the type has no numbers. */
extern const cadre_dtype reference_dtypes[11];
size_t reference_bytes(cadre_dtype dtype);
bool reference_is_float(cadre_dtype dtype);

/* Random elements: any bits, and among floats many of ordinary size. */
void reference_draw(struct prng *prng, cadre_dtype dtype, void *data, size_t count);

void reference_arithmetic(
    enum device_arithmetic how, cadre_dtype dtype, void *to, const void *from, size_t count);

/* By a product in float64, rounded once. */
void reference_scale(cadre_dtype dtype, void *data, size_t count, double factor);

/* The index of the first element that differs, or `count`. Any two NaNs are the same. */
size_t reference_compare(cadre_dtype dtype, const void *a, const void *b, size_t count);

#endif
