/* SPDX-License-Identifier: Apache-2.0
 * Composite values as dense tensors: the public functions with a struct cadre_error, and with the
 * components as an array. */
#ifndef CADRE_WORKER_COMPOSITE_TO_DENSE_H
#define CADRE_WORKER_COMPOSITE_TO_DENSE_H

#include "cadre/tensor.h"
#include "common/base/error.h"

/* cadre_ragged_to_dense. */
cadre_status ragged_densify(cadre_tensor *const tensors[], int64_t width,
    const cadre_tensor *default_value, cadre_tensor **ret_dense, struct cadre_error *error);

/* cadre_sparse_to_dense. */
cadre_status sparse_densify(cadre_tensor *const tensors[], const cadre_tensor *default_value,
    cadre_tensor **ret_dense, struct cadre_error *error);

#endif
