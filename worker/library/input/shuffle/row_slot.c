/* SPDX-License-Identifier: Apache-2.0
 * Packs elements of one spec into slots and unpacks them. Called by
 * shuffle_buffer.c and shuffle_buffer_state.c, which own the slots. */
#include "worker/library/input/shuffle/row_slot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

cadre_status row_layout_init(
    struct row_layout *layout, const cadre_element_spec *spec, struct cadre_error *error)
{
    *layout = (struct row_layout){.spec = *spec};
    for (uint32_t i = 0; i < spec->count; i++) {
        const cadre_tensor_spec *tensor = &spec->tensors[i];
        int64_t count = 0;
        size_t bytes = 0;
        CADRE_TRY(
            tensor_shape_check(tensor->dtype, tensor->rank, tensor->dims, &count, &bytes, error));
        if (tensor->dtype == CADRE_STRING) {
            layout->strings[i] = (size_t)count;
            layout->string_count += (size_t)count;
            layout->string_components++;
        } else {
            layout->bytes[i] = bytes;
            layout->fixed_bytes += bytes;
        }
        layout->size_bytes =
            layout->string_count > 0 ? (layout->string_count - 1) * sizeof(size_t) : 0;
        if (layout->fixed_bytes + layout->string_count * sizeof(cadre_string) >
            TENSOR_MEMORY_BYTES_MAX) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "an element of more than %zu bytes cannot be held", TENSOR_MEMORY_BYTES_MAX);
        }
    }
    return CADRE_OK;
}

cadre_status row_block_init(struct row_block *block, const struct row_layout *layout,
    const cadre_element *element, size_t rows, struct cadre_error *error)
{
    bool alike = element->count == layout->spec.count;
    for (uint32_t i = 0; alike && i < element->count; i++) {
        const cadre_tensor_spec *spec = &layout->spec.tensors[i];
        const int64_t *dims = cadre_tensor_dims(element->tensors[i]);
        alike = cadre_tensor_dtype(element->tensors[i]) == spec->dtype &&
                cadre_tensor_rank(element->tensors[i]) == spec->rank + 1 &&
                dims[0] == (int64_t)rows &&
                memcmp(dims + 1, spec->dims, spec->rank * sizeof dims[0]) == 0;
        if (!alike) {
            char shape[TENSOR_SHAPE_TEXT_BYTES];
            char expected[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " of %zu elements came as %s, where each was said to be %s; "
                "declare sizes that differ "
                "as CADRE_DIMENSION_ANY in cadre_map_options.output",
                i, rows,
                tensor_shape_text(cadre_tensor_dtype(element->tensors[i]),
                    cadre_tensor_rank(element->tensors[i]), dims, shape),
                tensor_shape_text(spec->dtype, spec->rank, spec->dims, expected));
        }
        block->values[i] = cadre_tensor_const_data(element->tensors[i]);
    }
    return alike ? CADRE_OK
                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                       "an element came with %" PRIu32 " components, where %" PRIu32 " were said",
                       element->count, layout->spec.count);
}

/* --- in --- */

static const cadre_string *block_strings(
    const struct row_layout *layout, const struct row_block *block, uint32_t component, size_t row)
{
    return (const cadre_string *)(const void *)block->values[component] +
           row * layout->strings[component];
}

static size_t text_size(const struct row_layout *layout, const struct row_block *block, size_t row)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < layout->spec.count; i++) {
        const cadre_string *strings = block_strings(layout, block, i, row);
        for (size_t k = 0; k < layout->strings[i]; k++) {
            bytes += strings[k].size;
        }
    }
    return bytes;
}

