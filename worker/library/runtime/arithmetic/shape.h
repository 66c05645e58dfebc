/* SPDX-License-Identifier: Apache-2.0
 * Shapes of tensors in computations. */
#ifndef CADRE_RUNTIME_SHAPE_H
#define CADRE_RUNTIME_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

/* Whether they have the same dimensions; types may differ. */
bool shape_same(const cadre_tensor *a, const cadre_tensor *b);

/* INVALID_ARGUMENT for an axis outside of [-rank, rank) of `what`. */
cadre_status shape_check_axis(
    int32_t axis, int64_t rank, const char *what, struct cadre_error *error);

#endif
