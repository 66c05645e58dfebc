/* SPDX-License-Identifier: Apache-2.0
 * Tensors. One that owns memory of the host is one block: the header, then the elements; a view has
 * a header only and holds a reference of the owner; one over memory of the program has a header and
 * the function that releases that. tensor_on_device.c has those on devices, tensor_public.c the
 * public functions. */
#include "worker/library/device/tensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/local_device.h"
#include "worker/library/device/tensor_memory.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/device/tensor_struct.h"

#define BYTES_MAX (INT64_C(1) << 62)

#define HEADER_BYTES                                                                               \
    ((sizeof(struct cadre_tensor) + CADRE_TENSOR_ALIGN - 1) / CADRE_TENSOR_ALIGN *                 \
        CADRE_TENSOR_ALIGN)

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [CADRE_DTYPE_NONE] = {"none", 0},
    [CADRE_F64] = {"f64", 8},
    [CADRE_F32] = {"f32", 4},
    [CADRE_F16] = {"f16", 2},
    [CADRE_BF16] = {"bf16", 2},
    [CADRE_I64] = {"i64", 8},
    [CADRE_I32] = {"i32", 4},
    [CADRE_I16] = {"i16", 2},
    [CADRE_I8] = {"i8", 1},
    [CADRE_U32] = {"u32", 4},
    [CADRE_U16] = {"u16", 2},
    [CADRE_U8] = {"u8", 1},
    [CADRE_BOOL] = {"bool", 1},
    [CADRE_STRING] = {"string", sizeof(cadre_string)},
};

static size_t dtype_row(cadre_dtype dtype)
{
    return (int)dtype >= 0 && (size_t)dtype < CADRE_COUNT_OF(dtypes) ? (size_t)dtype : 0;
}

size_t cadre_dtype_bytes(cadre_dtype dtype)
{
    return dtypes[dtype_row(dtype)].bytes;
}

const char *cadre_dtype_name(cadre_dtype dtype)
{
    return dtypes[dtype_row(dtype)].name;
}

const char *tensor_shape_text(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, char text[TENSOR_SHAPE_TEXT_BYTES])
{
    int used = snprintf(text, TENSOR_SHAPE_TEXT_BYTES, "%s [", cadre_dtype_name(dtype));
    for (uint32_t axis = 0; axis < rank && axis < CADRE_RANK_MAX; axis++) {
        const char *comma = axis == 0 ? "" : ", ";
        char *end = text + used;
        size_t room = (size_t)(TENSOR_SHAPE_TEXT_BYTES - used);
        used += dims[axis] == CADRE_DIMENSION_ANY
                    ? snprintf(end, room, "%s?", comma)
                    : snprintf(end, room, "%s%" PRId64, comma, dims[axis]);
    }
    snprintf(text + used, (size_t)(TENSOR_SHAPE_TEXT_BYTES - used), "]");
    return text;
}

cadre_status tensor_shape_check(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    int64_t *ret_count, size_t *ret_bytes, struct cadre_error *error)
{
    if (cadre_dtype_bytes(dtype) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a tensor type; use one of enum cadre_dtype", (int)dtype);
    }
    if (rank > CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "rank %" PRIu32 " is over the limit of %d dimensions", rank, CADRE_RANK_MAX);
    }
    if (rank > 0 && dims == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of rank %" PRIu32 " needs its dimensions, but dims is NULL", rank);
    }
    int64_t count = 1;
    bool too_large = false;
    bool empty = false;
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (dims[axis] < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "dimension %" PRIu32 " is %" PRId64 "; sizes are 0 or more", axis, dims[axis]);
        }
        empty = empty || dims[axis] == 0;
        too_large =
            too_large || (dims[axis] > 0 && __builtin_mul_overflow(count, dims[axis], &count));
    }
    int64_t bytes = 0;
    count = empty ? 0 : count;
    too_large =
        !empty &&
        (too_large || __builtin_mul_overflow(count, (int64_t)cadre_dtype_bytes(dtype), &bytes) ||
            bytes > BYTES_MAX);
    if (too_large) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of %s has more bytes than can be addressed",
            tensor_shape_text(dtype, rank, dims, shape));
    }
    *ret_count = count;
    *ret_bytes = (size_t)bytes;
    return CADRE_OK;
}

cadre_tensor *tensor_new_header(enum tensor_memory_kind kind, size_t bytes, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims)
{
    cadre_tensor *tensor = tensor_memory_get(kind, bytes);
    if (tensor != NULL) {
        *tensor = (cadre_tensor){.dtype = dtype,
            .rank = (uint8_t)rank,
            .processor = local_device_preferred(),
            .kind = (uint8_t)kind,
            .block_bytes = bytes};
        atomic_init(&tensor->references, 1);
        if (rank > 0) {
            memcpy(tensor->dims, dims, rank * sizeof dims[0]);
        }
    }
    return tensor;
}