static void put_strings(
    char *to, const struct row_layout *layout, const struct row_block *block, size_t row)
{
    char *text = to + layout->size_bytes;
    char *sizes_end = text;
    for (uint32_t i = 0; i < layout->spec.count; i++) {
        const cadre_string *strings = block_strings(layout, block, i, row);
        for (size_t k = 0; k < layout->strings[i]; k++) {
            size_t size = strings[k].size;
            if (to < sizes_end) {
                memcpy(to, &size, sizeof size);
                to += sizeof size;
            }
            if (size > 0) {
                memcpy(text, strings[k].bytes, size);
            }
            text += size;
        }
    }
}

cadre_status row_slot_put(struct row_slot *slot, const struct row_layout *layout,
    const struct row_block *block, size_t row, struct slab_allocator *memory,
    struct cadre_error *error)
{
    CADRE_ASSERT(slot->memory == NULL);
    size_t bytes = layout->fixed_bytes + layout->size_bytes;
    if (layout->string_components > 0) {
        bytes += text_size(layout, block, row);
    }
    char *to = slab_alloc(memory, bytes);
    if (to == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to hold an element of %zu bytes", bytes);
    }
    slot->memory = to;
    slot->bytes = bytes;
    for (uint32_t i = 0; i < layout->spec.count && layout->fixed_bytes > 0; i++) {
        memcpy(to, block->values[i] + row * layout->bytes[i], layout->bytes[i]);
        to += layout->bytes[i];
    }
    if (layout->string_components > 0) {
        put_strings(to, layout, block, row);
    }
    return CADRE_OK;
}

/* --- out --- */

/* Where the rows of the element that is made lie, and what comes next there. */
struct row_output {
    char *values[CADRE_ELEMENT_TENSORS_MAX]; /* of strings an array of cadre_string */
    char *text[CADRE_ELEMENT_TENSORS_MAX];
};

static size_t size_at(const char *sizes, size_t number)
{
    size_t size = 0;
    memcpy(&size, sizes + number * sizeof size, sizeof size);
    return size;
}

/* Bytes of the strings of one component in all slots; they begin at string `first` of each. */
static size_t text_bytes(const struct row_slot slots[], size_t count,
    const struct row_layout *layout, size_t first, size_t strings)
{
    size_t total = 0;
    size_t beside = layout->fixed_bytes + layout->size_bytes;
    for (size_t i = 0; i < count; i++) {
        total += slots[i].bytes - beside;
    }
    if (layout->string_components == 1) {
        return total;
    }
    /* Not those of the other components. */
    for (size_t i = 0; i < count; i++) {
        const char *sizes = slots[i].memory + layout->fixed_bytes;
        size_t own = 0;
        size_t others = 0;
        for (size_t k = 0; k + 1 < layout->string_count; k++) {
            *(k >= first && k < first + strings ? &own : &others) += size_at(sizes, k);
        }
        bool has_last = first + strings == layout->string_count && strings > 0;
        total -= has_last ? others : slots[i].bytes - beside - own;
    }
    return total;
}

