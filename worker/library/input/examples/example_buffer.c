/* SPDX-License-Identifier: Apache-2.0
 * From the bytes of a feature to the elements of a tensor; see example_buffer.h. */
#include "worker/library/input/examples/example_buffer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/machine_memory.h"

/* Strings are left where they are when they are at least this part of the bytes that stay in memory
 * for them. */
#define SHARED_PART 4

/* From here on a tensor is compared with the machine's memory: one long sequence in a large batch
 * asks for more than there is, and would get it promised. */
#define MEMORY_CHECKED_BYTES ((size_t)64 << 20)

cadre_status example_buffer_create(struct example_buffer *cells,
    const struct wanted_feature *wanted, uint32_t rank, const int64_t dims[],
    struct cadre_error *error)
{
    size_t bytes = 0;
    *cells = (struct example_buffer){.spec = {.dtype = wanted->dtype, .rank = rank}};
    CADRE_ASSERT(rank <= CADRE_RANK_MAX);
    memcpy(cells->spec.dims, dims, rank * sizeof dims[0]);
    CADRE_TRY(tensor_shape_check(wanted->dtype, rank, dims, &cells->count, &bytes, error));
    if (bytes > MEMORY_CHECKED_BYTES && bytes > machine_memory()) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "feature \"%s\" as %s does not fit into this machine's memory; make the batch smaller, "
            "or "
            "leave out examples that are too long",
            wanted->name, tensor_shape_text(wanted->dtype, rank, dims, shape));
    }
    if (wanted->dtype != CADRE_STRING) {
        return tensor_create_unset(wanted->dtype, rank, dims, &cells->tensor, error);
    }
    cells->strings = fault_point("input.example") ? NULL : malloc(bytes > 0 ? bytes : 1);
    if (cells->strings == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "feature \"%s\": no memory for %" PRId64 " strings", wanted->name, cells->count);
    }
    return CADRE_OK;
}

cadre_status example_buffer_finish(struct example_buffer *cells, cadre_tensor *owner,
    size_t owner_bytes, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    const cadre_tensor_spec *spec = &cells->spec;
    cadre_status status = CADRE_OK;
    size_t text_bytes = 0;
    *ret_tensor = cells->tensor;
    cells->tensor = NULL;
    if (*ret_tensor != NULL) {
        return CADRE_OK;
    }
    for (int64_t i = 0; i < cells->count; i++) {
        text_bytes += cells->strings[i].size;
    }
    bool share = owner != NULL && !cells->own_text && text_bytes >= owner_bytes / SHARED_PART;
    if (share) {
        status = tensor_strings_in(owner, spec->rank, spec->dims, ret_tensor, error);
        if (status == CADRE_OK && cells->count > 0) {
            memcpy(cadre_tensor_data(*ret_tensor), cells->strings,
                (size_t)cells->count * sizeof cells->strings[0]);
        }
    } else {
        status = tensor_from_data(
            CADRE_STRING, spec->rank, spec->dims, cells->strings, ret_tensor, error);
    }
    example_buffer_clear(cells);
    return status;
}

void example_buffer_clear(struct example_buffer *cells)
{
    cadre_tensor_release(cells->tensor);
    free(cells->strings);
    cells->tensor = NULL;
    cells->strings = NULL;
}

static void *cell_at(const struct example_buffer *cells, int64_t number)
{
    if (cells->strings != NULL) {
        return cells->strings + number;
    }
    return (char *)cadre_tensor_data(cells->tensor) +
           (size_t)number * cadre_dtype_bytes(cells->spec.dtype);
}

/* The type of what was found, as it is called here. */
static const char *found_name(const struct example_feature *found)
{
    return cadre_dtype_name(found->kind == EXAMPLE_STRINGS  ? CADRE_STRING
                            : found->kind == EXAMPLE_FLOATS ? CADRE_F32
                                                            : CADRE_I64);
}

