/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/arithmetic/concatenate.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"

cadre_status concatenation_begin(struct concatenation *ret_concatenation, const cadre_tensor *own,
    uint32_t axis, const int64_t *sizes, uint32_t count, size_t *ret_bytes,
    struct cadre_error *error)
{
    *ret_concatenation = (struct concatenation){.sizes = sizes, .count = count};
    uint32_t rank = cadre_tensor_rank(own);
    CADRE_ASSERT(axis < rank);
    int64_t dims[CADRE_RANK_MAX];
    size_t outer = 1;
    size_t inner = 1;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = cadre_tensor_dim(own, i);
        outer *= i < axis ? (size_t)dims[i] : 1;
        inner *= i > axis ? (size_t)dims[i] : 1;
    }
    inner *= cadre_dtype_bytes(cadre_tensor_dtype(own));
    dims[axis] = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] < 0 || sizes[i] > INT64_MAX - dims[axis]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %u says that its tensor has %lld entries along axis %u", i,
                (long long)sizes[i], axis);
        }
        dims[axis] += sizes[i];
    }
    cadre_dtype dtype = cadre_tensor_dtype(own);
    struct device *device = tensor_device(own);
    CADRE_ASSERT(device == NULL || outer == 1);
    CADRE_TRY(
        device == NULL
            ? tensor_create_unset(dtype, rank, dims, &ret_concatenation->result, error)
            : tensor_create_on(device, NULL, dtype, rank, dims, &ret_concatenation->result, error));
    for (uint32_t i = 0; i < count; i++) {
        ret_bytes[i] = outer * (size_t)sizes[i] * inner;
    }
    ret_concatenation->outer = outer;
    ret_concatenation->inner = inner;
    ret_concatenation->pieces = cadre_tensor_data(ret_concatenation->result);
    if (outer > 1) {
        size_t bytes = cadre_tensor_bytes(ret_concatenation->result);
        ret_concatenation->apart = malloc(bytes + 1);
        if (ret_concatenation->apart == NULL) {
            concatenation_drop(ret_concatenation);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu bytes of all replicas", bytes);
        }
        ret_concatenation->pieces = ret_concatenation->apart;
    }
    return CADRE_OK;
}

cadre_tensor *concatenation_end(struct concatenation *concatenation)
{
    CADRE_ASSERT(concatenation->result != NULL);
    if (concatenation->apart != NULL) {
        size_t whole = cadre_tensor_bytes(concatenation->result) / concatenation->outer;
        const uint8_t *from = concatenation->apart;
        uint8_t *column = cadre_tensor_data(concatenation->result);
        for (uint32_t i = 0; i < concatenation->count; i++) {
            size_t width = (size_t)concatenation->sizes[i] * concatenation->inner;
            for (size_t row = 0; width > 0 && row < concatenation->outer; row++) {
                memcpy(column + row * whole, from, width);
                from += width;
            }
            column += width;
        }
        CADRE_ASSERT(
            (size_t)(from - concatenation->apart) == cadre_tensor_bytes(concatenation->result));
    }
    cadre_tensor *result = concatenation->result;
    concatenation->result = NULL;
    concatenation_drop(concatenation);
    return result;
}

void concatenation_drop(struct concatenation *concatenation)
{
    cadre_tensor_release(concatenation->result);
    free(concatenation->apart);
    *concatenation = (struct concatenation){0};
}
