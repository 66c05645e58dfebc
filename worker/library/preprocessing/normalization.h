/* SPDX-License-Identifier: Apache-2.0
 * The internal face of normalizations: made of plain numbers. */
#ifndef CADRE_WORKER_PREPROCESSING_NORMALIZATION_H
#define CADRE_WORKER_PREPROCESSING_NORMALIZATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/preprocessing.h"
#include "common/base/error.h"
#include "worker/library/preprocessing/moments.h"

/* `features` means and variances; `one`: a single pair for all numbers (features is 1). `axis` is
 * counted from the end. Copies. INVALID_ARGUMENT: a number that is not finite, a variance below 0.
 */
cadre_status normalization_make(const double *mean, const double *variance, size_t features,
    bool one, int32_t axis, cadre_normalization **ret_normalization, struct cadre_error *error);

/* How the numbers of a shape belong to features along `axis` (from the end; `one`: all to the
 * first). False: it has no such axis. */
bool normalization_layout(
    uint32_t rank, const int64_t *dims, bool one, int32_t axis, struct moments_layout *ret_layout);

#endif
