/* SPDX-License-Identifier: Apache-2.0
 * The public functions of ragged and sparse values. */
#include "cadre/composite.h"
#include "worker/library/composite/to_dense.h"
#include "worker/library/composite/components.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

static cadre_status composite_public_published(cadre_status status, struct cadre_error *error)
{
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(error);
}

/* Checks the result's pointer and the arguments that all functions of ragged values have. */
static cadre_status require_ragged(const char *function, const cadre_tensor *values,
    const cadre_tensor *row_splits, cadre_tensor **ret, const char *ret_name,
    struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret, function, ret_name, error));
    *ret = NULL;
    CADRE_TRY(argument_require(values, function, "values", error));
    return argument_require(row_splits, function, "row_splits", error);
}

static cadre_status require_sparse(const char *function, cadre_tensor *const tensors[],
    cadre_tensor **ret, const char *ret_name, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret, function, ret_name, error));
    *ret = NULL;
    CADRE_TRY(argument_require(tensors[SPARSE_INDICES], function, "indices", error));
    CADRE_TRY(argument_require(tensors[SPARSE_VALUES], function, "values", error));
    return argument_require(tensors[SPARSE_SHAPE], function, "dense_shape", error);
}

/* They are only read. */
static cadre_tensor *composite_public_readable(const cadre_tensor *tensor)
{
    return (cadre_tensor *)(uintptr_t)tensor;
}

cadre_status cadre_ragged_from_row_splits(
    const cadre_tensor *values, const cadre_tensor *row_splits, cadre_tensor **ret_row_splits)
{
    struct cadre_error error = {0};
    cadre_tensor *const tensors[] = {
        composite_public_readable(values), composite_public_readable(row_splits)};
    cadre_status status =
        require_ragged(__func__, values, row_splits, ret_row_splits, "ret_row_splits", &error);
    if (status == CADRE_OK) {
        status = ragged_check(tensors, &error);
    }
    if (status == CADRE_OK) {
        status = tensor_copy(row_splits, ret_row_splits, &error);
    }
    if (status == CADRE_OK) {
        tensor_set_composite(*ret_row_splits, CADRE_COMPOSITE_RAGGED);
    }
    return composite_public_published(status, &error);
}

cadre_status cadre_ragged_row(
    cadre_tensor *values, const cadre_tensor *row_splits, int64_t row, cadre_tensor **ret_row)
{
    struct cadre_error error = {0};
    cadre_tensor *const tensors[] = {values, composite_public_readable(row_splits)};
    cadre_status status = require_ragged(__func__, values, row_splits, ret_row, "ret_row", &error);
    if (status == CADRE_OK) {
        status = ragged_row(tensors, row, ret_row, &error);
    }
    return composite_public_published(status, &error);
}

cadre_status cadre_ragged_to_dense(cadre_tensor *values, const cadre_tensor *row_splits,
    int64_t width, const cadre_tensor *default_value, cadre_tensor **ret_dense)
{
    struct cadre_error error = {0};
    cadre_tensor *const tensors[] = {values, composite_public_readable(row_splits)};
    cadre_status status =
        require_ragged(__func__, values, row_splits, ret_dense, "ret_dense", &error);
    if (status == CADRE_OK) {
        status = ragged_densify(tensors, width, default_value, ret_dense, &error);
    }
    return composite_public_published(status, &error);
}

cadre_status cadre_sparse_from_indices(const cadre_tensor *indices, const cadre_tensor *values,
    const cadre_tensor *dense_shape, cadre_tensor **ret_dense_shape)
{
    struct cadre_error error = {0};
    cadre_tensor *const tensors[] = {composite_public_readable(indices),
        composite_public_readable(values), composite_public_readable(dense_shape)};
    cadre_status status =
        require_sparse(__func__, tensors, ret_dense_shape, "ret_dense_shape", &error);
    if (status == CADRE_OK) {
        status = sparse_check(tensors, &error);
    }
    if (status == CADRE_OK) {
        status = tensor_copy(dense_shape, ret_dense_shape, &error);
    }
    if (status == CADRE_OK) {
        tensor_set_composite(*ret_dense_shape, CADRE_COMPOSITE_SPARSE);
    }
    return composite_public_published(status, &error);
}

cadre_status cadre_sparse_to_dense(const cadre_tensor *indices, const cadre_tensor *values,
    const cadre_tensor *dense_shape, const cadre_tensor *default_value, cadre_tensor **ret_dense)
{
    struct cadre_error error = {0};
    cadre_tensor *const tensors[] = {composite_public_readable(indices),
        composite_public_readable(values), composite_public_readable(dense_shape)};
    cadre_status status = require_sparse(__func__, tensors, ret_dense, "ret_dense", &error);
    if (status == CADRE_OK) {
        status = sparse_densify(tensors, default_value, ret_dense, &error);
    }
    return composite_public_published(status, &error);
}