/* An owning tensor with `extra_bytes` behind its elements; nothing but the header is written. */
static cadre_status tensor_allocate(enum tensor_memory_kind kind, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, size_t extra_bytes, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    *ret_tensor = NULL;
    CADRE_TRY(tensor_shape_check(dtype, rank, dims, &count, &bytes, error));
    CADRE_ASSERT(extra_bytes <= (size_t)BYTES_MAX);
    size_t total = HEADER_BYTES + bytes + extra_bytes;
    /* The elements of strings are pointers, which are not valid in another process. */
    if (kind == TENSOR_MEMORY_SHARED && dtype == CADRE_STRING) {
        kind = TENSOR_MEMORY_HOST;
    }
    cadre_tensor *tensor = tensor_new_header(kind, total, dtype, rank, dims);
    if (tensor == NULL && kind == TENSOR_MEMORY_SHARED) {
        tensor = tensor_new_header(TENSOR_MEMORY_HOST, total, dtype, rank, dims);
    }
    if (tensor == NULL) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a tensor of %s (%zu bytes)", tensor_shape_text(dtype, rank, dims, shape),
            total);
    }
    tensor->count = count;
    tensor->bytes = bytes;
    tensor->data = (char *)tensor + HEADER_BYTES;
    *ret_tensor = tensor;
    return CADRE_OK;
}

cadre_status tensor_create_kind(enum tensor_memory_kind kind, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    return tensor_allocate(kind, dtype, rank, dims, 0, ret_tensor, error);
}

/* The tensor whose elements they are: a view's are another one's. */
static cadre_tensor *owner_of(const cadre_tensor *tensor)
{
    return tensor->elements == TENSOR_ELEMENTS_VIEWED ? tensor->holds
                                                      : (cadre_tensor *)(uintptr_t)tensor;
}

enum tensor_memory_kind tensor_kind(const cadre_tensor *tensor)
{
    return (enum tensor_memory_kind)owner_of(tensor)->kind;
}

cadre_status tensor_create_unset(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    return tensor_allocate(tensor_memory_preferred(), dtype, rank, dims, 0, ret_tensor, error);
}

cadre_status tensor_create(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(tensor_create_unset(dtype, rank, dims, ret_tensor, error));
    if (dtype == CADRE_STRING) {
        strings_clear((cadre_string *)(void *)(*ret_tensor)->data, (*ret_tensor)->count);
    } else {
        memset((*ret_tensor)->data, 0, (*ret_tensor)->bytes);
    }
    return CADRE_OK;
}

cadre_status tensor_strings_create(uint32_t rank, const int64_t *dims, size_t text_bytes,
    cadre_tensor **ret_tensor, char **ret_text, struct cadre_error *error)
{
    *ret_tensor = NULL;
    if (text_bytes > TENSOR_TEXT_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "strings of %zu bytes are more than can be addressed", text_bytes);
    }
    CADRE_TRY(tensor_allocate(
        tensor_memory_preferred(), CADRE_STRING, rank, dims, text_bytes, ret_tensor, error));
    *ret_text = (*ret_tensor)->data + (*ret_tensor)->bytes;
    return CADRE_OK;
}

cadre_status tensor_strings_in(cadre_tensor *owner, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_TRY(
        tensor_allocate(tensor_memory_preferred(), CADRE_STRING, rank, dims, 0, ret_tensor, error));
    (*ret_tensor)->holds = tensor_keep(owner);
    return CADRE_OK;
}

cadre_status tensor_from_data(cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    const void *data, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    *ret_tensor = NULL;
    CADRE_TRY(tensor_shape_check(dtype, rank, dims, &count, &bytes, error));
    if (data == NULL && count > 0) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of %s needs its values, but data is NULL",
            tensor_shape_text(dtype, rank, dims, shape));
    }
    size_t text_bytes = 0;
    if (dtype == CADRE_STRING) {
        CADRE_TRY(strings_measure(data, count, &text_bytes, error));
    }
    CADRE_TRY(tensor_allocate(
        tensor_memory_preferred(), dtype, rank, dims, text_bytes, ret_tensor, error));
    cadre_tensor *tensor = *ret_tensor;
    if (dtype == CADRE_STRING) {
        strings_copy((cadre_string *)(void *)tensor->data, data, count, tensor->data + bytes);
    } else if (bytes > 0) {
        memcpy(tensor->data, data, bytes);
    }
    return CADRE_OK;
}

cadre_status tensor_over(
    const struct tensor_lent *lent, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    *ret_tensor = NULL;
    CADRE_TRY(tensor_shape_check(lent->dtype, lent->rank, lent->dims, &count, &bytes, error));
    size_t align = lent->dtype == CADRE_STRING ? sizeof(void *) : cadre_dtype_bytes(lent->dtype);
    if (lent->data == NULL || (uintptr_t)lent->data % align != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a tensor of %s cannot use memory at %p; give an address that is a multiple of "
            "%zu, or copy by cadre_tensor_from_data",
            tensor_shape_text(lent->dtype, lent->rank, lent->dims, shape), lent->data, align);
    }
    cadre_tensor *tensor = tensor_new_header(
        TENSOR_MEMORY_HOST, sizeof(struct tensor_over), lent->dtype, lent->rank, lent->dims);
    if (tensor == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a tensor over memory of the program");
    }
    tensor->elements = TENSOR_ELEMENTS_LENT;
    tensor->count = count;
    tensor->bytes = bytes;
    tensor->data = lent->data;
    struct tensor_over *over = (struct tensor_over *)(void *)tensor;
    over->release = lent->release;
    over->user = lent->user;
    *ret_tensor = tensor;
    return CADRE_OK;
}

