/* SPDX-License-Identifier: Apache-2.0
 * Clipping of reduced gradients: the same bits on every replica. (tf.clip_by_norm,
 * tf.clip_by_value, tf.clip_by_global_norm.) Called by gradients.c. */
#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/optimizers/gradients.h"

/* --- on the host --- */

#define LANES 8

/* The sum of squares in float64, in lanes whose order is that of the elements. */
#define SQUARES(type)                                                                              \
    static double squares_##type(const type *values, size_t count)                                 \
    {                                                                                              \
        double lanes[LANES] = {0};                                                                 \
        double sum = 0;                                                                            \
        size_t whole = count - count % LANES;                                                      \
        for (size_t i = 0; i < whole; i += LANES) {                                                \
            for (size_t lane = 0; lane < LANES; lane++) {                                          \
                lanes[lane] += (double)values[i + lane] * (double)values[i + lane];                \
            }                                                                                      \
        }                                                                                          \
        for (size_t i = whole; i < count; i++) {                                                   \
            lanes[i - whole] += (double)values[i] * (double)values[i];                             \
        }                                                                                          \
        for (size_t lane = 0; lane < LANES; lane++) {                                              \
            sum += lanes[lane];                                                                    \
        }                                                                                          \
        return sum;                                                                                \
    }
#define EACH(type)                                                                                 \
    static void scale_##type(type *values, size_t count, double factor)                            \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            values[i] = (type)((double)values[i] * factor);                                        \
        }                                                                                          \
    }                                                                                              \
    static void limit_##type(type *values, size_t count, double limit)                             \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) { /* NaN stays */                                       \
            type value = values[i];                                                                \
            value = value > (type)limit ? (type)limit : value;                                     \
            values[i] = value < (type)-limit ? (type)-limit : value;                               \
        }                                                                                          \
    }
SQUARES(float)
SQUARES(double)
EACH(float)
EACH(double)

/* --- on the host or a device --- */

static cadre_status sum_of_squares(
    const cadre_tensor *gradient, double *ret_sum, struct cadre_error *error)
{
    cadre_tensor *here = NULL;
    CADRE_TRY(tensor_on_host(gradient, &here, error));
    size_t count = (size_t)cadre_tensor_count(here);
    const void *values = cadre_tensor_const_data(here);
    *ret_sum = cadre_tensor_dtype(here) == CADRE_F64 ? squares_double(values, count)
                                                     : squares_float(values, count);
    cadre_tensor_release(here);
    return CADRE_OK;
}

static cadre_status clip_scale(cadre_tensor *gradient, double factor, struct cadre_error *error)
{
    struct device *device = tensor_device(gradient);
    size_t count = (size_t)cadre_tensor_count(gradient);
    void *values = cadre_tensor_data(gradient);
    if (device != NULL) {
        return device->ops->scale(
            cadre_tensor_dtype(gradient), values, count, factor, device->compute, error);
    }
    if (cadre_tensor_dtype(gradient) == CADRE_F64) {
        scale_double(values, count, factor);
    } else {
        scale_float(values, count, factor);
    }
    return CADRE_OK;
}

static cadre_status clip_limit(cadre_tensor *gradient, double value, struct cadre_error *error)
{
    struct device *device = tensor_device(gradient);
    cadre_tensor *here = NULL;
    CADRE_TRY(tensor_on_host(gradient, &here, error));
    size_t count = (size_t)cadre_tensor_count(here);
    if (cadre_tensor_dtype(here) == CADRE_F64) {
        limit_double(cadre_tensor_data(here), count, value);
    } else {
        limit_float(cadre_tensor_data(here), count, value);
    }
    cadre_status status = CADRE_OK;
    if (device != NULL) {
        status = device_copy_enqueue(device, device->compute, cadre_tensor_data(gradient),
            cadre_tensor_const_data(here), cadre_tensor_bytes(here), error);
    }
    cadre_tensor_release(here);
    return status;
}

/* Scales a gradient of norm `norm` to at most `clip`; a shorter one stays. */
static cadre_status clip_shorten(
    cadre_tensor *gradient, double norm, double clip, struct cadre_error *error)
{
    CADRE_ASSERT(clip > 0);
    if (norm <= clip) {
        return CADRE_OK;
    }
    /* A norm that is infinite or NaN cannot be shortened: the gradient becomes NaN. */
    return clip_scale(gradient, isfinite(norm) ? clip / norm : (double)NAN, error);
}

cadre_status gradients_clip(
    const cadre_optimizer *optimizer, struct pending_update *turn, struct cadre_error *error)
{
    double all = 0;
    for (size_t i = 0; i < turn->count; i++) {
        cadre_tensor *gradient = turn->variables[i].gradient;
        double sum = 0;
        if (optimizer->clip_value > 0) {
            CADRE_TRY(clip_limit(gradient, optimizer->clip_value, error));
        }
        if (optimizer->clip_norm > 0 || optimizer->clip_global_norm > 0) {
            CADRE_TRY(sum_of_squares(gradient, &sum, error));
        }
        if (optimizer->clip_norm > 0) {
            CADRE_TRY(clip_shorten(gradient, sqrt(sum), optimizer->clip_norm, error));
        }
        all += sum;
    }
    for (size_t i = 0; optimizer->clip_global_norm > 0 && i < turn->count; i++) {
        CADRE_TRY(clip_shorten(
            turn->variables[i].gradient, sqrt(all), optimizer->clip_global_norm, error));
    }
    return CADRE_OK;
}
