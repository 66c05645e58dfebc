/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/preprocessing/images.h"

#include <string.h>

#include "worker/library/device/tensor.h"

cadre_status images_of(const cadre_tensor *tensor, uint32_t component, struct images *ret_images,
    struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    uint32_t rank = cadre_tensor_rank(tensor);
    if (dtype == CADRE_STRING || rank < 3 || rank > 4) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %u is %s, and images are [height, width, channels] or a batch of those; "
            "give each pixel a dimension, of 1 for gray",
            component, tensor_shape_text(dtype, rank, cadre_tensor_dims(tensor), shape));
    }
    *ret_images = (struct images){
        .rank = rank,
        .count = rank == 4 ? cadre_tensor_dim(tensor, 0) : 1,
        .height = cadre_tensor_dim(tensor, rank - 3),
        .width = cadre_tensor_dim(tensor, rank - 2),
        .pixel_bytes = (size_t)cadre_tensor_dim(tensor, rank - 1) * cadre_dtype_bytes(dtype),
    };
    return CADRE_OK;
}

cadre_status images_create(const cadre_tensor *like, const struct images *images, int64_t height,
    int64_t width, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[4];
    memcpy(dims, cadre_tensor_dims(like), images->rank * sizeof dims[0]);
    dims[images->rank - 3] = height;
    dims[images->rank - 2] = width;
    return tensor_create_unset(cadre_tensor_dtype(like), images->rank, dims, ret_tensor, error);
}