/* Tensors for `count` rows (stacked), or for one as it is. */
static cadre_status make_output(const struct row_slot slots[], size_t count, bool stacked,
    const struct row_layout *layout, struct row_output *output, cadre_element *ret_element,
    struct cadre_error *error)
{
    size_t string = 0;
    for (uint32_t i = 0; i < layout->spec.count; i++) {
        const cadre_tensor_spec *spec = &layout->spec.tensors[i];
        cadre_tensor **tensor = &ret_element->tensors[i];
        int64_t dims[CADRE_RANK_MAX + 1] = {(int64_t)count};
        memcpy(dims + 1, spec->dims, spec->rank * sizeof dims[0]);
        uint32_t rank = spec->rank + (stacked ? 1 : 0);
        const int64_t *own_dims = dims + (stacked ? 0 : 1);
        if (spec->dtype == CADRE_STRING) {
            size_t text = text_bytes(slots, count, layout, string, layout->strings[i]);
            string += layout->strings[i];
            CADRE_TRY(tensor_strings_create(rank, own_dims, text, tensor, &output->text[i], error));
        } else {
            CADRE_TRY(tensor_create_unset(spec->dtype, rank, own_dims, tensor, error));
        }
        output->values[i] = cadre_tensor_data(*tensor);
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

/* `sizes` is where they are in a slot that ends at `end`. */
static void take_strings(
    const char *sizes, const char *end, const struct row_layout *layout, struct row_output *output)
{
    const char *text = sizes + layout->size_bytes;
    const char *sizes_end = text;
    for (uint32_t i = 0; i < layout->spec.count; i++) {
        cadre_string *to = (cadre_string *)(void *)output->values[i];
        for (size_t k = 0; k < layout->strings[i]; k++) {
            size_t size = (size_t)(end - text);
            if (sizes < sizes_end) {
                size = size_at(sizes, 0);
                sizes += sizeof size;
            }
            memcpy(output->text[i], text, size);
            *to++ = (cadre_string){.bytes = output->text[i], .size = size};
            output->text[i] += size;
            text += size;
        }
        if (layout->strings[i] > 0) {
            output->values[i] = (char *)to;
        }
    }
}

static void row_slot_take(
    const struct row_slot *slot, const struct row_layout *layout, struct row_output *output)
{
    const char *from = slot->memory;
    for (uint32_t i = 0; i < layout->spec.count && layout->fixed_bytes > 0; i++) {
        if (layout->bytes[i] > 0) {
            memcpy(output->values[i], from, layout->bytes[i]);
            output->values[i] += layout->bytes[i];
            from += layout->bytes[i];
        }
    }
    if (layout->string_components > 0) {
        take_strings(from, slot->memory + slot->bytes, layout, output);
    }
}

static cadre_status take_all(const struct row_slot slots[], size_t count, bool stacked,
    const struct row_layout *layout, cadre_element *ret_element, struct cadre_error *error)
{
    struct row_output output = {0};
    *ret_element = (cadre_element){0};
    cadre_status status = make_output(slots, count, stacked, layout, &output, ret_element, error);
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        row_slot_take(&slots[i], layout, &output);
    }
    return CADRE_OK;
}

cadre_status row_slots_stack(const struct row_slot slots[], size_t count,
    const struct row_layout *layout, cadre_element *ret_element, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    return take_all(slots, count, true, layout, ret_element, error);
}

cadre_status row_slot_element(const struct row_slot *slot, const struct row_layout *layout,
    cadre_element *ret_element, struct cadre_error *error)
{
    return take_all(slot, 1, false, layout, ret_element, error);
}

/* --- ids --- */

cadre_status row_slot_set_ids(
    struct row_slot *slot, const uint64_t *ids, size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(slot->ids == NULL);
    slot->ids = calloc(1, sizeof *slot->ids);
    if (slot->ids == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu sample ids", count);
    }
    uint64_t *to = NULL;
    CADRE_TRY(id_list_extend(slot->ids, count, &to, error));
    if (count > 0) {
        memcpy(to, ids, count * sizeof ids[0]);
    }
    return CADRE_OK;
}

cadre_status row_slots_add_ids(
    const struct row_slot slots[], size_t count, struct id_list *ids, struct cadre_error *error)
{
    uint64_t *to = NULL;
    if (ids == NULL) {
        return CADRE_OK;
    }
    for (size_t done = 0; done < count;) {
        size_t single = 0; /* slots from here on with one id each */
        while (done + single < count && slots[done + single].ids == NULL) {
            single++;
        }
        CADRE_TRY(id_list_extend(ids, single, &to, error));
        for (size_t i = 0; i < single; i++) {
            to[i] = slots[done + i].id;
        }
        done += single;
        if (done < count) {
            CADRE_TRY(id_list_add_range(ids, slots[done].ids, 0, slots[done].ids->count, error));
            done++;
        }
    }
    return CADRE_OK;
}

void row_slot_clear_ids(struct row_slot *slot)
{
    id_list_clear(slot->ids);
    free(slot->ids);
    slot->ids = NULL;
}
