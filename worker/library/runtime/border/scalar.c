/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/border/scalar.h"

#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"

cadre_status scalar_of(const cadre_tensor *tensor, double *ret_value, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (dtype == CADRE_STRING || cadre_tensor_count(tensor) != 1) {
        char text[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a number is needed, and the tensor is %s; reduce it to one element first",
            tensor_shape_text(dtype, cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), text));
    }
    reals_double(tensor, 0, 1, ret_value);
    return CADRE_OK;
}