static cadre_status example_buffer_decode(const struct wanted_feature *wanted,
    const struct example_feature *found, struct example_bytes example, void *to, uint64_t room,
    uint64_t *ret_count, struct cadre_error *error)
{
    struct example_fault fault = {0};
    if (found->kind != wanted->holds) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" holds values of type %s, and %s is wanted", wanted->name,
            found_name(found), cadre_dtype_name(wanted->dtype));
    }
    if (!example_values(found, to, room, ret_count, &fault)) {
        cadre_status status = example_damaged(&fault, example.bytes, example.size, error);
        return cadre_error_wrap(error, status, "feature \"%s\"", wanted->name);
    }
    return CADRE_OK;
}

static cadre_status set_default(struct example_buffer *cells, int64_t first,
    const struct wanted_feature *wanted, struct cadre_error *error)
{
    if (wanted->default_value == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" is missing and has no default; give cadre_feature.default_value if it "
            "need not be there",
            wanted->name);
    }
    if (wanted->value_bytes > 0) {
        memcpy(cell_at(cells, first), cadre_tensor_const_data(wanted->default_value),
            wanted->value_bytes);
    }
    cells->own_text = true;
    return CADRE_OK;
}

cadre_status example_buffer_set_fixed(struct example_buffer *cells, int64_t first,
    const struct wanted_feature *wanted, const struct example_feature *found,
    struct example_bytes example, struct cadre_error *error)
{
    uint64_t count = 0;
    if (found->kind == EXAMPLE_NOTHING) {
        return set_default(cells, first, wanted, error);
    }
    CADRE_TRY(example_buffer_decode(
        wanted, found, example, cell_at(cells, first), (uint64_t)wanted->count, &count, error));
    if (count != (uint64_t)wanted->count) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" has %" PRIu64 " values, and its shape %s needs %" PRId64, wanted->name,
            count, tensor_shape_text(wanted->dtype, wanted->rank, wanted->dims, shape),
            wanted->count);
    }
    return CADRE_OK;
}

cadre_status example_list_length(const struct wanted_feature *wanted,
    const struct example_feature *found, struct example_bytes example, int64_t *ret_length,
    struct cadre_error *error)
{
    uint64_t count = 0;
    *ret_length = 0;
    if (found->kind == EXAMPLE_NOTHING) {
        return CADRE_OK;
    }
    CADRE_TRY(example_buffer_decode(wanted, found, example, NULL, 0, &count, error));
    if (count % (uint64_t)wanted->count != 0) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" has %" PRIu64 " values, which is no whole number of %s, %" PRId64
            " values each",
            wanted->name, count,
            tensor_shape_text(wanted->dtype, wanted->rank, wanted->dims, shape), wanted->count);
    }
    *ret_length = (int64_t)(count / (uint64_t)wanted->count);
    return CADRE_OK;
}

/* Copies the padding to the cells from `first` to `end`. */
static void example_buffer_pad(
    struct example_buffer *cells, int64_t first, int64_t end, const struct wanted_feature *wanted)
{
    static const cadre_string none = {.bytes = "", .size = 0};
    static const int64_t zero;
    const void *padding = wanted->default_value != NULL
                              ? cadre_tensor_const_data(wanted->default_value)
                          : wanted->dtype == CADRE_STRING ? (const void *)&none
                                                          : (const void *)&zero;
    size_t bytes = cadre_dtype_bytes(wanted->dtype);
    for (int64_t number = first; number < end; number++) {
        memcpy(cell_at(cells, number), padding, bytes);
    }
    /* An empty string may lie anywhere; another one lies in the parser, which need not live on. */
    cells->own_text = cells->own_text || (wanted->default_value != NULL && first < end);
}

cadre_status example_buffer_set_list(struct example_buffer *cells, int64_t first,
    const struct wanted_feature *wanted, const struct example_feature *found,
    struct example_bytes example, int64_t length, int64_t padded, struct cadre_error *error)
{
    int64_t end = first + length * wanted->count;
    if (length > 0) {
        uint64_t count = 0;
        CADRE_TRY(example_buffer_decode(
            wanted, found, example, cell_at(cells, first), (uint64_t)(end - first), &count, error));
        CADRE_ASSERT(count == (uint64_t)(end - first));
    }
    example_buffer_pad(cells, end, first + padded * wanted->count, wanted);
    return CADRE_OK;
}
