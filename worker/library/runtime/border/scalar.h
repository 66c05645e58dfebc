/* SPDX-License-Identifier: Apache-2.0
 * A tensor of one element as a number. */
#ifndef CADRE_RUNTIME_SCALAR_H
#define CADRE_RUNTIME_SCALAR_H

#include "cadre/tensor.h"
#include "common/base/error.h"

/* INVALID_ARGUMENT for strings and for more or fewer elements than one. */
cadre_status scalar_of(const cadre_tensor *tensor, double *ret_value, struct cadre_error *error);

#endif
