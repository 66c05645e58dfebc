/* SPDX-License-Identifier: Apache-2.0
 * Images as rows of pixels: [h, w, c], or a batch of them. */
#ifndef CADRE_WORKER_PREPROCESSING_IMAGES_H
#define CADRE_WORKER_PREPROCESSING_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

struct images {
    uint32_t rank;
    int64_t count;
    int64_t height;
    int64_t width;
    size_t pixel_bytes;
};

/* INVALID_ARGUMENT: the tensor, component `component` of an element, holds no images. */
cadre_status images_of(const cadre_tensor *tensor, uint32_t component, struct images *ret_images,
    struct cadre_error *error);

/* A tensor of as many images of another size, not filled. */
cadre_status images_create(const cadre_tensor *like, const struct images *images, int64_t height,
    int64_t width, cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
