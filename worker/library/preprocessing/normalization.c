/* SPDX-License-Identifier: Apache-2.0
 * Scaling to mean 0 and variance 1, and back. */
#include "worker/library/preprocessing/normalization.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/publish_error.h"
#include "worker/library/preprocessing/reals.h"

#define SCALE_LEAST 1e-7 /* tf.keras: backend.epsilon() */

struct cadre_normalization {
    size_t features;
    bool one;     /* a single mean and scale for all numbers */
    int32_t axis; /* from the end */
    double *mean;
    double *variance;
    double *scale;
    float *mean_f32;
    float *scale_f32;
    double numbers[]; /* where all of these lie */
};

cadre_status normalization_make(const double *mean, const double *variance, size_t features,
    bool one, int32_t axis, cadre_normalization **ret_normalization, struct cadre_error *error)
{
    *ret_normalization = NULL;
    for (size_t f = 0; f < features; f++) {
        if (!isfinite(mean[f]) || !isfinite(variance[f]) || variance[f] < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "feature %zu has the mean %g and the variance %g; both must be finite numbers, and "
                "a variance is not below 0",
                f, mean[f], variance[f]);
        }
    }
    cadre_normalization *made = NULL;
    size_t each = features * sizeof(double);
    if (!fault_point("preprocessing.malloc")) {
        made = calloc(1, sizeof *made + 4 * each); /* three of double, two of float */
    }
    if (made == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a normalization of %zu features", features);
    }
    made->features = features;
    made->one = one;
    made->axis = axis;
    made->mean = made->numbers;
    made->variance = made->mean + features;
    made->scale = made->variance + features;
    made->mean_f32 = (float *)(made->scale + features);
    made->scale_f32 = made->mean_f32 + features;
    memcpy(made->mean, mean, each);
    memcpy(made->variance, variance, each);
    for (size_t f = 0; f < features; f++) {
        double deviation = sqrt(variance[f]);
        made->scale[f] = deviation < SCALE_LEAST ? SCALE_LEAST : deviation;
        made->mean_f32[f] = (float)mean[f];
        made->scale_f32[f] = (float)made->scale[f];
    }
    *ret_normalization = made;
    return CADRE_OK;
}

void cadre_normalization_release(cadre_normalization *normalization)
{
    free(normalization);
}

bool normalization_layout(
    uint32_t rank, const int64_t *dims, bool one, int32_t axis, struct moments_layout *ret_layout)
{
    *ret_layout = (struct moments_layout){.outer = 1, .features = 1, .inner = 1};
    if (!one && (axis >= 0 || (int64_t)rank < -(int64_t)axis)) {
        return false;
    }
    uint32_t at = one ? 0 : (uint32_t)((int64_t)rank + axis);
    for (uint32_t i = 0; i < rank; i++) {
        size_t *to = one || i > at ? &ret_layout->inner : &ret_layout->outer;
        to = !one && i == at ? &ret_layout->features : to;
        *to *= (size_t)dims[i];
    }
    return true;
}

/* --- making them --- */

static bool is_list(const cadre_tensor *tensor)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    return (dtype == CADRE_F32 || dtype == CADRE_F64) && cadre_tensor_rank(tensor) <= 1 &&
           cadre_tensor_count(tensor) > 0;
}

static cadre_status make_of_tensors(const cadre_tensor *mean, const cadre_tensor *variance,
    int32_t axis, cadre_normalization **ret_normalization, struct cadre_error *error)
{
    bool one = cadre_tensor_rank(mean) == 0;
    if (!is_list(mean) || !is_list(variance) ||
        cadre_tensor_rank(mean) != cadre_tensor_rank(variance) ||
        cadre_tensor_count(mean) != cadre_tensor_count(variance)) {
        char first[TENSOR_SHAPE_TEXT_BYTES];
        char second[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "mean and variance are %s and %s; they are CADRE_F32 or CADRE_F64, both scalars or "
            "both one number for each feature",
            tensor_shape_text(
                cadre_tensor_dtype(mean), cadre_tensor_rank(mean), cadre_tensor_dims(mean), first),
            tensor_shape_text(cadre_tensor_dtype(variance), cadre_tensor_rank(variance),
                cadre_tensor_dims(variance), second));
    }
    if (!one && (axis >= 0 || axis < -CADRE_RANK_MAX)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %" PRId32 " is not counted from the end; the last one is -1", axis);
    }
    size_t features = (size_t)cadre_tensor_count(mean);
    CADRE_FREE_AT_EXIT double *numbers =
        fault_point("preprocessing.malloc") ? NULL : calloc(2 * features, sizeof *numbers);
    if (numbers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a normalization of %zu features", features);
    }
    reals_double(mean, 0, features, numbers);
    reals_double(variance, 0, features, numbers + features);
    return normalization_make(
        numbers, numbers + features, features, one, axis, ret_normalization, error);
}

