/* SPDX-License-Identifier: Apache-2.0
 * The inside of cadre_reduce. */
#ifndef CADRE_RUNTIME_REDUCE_H
#define CADRE_RUNTIME_REDUCE_H

#include <stdbool.h>

#include "cadre/reduce.h"
#include "common/base/error.h"

/* The mean of `entries` values whose sum is `sum`, which this owns: real numbers for integers. */
cadre_status reduce_mean(
    cadre_tensor *sum, int64_t entries, cadre_tensor **ret_mean, struct cadre_error *error);

/* cadre_reduce_values along no axis, for the public `function`; the caller has entered. */
cadre_status reduce_elementwise(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error);

/* Whether it is one element that is 0. */
bool reduce_is_zero(const cadre_tensor *tensor);

#endif
