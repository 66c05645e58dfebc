/* SPDX-License-Identifier: Apache-2.0
 * See batch_parts.h. */
#include "worker/library/input/batch_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/memory_left.h"

/* What an element takes besides its values while it waits for its batch, at the least. */
#define ELEMENT_OVERHEAD_BYTES 128

/* Whether there is memory left is looked up once in so many bytes. */
#define BYTES_BETWEEN_LOOKS ((uint64_t)64 << 20)

uint64_t element_held_bytes(const cadre_element *element)
{
    uint64_t bytes = ELEMENT_OVERHEAD_BYTES;
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        const bool strings = cadre_tensor_dtype(tensor) == CADRE_STRING;
        const cadre_string *string = strings ? cadre_tensor_const_data(tensor) : NULL;
        bytes += cadre_tensor_bytes(tensor);
        for (int64_t k = 0; strings && k < cadre_tensor_count(tensor); k++) {
            bytes += string[k].size;
        }
    }
    return bytes;
}

void batch_parts_reset(struct batch_parts *parts)
{
    for (size_t i = 0; i < parts->read.count; i++) {
        cadre_element_release(&parts->read.elements[i]);
    }
    parts->read.count = 0;
    parts->rows = 0;
    parts->bytes_unlooked = 0;
}

void batch_parts_clear(struct batch_parts *parts)
{
    element_rows_clear(&parts->read);
    free(parts->tensors);
    *parts = (struct batch_parts){0};
}

cadre_status batch_parts_add(
    struct batch_parts *parts, cadre_element *part, size_t rows, struct cadre_error *error)
{
    parts->bytes_unlooked += element_held_bytes(part);
    CADRE_TRY(element_rows_add(&parts->read, part, error));
    parts->rows += (int64_t)rows;
    if (parts->bytes_unlooked < BYTES_BETWEEN_LOOKS) {
        return CADRE_OK;
    }
    parts->bytes_unlooked = 0;
    if (memory_is_short()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "this machine's memory runs out after %" PRId64
            " elements of one batch; give a smaller batch size",
            parts->rows);
    }
    return CADRE_OK;
}

cadre_status batch_parts_join(
    struct batch_parts *parts, cadre_element *ret_element, struct cadre_error *error)
{
    size_t count = parts->read.count;
    CADRE_ASSERT(count >= 1);
    if (count == 1) {
        *ret_element = parts->read.elements[0];
        parts->read.count = 0;
        return CADRE_OK;
    }
    if (count > parts->capacity) {
        cadre_tensor **tensors = realloc(parts->tensors, count * sizeof tensors[0]);
        if (tensors == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu pieces", count);
        }
        parts->tensors = tensors;
        parts->capacity = count;
    }
    for (size_t i = 1; i < count; i++) {
        if (parts->read.elements[i].count != parts->read.elements[0].count) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "elements of %" PRIu32 " components follow elements of %" PRIu32
                "; all of a dataset have as many",
                parts->read.elements[i].count, parts->read.elements[0].count);
        }
    }
    for (uint32_t component = 0; component < parts->read.elements[0].count; component++) {
        for (size_t i = 0; i < count; i++) {
            parts->tensors[i] = parts->read.elements[i].tensors[component];
        }
        cadre_status status =
            tensor_concat_rows(parts->tensors, count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status,
                "component %" PRIu32 " of %" PRId64 " elements cannot be joined", component,
                parts->rows);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}