cadre_status tensor_copy(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    struct device *device = tensor_device(tensor);
    if (device != NULL) {
        return tensor_copy_begin(device, tensor, ret_tensor, error);
    }
    CADRE_TRY(tensor_from_data(
        tensor->dtype, tensor->rank, tensor->dims, tensor->data, ret_tensor, error));
    (*ret_tensor)->composite = tensor->composite;
    return CADRE_OK;
}

/* A view of `tensor` with its own shape, starting `offset` bytes into it. */
static cadre_status make_view(cadre_tensor *tensor, size_t offset, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_view, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    CADRE_TRY(tensor_shape_check(tensor->dtype, rank, dims, &count, &bytes, error));
    cadre_tensor *view =
        tensor_new_header(TENSOR_MEMORY_HOST, sizeof *view, tensor->dtype, rank, dims);
    if (view == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a view of a tensor");
    }
    CADRE_ASSERT(offset + bytes <= tensor->bytes);
    view->elements = TENSOR_ELEMENTS_VIEWED;
    view->count = count;
    view->bytes = bytes;
    view->data = tensor->data + offset;
    view->holds = tensor_keep(owner_of(tensor));
    *ret_view = view;
    return CADRE_OK;
}

/* Refuses scalars and rows outside the tensor; returns the bytes of one row. */
static cadre_status check_rows(const cadre_tensor *tensor, int64_t first, int64_t count,
    size_t *ret_row_bytes, struct cadre_error *error)
{
    if (tensor->rank == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "a scalar has no rows; batch or stack it first");
    }
    if (first < 0 || count < 0 || first > tensor->dims[0] || count > tensor->dims[0] - first) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%" PRId64 " rows from row %" PRId64 " on lie outside a tensor of %" PRId64 " rows",
            count, first, tensor->dims[0]);
    }
    *ret_row_bytes = tensor->dims[0] == 0 ? 0 : tensor->bytes / (size_t)tensor->dims[0];
    return CADRE_OK;
}

cadre_status tensor_view_rows(cadre_tensor *tensor, int64_t first, int64_t count,
    cadre_tensor **ret_view, struct cadre_error *error)
{
    size_t row_bytes = 0;
    *ret_view = NULL;
    CADRE_TRY(check_rows(tensor, first, count, &row_bytes, error));
    int64_t dims[CADRE_RANK_MAX];
    memcpy(dims, tensor->dims, sizeof dims);
    dims[0] = count;
    return make_view(tensor, (size_t)first * row_bytes, tensor->rank, dims, ret_view, error);
}

cadre_status tensor_view_row(
    cadre_tensor *tensor, int64_t row, cadre_tensor **ret_view, struct cadre_error *error)
{
    size_t row_bytes = 0;
    *ret_view = NULL;
    CADRE_TRY(check_rows(tensor, row, 1, &row_bytes, error));
    return make_view(
        tensor, (size_t)row * row_bytes, tensor->rank - 1, tensor->dims + 1, ret_view, error);
}

cadre_status tensor_view_flat(
    cadre_tensor *tensor, cadre_tensor **ret_view, struct cadre_error *error)
{
    *ret_view = NULL;
    return make_view(tensor, 0, 1, &tensor->count, ret_view, error);
}

cadre_composite tensor_composite(const cadre_tensor *tensor)
{
    return (cadre_composite)tensor->composite;
}

void tensor_set_composite(cadre_tensor *tensor, cadre_composite composite)
{
    CADRE_ASSERT(composite <= CADRE_COMPOSITE_SPARSE);
    tensor->composite = (uint8_t)(composite & 0xf);
}

cadre_dtype cadre_tensor_dtype(const cadre_tensor *tensor)
{
    return tensor == NULL ? CADRE_DTYPE_NONE : tensor->dtype;
}

uint32_t cadre_tensor_rank(const cadre_tensor *tensor)
{
    return tensor == NULL ? 0 : tensor->rank;
}

const int64_t *cadre_tensor_dims(const cadre_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->dims;
}

int64_t cadre_tensor_dim(const cadre_tensor *tensor, uint32_t axis)
{
    return tensor == NULL || axis >= tensor->rank ? 0 : tensor->dims[axis];
}

int64_t cadre_tensor_rows(const cadre_tensor *tensor)
{
    if (tensor == NULL) {
        return 0;
    }
    return tensor->rank == 0 ? 1 : tensor->dims[0];
}

int64_t cadre_tensor_count(const cadre_tensor *tensor)
{
    return tensor == NULL ? 0 : tensor->count;
}

size_t cadre_tensor_bytes(const cadre_tensor *tensor)
{
    return tensor == NULL ? 0 : tensor->bytes;
}

void *cadre_tensor_data(cadre_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->data;
}

const void *cadre_tensor_const_data(const cadre_tensor *tensor)
{
    return tensor == NULL ? NULL : tensor->data;
}
