/* SPDX-License-Identifier: Apache-2.0
 * Checks and joins that both kinds share. */
#include "worker/library/composite/components.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

cadre_status component_check(
    const cadre_tensor *tensor, const char *part, uint32_t rank, struct cadre_error *error)
{
    CADRE_TRY(tensor_require_host(tensor, part, error));
    if (cadre_tensor_dtype(tensor) == CADRE_I64 && cadre_tensor_rank(tensor) == rank) {
        return CADRE_OK;
    }
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s are %s here; they are i64 of %" PRIu32 " dimension%s", part,
        tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
            cadre_tensor_dims(tensor), shape),
        rank, rank == 1 ? "" : "s");
}

void components_release(cadre_tensor *tensors[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cadre_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

cadre_status components_concat(const cadre_element elements[], size_t count, uint32_t component,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to join %zu pieces", count);
    }
    for (size_t i = 0; i < count; i++) {
        tensors[i] = elements[i].tensors[component];
    }
    return tensor_concat_rows(tensors, count, ret_tensor, error);
}
