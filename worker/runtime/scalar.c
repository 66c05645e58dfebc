/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/scalar.h"

#include "worker/device/tensor.h"
#include "worker/mesh/half.h"
#include "worker/runtime/axis_sum.h"

cadre_status scalar_of(const cadre_tensor *tensor, double *ret_value, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (dtype == CADRE_STRING || cadre_tensor_count(tensor) != 1) {
        char text[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a number is needed, and the tensor is %s; reduce it to one element first",
            tensor_shape_text(dtype, cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), text));
    }
    const void *data = cadre_tensor_const_data(tensor);
    switch (dtype) {
    case CADRE_F64:
        *ret_value = *(const double *)data;
        break;
    case CADRE_F32:
        *ret_value = (double)*(const float *)data;
        break;
    case CADRE_F16:
        *ret_value = (double)half_from_f16(*(const uint16_t *)data);
        break;
    case CADRE_BF16:
        *ret_value = (double)half_from_bf16(*(const uint16_t *)data);
        break;
    default:
        *ret_value = axis_real(data, 0, dtype);
        break;
    }
    return CADRE_OK;
}
