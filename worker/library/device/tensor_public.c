/* SPDX-License-Identifier: Apache-2.0
 * The fallible functions of cadre/tensor.h: they publish the error of the internal ones. */
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"

static cadre_status tensor_public_published(cadre_status status, const struct cadre_error *error)
{
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(error);
}

cadre_status cadre_tensor_create(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        status = tensor_create(dtype, rank, dims, ret_tensor, &error);
    }
    return tensor_public_published(status, &error);
}

cadre_status cadre_tensor_from_data(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    const void *data, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        status = tensor_from_data(dtype, rank, dims, data, ret_tensor, &error);
    }
    return tensor_public_published(status, &error);
}

cadre_status cadre_tensor_over(cadre_dtype dtype, uint32_t rank, const int64_t *dims, void *data,
    cadre_release_function release, void *user, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    const struct tensor_lent lent = {
        .dtype = dtype, .rank = rank, .dims = dims, .data = data, .release = release, .user = user};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        status = tensor_over(&lent, ret_tensor, &error);
    }
    return tensor_public_published(status, &error);
}

cadre_status cadre_tensor_from_f32(float value, cadre_tensor **ret_tensor)
{
    return cadre_tensor_from_data(CADRE_F32, 0, NULL, &value, ret_tensor);
}

cadre_status cadre_tensor_from_f64(double value, cadre_tensor **ret_tensor)
{
    return cadre_tensor_from_data(CADRE_F64, 0, NULL, &value, ret_tensor);
}

cadre_status cadre_tensor_from_i64(int64_t value, cadre_tensor **ret_tensor)
{
    return cadre_tensor_from_data(CADRE_I64, 0, NULL, &value, ret_tensor);
}

cadre_status cadre_tensor_view_rows(
    cadre_tensor *tensor, int64_t first, int64_t count, cadre_tensor **ret_view)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_view, __func__, "ret_view", &error);
    if (status == CADRE_OK) {
        *ret_view = NULL;
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_view_rows(tensor, first, count, ret_view, &error);
    }
    return tensor_public_published(status, &error);
}

cadre_status cadre_tensor_copy(const cadre_tensor *tensor, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = argument_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_copy(tensor, ret_tensor, &error);
    }
    return tensor_public_published(status, &error);
}
