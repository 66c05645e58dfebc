/* SPDX-License-Identifier: Apache-2.0
 * See element_stack.h. */
#include "worker/library/input/node/element_stack.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

/* What an element takes besides its values while it waits for its batch, at the least. */
#define ELEMENT_OVERHEAD_BYTES 128

uint64_t element_memory_bytes(const cadre_element *element)
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

void element_stack_clear(struct element_stack *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        cadre_element_release(&rows->elements[i]);
    }
    free(rows->elements);
    *rows = (struct element_stack){0};
}

/* The capacity follows what comes, not what was asked for. */
cadre_status element_stack_add(
    struct element_stack *rows, cadre_element *element, struct cadre_error *error)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity == 0 ? 32 : 2 * rows->capacity;
        cadre_element *elements = realloc(rows->elements, capacity * sizeof elements[0]);
        if (elements == NULL) {
            cadre_element_release(element);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu elements of a batch", capacity);
        }
        rows->elements = elements;
        rows->capacity = capacity;
    }
    rows->elements[rows->count++] = *element;
    *element = (cadre_element){0};
    return CADRE_OK;
}

cadre_status element_stack_finish(
    const struct element_stack *rows, cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_ASSERT(rows->count >= 1);
    uint32_t components = rows->elements[0].count;
    *ret_element = (cadre_element){0};
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(rows->count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to stack %zu elements", rows->count);
    }
    for (uint32_t component = 0; component < components; component++) {
        for (size_t i = 0; i < rows->count; i++) {
            if (rows->elements[i].count != components) {
                cadre_element_release(ret_element);
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "element %zu has %" PRIu32 " components and the first has %" PRIu32, i,
                    rows->elements[i].count, components);
            }
            tensors[i] = rows->elements[i].tensors[component];
        }
        cadre_status status =
            tensor_stack(tensors, rows->count, &ret_element->tensors[component], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status,
                "component %" PRIu32 " of %zu elements cannot be stacked "
                "(cadre_dataset_padded_batch pads them; sizes that "
                "differ are declared in cadre_map_options.output)",
                component, rows->count);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}

cadre_status element_stack_concat(const struct element_stack *rows, const char *who,
    const char *end, cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_ASSERT(rows->count >= 1);
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(rows->count, sizeof tensors[0]);
    if (tensors == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to join %zu pieces", who, rows->count);
    }
    for (uint32_t component = 0; component < rows->elements[0].count; component++) {
        cadre_status status = CADRE_OK;
        for (size_t i = 0; i < rows->count && status == CADRE_OK; i++) {
            tensors[i] = rows->elements[i].tensors[component];
            if (rows->elements[i].count != rows->elements[0].count) {
                status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "%s: elements of %" PRIu32 " and of %" PRIu32 " components", who,
                    rows->elements[0].count, rows->elements[i].count);
            }
        }
        if (status == CADRE_OK) {
            status =
                tensor_concat_rows(tensors, rows->count, &ret_element->tensors[component], error);
        }
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(
                error, status, "%s: component %" PRIu32 "%s", who, component, end);
        }
        ret_element->count = component + 1;
    }
    return CADRE_OK;
}
