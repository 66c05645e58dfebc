/* SPDX-License-Identifier: Apache-2.0
 * Losses that add up over the replicas, and their checks. Called by programs. */
#include "cadre/loss.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/arithmetic/shape.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/arithmetic/numbers.h"

#define PIECE 256 /* elements that are converted at a time */

static bool is_floating(const cadre_tensor *tensor)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    return dtype >= CADRE_F64 && dtype <= CADRE_BF16;
}

/* The sum of all elements, each times its weight. `weights` may be NULL; else `run` adjacent
 * elements share one (0: all of them). */
static double weighted_sum(const cadre_tensor *values, const cadre_tensor *weights, int64_t run)
{
    CADRE_ASSERT(run >= 0);
    CADRE_ASSERT(is_floating(values));
    double sum = 0;
    int64_t count = cadre_tensor_count(values);
    for (int64_t at = 0; at < count; at += PIECE) {
        double part[PIECE];
        size_t length = (size_t)(count - at < PIECE ? count - at : PIECE);
        reals_double(values, at, length, part);
        for (size_t i = 0; i < length; i++) {
            double weight = 1;
            if (weights != NULL) {
                reals_double(weights, run == 0 ? 0 : (at + (int64_t)i) / run, 1, &weight);
            }
            sum += part[i] * weight;
        }
    }
    return sum;
}

static cadre_status make_scalar(
    cadre_dtype dtype, double value, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(tensor_create_unset(dtype, 0, NULL, ret_tensor, error));
    numbers_store(cadre_tensor_data(*ret_tensor), 0, dtype, value);
    return CADRE_OK;
}

static cadre_status require_floating(
    const cadre_tensor *tensor, const char *what, struct cadre_error *error)
{
    if (!is_floating(tensor)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is of type %s; give one of a floating type", what,
            cadre_dtype_name(cadre_tensor_dtype(tensor)));
    }
    return CADRE_OK;
}

/* How many adjacent losses have one weight; 0: all have the same. */
static cadre_status weight_run(const cadre_tensor *losses, const cadre_tensor *weights,
    int64_t *ret_run, struct cadre_error *error)
{
    *ret_run = 0;
    if (weights == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(require_floating(weights, "sample_weight", error));
    int64_t rows = cadre_tensor_rows(losses);
    if (shape_same(losses, weights)) {
        *ret_run = 1;
    } else if (cadre_tensor_rank(weights) == 1 && cadre_tensor_rows(weights) == rows) {
        *ret_run = rows == 0 ? 1 : cadre_tensor_count(losses) / rows;
    } else if (cadre_tensor_rank(weights) != 0) {
        char loss[TENSOR_SHAPE_TEXT_BYTES];
        char weight[TENSOR_SHAPE_TEXT_BYTES];
        tensor_shape_text(
            cadre_tensor_dtype(losses), cadre_tensor_rank(losses), cadre_tensor_dims(losses), loss);
        tensor_shape_text(cadre_tensor_dtype(weights), cadre_tensor_rank(weights),
            cadre_tensor_dims(weights), weight);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "sample_weight %s does not fit losses %s; give a scalar, one weight a row, or one for "
            "each loss",
            weight, loss);
    }
    return CADRE_OK;
}

static cadre_status batch_size(const cadre_replica *replica, const cadre_tensor *losses,
    const cadre_tensor *given, double *ret_size, struct cadre_error *error)
{
    if (given == NULL) {
        int64_t rows = cadre_replica_global_rows(replica);
        *ret_size = rows > 0
                        ? (double)rows
                        : (double)cadre_tensor_rows(losses) * (double)cadre_replica_count(replica);
        return CADRE_OK;
    }
    cadre_dtype dtype = cadre_tensor_dtype(given);
    if (cadre_tensor_rank(given) != 0 || dtype < CADRE_I64 || dtype > CADRE_U8) {
        char text[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "global_batch_size is %s; give a scalar of an integer type",
            tensor_shape_text(dtype, cadre_tensor_rank(given), cadre_tensor_dims(given), text));
    }
    reals_double(given, 0, 1, ret_size);
    if (*ret_size < 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "global_batch_size is %.0f; a batch has 0 rows or more", *ret_size);
    }
    return CADRE_OK;
}

static cadre_status average_loss(const cadre_replica *replica, const cadre_tensor *losses,
    const cadre_tensor *weights, const cadre_tensor *given, cadre_tensor **ret_loss,
    struct cadre_error *error)
{
    int64_t run;
    double size;
    if (replica != NULL || given == NULL) {
        cadre_status status = step_require(replica, "cadre_compute_average_loss", error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status,
                "without global_batch_size the loss is averaged in a replica function");
        }
    }
    CADRE_TRY(require_floating(losses, "per_example_loss", error));
    if (cadre_tensor_rank(losses) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "per_example_loss is a scalar; give the losses of the examples, one for each row");
    }
    CADRE_TRY(weight_run(losses, weights, &run, error));
    CADRE_TRY(batch_size(replica, losses, given, &size, error));
    double sum = weighted_sum(losses, weights, run);
    CADRE_ASSERT(size >= 0);
    return make_scalar(cadre_tensor_dtype(losses), size == 0 ? 0 : sum / size, ret_loss, error);
}

cadre_status cadre_compute_average_loss(const cadre_replica *replica,
    const cadre_tensor *per_example_loss, const cadre_tensor *sample_weight,
    const cadre_tensor *global_batch_size, cadre_tensor **ret_loss)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_loss, __func__, "ret_loss", &error);
    if (status == CADRE_OK) {
        *ret_loss = NULL;
        status = tensor_require(per_example_loss, __func__, "per_example_loss", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require_host(sample_weight, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require_host(global_batch_size, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = average_loss(
            replica, per_example_loss, sample_weight, global_batch_size, ret_loss, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_scale_regularization_loss(
    const cadre_replica *replica, const cadre_tensor *regularization_loss, cadre_tensor **ret_loss)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_loss, __func__, "ret_loss", &error);
    if (status == CADRE_OK) {
        *ret_loss = NULL;
        status = step_require(replica, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(regularization_loss, __func__, "regularization_loss", &error);
    }
    if (status == CADRE_OK) {
        status = require_floating(regularization_loss, "regularization_loss", &error);
    }
    if (status == CADRE_OK) {
        double sum = weighted_sum(regularization_loss, NULL, 0);
        status = make_scalar(cadre_tensor_dtype(regularization_loss),
            sum / cadre_replica_count(replica), ret_loss, &error);
    }
    return api_return(status, &error);
}
