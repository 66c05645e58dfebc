/* SPDX-License-Identifier: Apache-2.0
 * Sums of one tensor along one axis, and means. */
#ifndef CADRE_RUNTIME_AXIS_SUM_H
#define CADRE_RUNTIME_AXIS_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

/* The tensor without dimension `axis` (0 <= axis < rank), each element the sum along it, in order;
 * half-width floats are summed in float32. *ret_entries is the size along the axis.
 * INVALID_ARGUMENT for types that cannot be summed. */
cadre_status axis_sum(const cadre_tensor *tensor, int32_t axis, cadre_tensor **ret_sum,
    int64_t *ret_entries, struct cadre_error *error);

/* Divides floating values by a count; 0 / 0 is NaN. */
void axis_divide(void *values, size_t count, cadre_dtype dtype, int64_t entries);

#endif
