/* SPDX-License-Identifier: Apache-2.0
 * Numbers times a scale, plus an offset. */
#include "cadre/preprocessing.h"

#include <math.h>

#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/reals.h"

static void rescale_f64(double *at, int64_t count, double scale, double offset)
{
    for (int64_t i = 0; i < count; i++) {
        at[i] = at[i] * scale + offset;
    }
}

static void rescale_f32(float *at, int64_t count, float scale, float offset)
{
    for (int64_t i = 0; i < count; i++) {
        at[i] = at[i] * scale + offset;
    }
}

static cadre_status rescaling_rescale(
    const void *user, const cadre_tensor *in, cadre_tensor **ret_out, struct cadre_error *error)
{
    const cadre_rescaling_options *options = user;
    double scale = options->scale == 0 ? 1 : options->scale;
    int64_t count = cadre_tensor_count(in);
    if (!reals_possible(cadre_tensor_dtype(in))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u is of %s, and numbers are rescaled", options->component,
            cadre_dtype_name(cadre_tensor_dtype(in)));
    }
    if (!isfinite(scale) || !isfinite(options->offset)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "scale %g and offset %g were given; give two finite numbers", scale, options->offset);
    }
    cadre_dtype dtype = cadre_tensor_dtype(in) == CADRE_F64 ? CADRE_F64 : CADRE_F32;
    CADRE_TRY(
        tensor_create_unset(dtype, cadre_tensor_rank(in), cadre_tensor_dims(in), ret_out, error));
    if (dtype == CADRE_F64) {
        reals_double(in, 0, (size_t)count, cadre_tensor_data(*ret_out));
        rescale_f64(cadre_tensor_data(*ret_out), count, scale, options->offset);
    } else {
        reals_float(in, 0, (size_t)count, cadre_tensor_data(*ret_out));
        rescale_f32(cadre_tensor_data(*ret_out), count, (float)scale, (float)options->offset);
    }
    return CADRE_OK;
}

cadre_status cadre_rescaling_map(const cadre_element *in, cadre_element *ret_out, void *options)
{
    const cadre_rescaling_options *given = options;
    return map_component(
        __func__, in, ret_out, given != NULL ? given->component : 0, rescaling_rescale, given);
}
