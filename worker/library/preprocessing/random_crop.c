/* SPDX-License-Identifier: Apache-2.0
 * Pieces of images, from a place that is drawn, or from the middle. */
#include <inttypes.h>
#include <string.h>

#include "cadre/preprocessing.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/images.h"
#include "worker/library/random/mapped_element.h"

static void crop_image(const struct images *images, const cadre_random_crop_options *options,
    const char *from, int64_t top, int64_t left, char *to)
{
    size_t row_bytes = (size_t)options->width * images->pixel_bytes;
    for (int64_t row = 0; row < options->height; row++) {
        int64_t pixel = (top + row) * images->width + left;
        memcpy(to, from + (size_t)pixel * images->pixel_bytes, row_bytes);
        to += row_bytes;
    }
}

static cadre_status crop_all(const cadre_random_crop_options *options, const struct images *images,
    const char *from, char *to, struct cadre_error *error)
{
    const int64_t rows = images->height - options->height;
    const int64_t columns = images->width - options->width;
    for (int64_t i = 0; i < images->count; i++) {
        int64_t top = rows / 2;
        int64_t left = columns / 2;
        if (!options->center) {
            cadre_random random;
            CADRE_TRY(
                mapped_random(options->seed, "cadre_random_crop_map", (uint64_t)i, &random, error));
            top = (int64_t)cadre_random_below(&random, (uint64_t)rows + 1);
            left = (int64_t)cadre_random_below(&random, (uint64_t)columns + 1);
        }
        crop_image(images, options, from, top, left, to);
        from += (size_t)(images->height * images->width) * images->pixel_bytes;
        to += (size_t)(options->height * options->width) * images->pixel_bytes;
    }
    return CADRE_OK;
}

static cadre_status random_crop_crop(
    const void *user, const cadre_tensor *in, cadre_tensor **ret_out, struct cadre_error *error)
{
    const cadre_random_crop_options *options = user;
    struct images images;
    CADRE_TRY(images_of(in, options->component, &images, error));
    if (options->height < 1 || options->width < 1 || options->height > images.height ||
        options->width > images.width) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "[%" PRId64 ", %" PRId64 "] cannot be cut out of an image of [%" PRId64 ", %" PRId64
            "]; give a height and width of 1 or more that are not larger",
            options->height, options->width, images.height, images.width);
    }
    CADRE_TRY(images_create(in, &images, options->height, options->width, ret_out, error));
    cadre_status status =
        crop_all(options, &images, cadre_tensor_const_data(in), cadre_tensor_data(*ret_out), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_out);
        *ret_out = NULL;
    }
    return status;
}

cadre_status cadre_random_crop_map(const cadre_element *in, cadre_element *ret_out, void *options)
{
    const cadre_random_crop_options *given = options;
    return map_component(
        __func__, in, ret_out, given != NULL ? given->component : 0, random_crop_crop, given);
}
