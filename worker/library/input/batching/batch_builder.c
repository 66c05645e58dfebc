/* SPDX-License-Identifier: Apache-2.0
 * See batch_builder.h. */
#include "worker/library/input/batching/batch_builder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/available_memory.h"

/* Whether there is memory left is looked up once in so many bytes. */
#define BYTES_BETWEEN_CHECKS ((uint64_t)64 << 20)

void batch_builder_reset(struct batch_builder *builder)
{
    for (size_t i = 0; i < builder->read.count; i++) {
        cadre_element_release(&builder->read.elements[i]);
    }
    builder->read.count = 0;
    builder->rows = 0;
    builder->bytes_since_check = 0;
}

void batch_builder_clear(struct batch_builder *builder)
{
    element_stack_clear(&builder->read);
    free(builder->tensors);
    *builder = (struct batch_builder){0};
}

cadre_status batch_builder_add(
    struct batch_builder *builder, cadre_element *part, size_t rows, struct cadre_error *error)
{
    builder->bytes_since_check += element_memory_bytes(part);
    CADRE_TRY(element_stack_add(&builder->read, part, error));
    builder->rows += (int64_t)rows;
    if (builder->bytes_since_check < BYTES_BETWEEN_CHECKS) {
        return CADRE_OK;
    }
    builder->bytes_since_check = 0;
    if (available_memory_is_low()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "this machine's memory runs out after %" PRId64
            " elements of one batch; give a smaller batch size",
            builder->rows);
    }
    return CADRE_OK;
}

cadre_status batch_builder_finish(
    struct batch_builder *builder, cadre_element *ret_element, struct cadre_error *error)
{
    size_t count = builder->read.count;
    CADRE_ASSERT(count >= 1);
    if (count == 1) {
        *ret_element = builder->read.elements[0];
        builder->read.count = 0;
        return CADRE_OK;
    }
    if (count > builder->capacity) {
        cadre_tensor **tensors = realloc(builder->tensors, count * sizeof tensors[0]);
        if (tensors == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu pieces", count);
        }
        builder->tensors = tensors;
        builder->capacity = count;
    }
    for (size_t i = 1; i < count; i++) {
        if (builder->read.elements[i].count != builder->read.elements[0].count) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "elements of %" PRIu32 " components follow elements of %" PRIu32
                "; all of a dataset have as many",
                builder->read.elements[i].count, builder->read.elements[0].count);
        }
    }
    for (uint32_t component = 0; component < builder->read.elements[0].count; component++) {
        for (size_t i = 0; i < count; i++) {
            builder->tensors[i] = builder->read.elements[i].tensors[component];
        }
        cadre_status status =
            tensor_concat_rows(builder->tensors, count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status,
                "component %" PRIu32 " of %" PRId64 " elements cannot be joined", component,
                builder->rows);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}
