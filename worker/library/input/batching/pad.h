/* SPDX-License-Identifier: Apache-2.0
 * Stacking tensors of different shapes, padded at the end of each dimension. */
#ifndef CADRE_WORKER_INPUT_BATCHING_PAD_H
#define CADRE_WORKER_INPUT_BATCHING_PAD_H

#include "cadre/tensor.h"
#include "common/base/error.h"

/* `count` >= 1 tensors of one type and rank under a new first dimension. `shape`: the size of each
 * of their dimensions, CADRE_DIMENSION_ANY for the largest there is; NULL for that everywhere.
 * `value`: a scalar of their type that is put where they are smaller; NULL: zero, "". The result is
 * the caller's. INVALID_ARGUMENT names the first that is larger or otherwise unlike.
 * RESOURCE_EXHAUSTED: no machine holds so much. */
cadre_status pad_stack(cadre_tensor *const tensors[], size_t count, const int64_t *shape,
    const cadre_tensor *value, cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