cadre_status cadre_normalization_create(const cadre_tensor *mean, const cadre_tensor *variance,
    int32_t axis, cadre_normalization **ret_normalization)
{
    struct cadre_error error = {0};
    cadre_status status =
        argument_require(ret_normalization, __func__, "ret_normalization", &error);
    if (status == CADRE_OK) {
        *ret_normalization = NULL;
        status = tensor_require(mean, __func__, "mean", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(variance, __func__, "variance", &error);
    }
    if (status == CADRE_OK) {
        status = make_of_tensors(mean, variance, axis, ret_normalization, &error);
    }
    return publish_error(status, &error);
}

cadre_status cadre_normalization_moments(
    const cadre_normalization *normalization, cadre_tensor **ret_mean, cadre_tensor **ret_variance)
{
    struct cadre_error error = {0};
    cadre_tensor *moments[2] = {NULL, NULL};
    cadre_status status = argument_require(normalization, __func__, "normalization", &error);
    for (int i = 0; status == CADRE_OK && i < 2; i++) {
        const int64_t features = (int64_t)normalization->features;
        status = tensor_from_data(CADRE_F64, normalization->one ? 0 : 1, &features,
            i == 0 ? normalization->mean : normalization->variance, &moments[i], &error);
    }
    cadre_tensor **ret_tensors[2] = {ret_mean, ret_variance};
    for (int i = 0; i < 2; i++) {
        if (status != CADRE_OK || ret_tensors[i] == NULL) {
            cadre_tensor_release(moments[i]);
            moments[i] = NULL;
        }
        if (ret_tensors[i] != NULL) {
            *ret_tensors[i] = moments[i];
        }
    }
    return publish_error(status, &error);
}

/* --- using them --- */

/* `to` holds the numbers already. Features one after the other (inner 1) are the usual case, and
 * vectorise. */
#define SCALE_ALL(type, means, scales)                                                             \
    do {                                                                                           \
        type *at = to;                                                                             \
        const type *mean = (means);                                                                \
        const type *scale = (scales);                                                              \
        for (size_t outer = 0; outer < layout->outer; outer++) {                                   \
            if (layout->inner == 1) {                                                              \
                for (size_t f = 0; f < layout->features; f++) {                                    \
                    at[f] = back ? at[f] * scale[f] + mean[f] : (at[f] - mean[f]) / scale[f];      \
                }                                                                                  \
                at += layout->features;                                                            \
                continue;                                                                          \
            }                                                                                      \
            for (size_t f = 0; f < layout->features; f++, at += layout->inner) {                   \
                for (size_t i = 0; i < layout->inner; i++) {                                       \
                    at[i] = back ? at[i] * scale[f] + mean[f] : (at[i] - mean[f]) / scale[f];      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void scale_f64(const cadre_normalization *normalization, const struct moments_layout *layout,
    bool back, double *to)
{
    SCALE_ALL(double, normalization->mean, normalization->scale);
}

static void scale_f32(const cadre_normalization *normalization, const struct moments_layout *layout,
    bool back, float *to)
{
    SCALE_ALL(float, normalization->mean_f32, normalization->scale_f32);
}

static cadre_status check_shape(const cadre_normalization *normalization,
    const cadre_tensor *values, struct moments_layout *ret_layout, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(values);
    uint32_t rank = cadre_tensor_rank(values);
    const int64_t *dims = cadre_tensor_dims(values);
    bool fits =
        normalization_layout(rank, dims, normalization->one, normalization->axis, ret_layout);
    if (fits && ret_layout->features == normalization->features && reals_possible(dtype)) {
        return CADRE_OK;
    }
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    tensor_shape_text(dtype, rank, dims, shape);
    if (!reals_possible(dtype)) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "values of %s cannot be normalized; numbers can", shape);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "values of %s do not fit a normalization of %zu features along axis %" PRId32, shape,
        normalization->features, normalization->axis);
}

static cadre_status normalization_scale(const cadre_normalization *normalization,
    const cadre_tensor *values, bool back, cadre_tensor **ret_values, struct cadre_error *error)
{
    struct moments_layout layout;
    CADRE_TRY(check_shape(normalization, values, &layout, error));
    cadre_dtype dtype = cadre_tensor_dtype(values) == CADRE_F64 ? CADRE_F64 : CADRE_F32;
    CADRE_TRY(tensor_create(
        dtype, cadre_tensor_rank(values), cadre_tensor_dims(values), ret_values, error));
    void *to = cadre_tensor_data(*ret_values);
    size_t count = (size_t)cadre_tensor_count(values);
    if (dtype == CADRE_F64) {
        reals_double(values, 0, count, to);
        scale_f64(normalization, &layout, back, to);
    } else {
        reals_float(values, 0, count, to);
        scale_f32(normalization, &layout, back, to);
    }
    return CADRE_OK;
}

static cadre_status scale_public(const char *name, const cadre_normalization *normalization,
    const cadre_tensor *values, bool back, cadre_tensor **ret_values)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_values, name, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
        status = argument_require(normalization, name, "normalization", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(values, name, "values", &error);
    }
    if (status == CADRE_OK) {
        status = normalization_scale(normalization, values, back, ret_values, &error);
    }
    return publish_error(status, &error);
}

cadre_status cadre_normalization_apply(
    const cadre_normalization *normalization, const cadre_tensor *values, cadre_tensor **ret_values)
{
    return scale_public(__func__, normalization, values, false, ret_values);
}

cadre_status cadre_normalization_invert(
    const cadre_normalization *normalization, const cadre_tensor *values, cadre_tensor **ret_values)
{
    return scale_public(__func__, normalization, values, true, ret_values);
}

static cadre_status apply_map(const void *normalization, const cadre_tensor *values,
    cadre_tensor **ret_values, struct cadre_error *error)
{
    return normalization_scale(normalization, values, false, ret_values, error);
}

cadre_status cadre_normalization_map(
    const cadre_element *in, cadre_element *ret_out, void *normalization)
{
    return map_component(__func__, in, ret_out, 0, apply_map, normalization);
}
