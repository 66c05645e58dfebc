/* SPDX-License-Identifier: Apache-2.0
 * The numbers of tensors of any floating or integer type, as float or double. */
#ifndef CADRE_WORKER_PREPROCESSING_REALS_H
#define CADRE_WORKER_PREPROCESSING_REALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* All types but CADRE_BOOL and CADRE_STRING. */
bool reals_possible(cadre_dtype dtype);

/* Elements [first, first + count) of a tensor of such a type, or of CADRE_BOOL: 0 and 1. */
void reals_double(const cadre_tensor *tensor, int64_t first, size_t count, double to[]);
void reals_float(const cadre_tensor *tensor, int64_t first, size_t count, float to[]);

#endif
