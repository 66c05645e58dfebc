/* SPDX-License-Identifier: Apache-2.0
 * Images that are flipped, or not, by chance. */
#include <string.h>

#include "cadre/preprocessing.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/images.h"
#include "worker/library/random/mapped_element.h"

/* One row of pixels, from right to left. */
static void copy_reversed(const char *from, int64_t width, size_t pixel_bytes, char *to)
{
    from += (size_t)width * pixel_bytes;
    for (int64_t i = 0; i < width; i++) {
        from -= pixel_bytes;
        memcpy(to, from, pixel_bytes);
        to += pixel_bytes;
    }
}

static void flip_image(
    const struct images *images, const char *from, bool left_right, bool up_down, char *to)
{
    size_t row_bytes = (size_t)images->width * images->pixel_bytes;
    for (int64_t row = 0; row < images->height; row++) {
        const char *at = from + (size_t)(up_down ? images->height - 1 - row : row) * row_bytes;
        if (left_right) {
            copy_reversed(at, images->width, images->pixel_bytes, to);
        } else {
            memcpy(to, at, row_bytes);
        }
        to += row_bytes;
    }
}

static cadre_status flip_all(const cadre_random_flip_options *options, const struct images *images,
    const char *from, char *to, struct cadre_error *error)
{
    size_t bytes = (size_t)(images->height * images->width) * images->pixel_bytes;
    for (int64_t i = 0; i < images->count; i++) {
        cadre_random random;
        CADRE_TRY(
            mapped_random(options->seed, "cadre_random_flip_map", (uint64_t)i, &random, error));
        /* Both are drawn in each mode, so one does not depend on whether the other is wanted. */
        bool left_right = cadre_random_below(&random, 2) == 1;
        bool up_down = cadre_random_below(&random, 2) == 1;
        flip_image(images, from, left_right && options->mode != CADRE_FLIP_VERTICAL,
            up_down && options->mode != CADRE_FLIP_HORIZONTAL, to);
        from += bytes;
        to += bytes;
    }
    return CADRE_OK;
}

static cadre_status random_flip_flip(
    const void *user, const cadre_tensor *in, cadre_tensor **ret_out, struct cadre_error *error)
{
    const cadre_random_flip_options *options = user;
    struct images images;
    if (options->mode < CADRE_FLIP_BOTH || options->mode > CADRE_FLIP_VERTICAL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "mode %d is none of CADRE_FLIP_BOTH, CADRE_FLIP_HORIZONTAL, CADRE_FLIP_VERTICAL",
            (int)options->mode);
    }
    CADRE_TRY(images_of(in, options->component, &images, error));
    CADRE_TRY(images_create(in, &images, images.height, images.width, ret_out, error));
    cadre_status status =
        flip_all(options, &images, cadre_tensor_const_data(in), cadre_tensor_data(*ret_out), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_out);
        *ret_out = NULL;
    }
    return status;
}

cadre_status cadre_random_flip_map(const cadre_element *in, cadre_element *ret_out, void *options)
{
    const cadre_random_flip_options *given = options;
    return map_component(
        __func__, in, ret_out, given != NULL ? given->component : 0, random_flip_flip, given);
}
