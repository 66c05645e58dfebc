/* SPDX-License-Identifier: Apache-2.0
 * Positions as bytes; see iterator_state.h. An item is a byte that names its kind, then
 *
 *     number    8 bytes
 *     bytes     their count as 8 bytes, then they
 *     ids       their count as 8 bytes, then 8 bytes each
 *     element   the number of components as 1 byte, then of each: type and rank as 1 byte each, 8
 *               bytes for each dimension, and the values; strings as 8 bytes for each one's size,
 *               then the bytes of all
 *
 * Numbers are little endian. Types are those of enum cadre_dtype. */
#include "worker/library/input/node/iterator_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they are");

#define NUMBER_BYTES 8
#define COMPOSITE_SHIFT                                                                            \
    6 /* a tensor's first byte: its dtype, and from this bit on its composite                      \
       */

enum kind { KIND_NUMBER = 'n', KIND_BYTES = 'b', KIND_IDS = 'i', KIND_ELEMENT = 'e' };

static const char *kind_name(uint8_t kind)
{
    switch (kind) {
    case KIND_NUMBER:
        return "a number";
    case KIND_BYTES:
        return "a text";
    case KIND_IDS:
        return "a list of ids";
    case KIND_ELEMENT:
        return "an element";
    default:
        return "nothing that is known";
    }
}

/* --- writing --- */

void iterator_state_writer_clear(struct iterator_state_writer *writer)
{
    free(writer->bytes);
    writer->bytes = NULL;
    writer->count = 0;
    writer->capacity = 0;
}

/* Room for an item of 1 + `more` bytes, and its kind. After it `put` cannot fail. */
static cadre_status iterator_state_begin(
    struct iterator_state_writer *writer, enum kind kind, size_t more, struct cadre_error *error)
{
    size_t limit = writer->limit != 0 ? writer->limit : SIZE_MAX / 2;
    if (writer->count >= limit || more > limit - writer->count - 1) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the position of the pipeline takes more than %zu bytes, which is the limit; what "
            "waits "
            "in buffers is part of it, so make shuffle buffers or batches smaller",
            limit);
    }
    size_t needed = writer->count + 1 + more;
    if (needed > writer->capacity) {
        size_t capacity = writer->capacity < 128 ? 256 : 2 * writer->capacity;
        capacity = capacity < needed ? needed : capacity;
        uint8_t *bytes = realloc(writer->bytes, capacity);
        if (bytes == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %zu bytes of a pipeline's position", capacity);
        }
        writer->bytes = bytes;
        writer->capacity = capacity;
    }
    writer->bytes[writer->count++] = (uint8_t)kind;
    return CADRE_OK;
}

static void iterator_state_put(
    struct iterator_state_writer *writer, const void *bytes, size_t count)
{
    CADRE_ASSERT(count <= writer->capacity - writer->count);
    if (count > 0) {
        memcpy(writer->bytes + writer->count, bytes, count);
        writer->count += count;
    }
}

static void put_number(struct iterator_state_writer *writer, uint64_t number)
{
    iterator_state_put(writer, &number, sizeof number);
}

cadre_status iterator_state_write_number(
    struct iterator_state_writer *writer, uint64_t number, struct cadre_error *error)
{
    CADRE_TRY(iterator_state_begin(writer, KIND_NUMBER, NUMBER_BYTES, error));
    put_number(writer, number);
    return CADRE_OK;
}

cadre_status iterator_state_write_bytes(struct iterator_state_writer *writer, const void *bytes,
    size_t count, struct cadre_error *error)
{
    size_t more = count < SIZE_MAX - NUMBER_BYTES ? NUMBER_BYTES + count : SIZE_MAX;
    CADRE_TRY(iterator_state_begin(writer, KIND_BYTES, more, error));
    put_number(writer, count);
    iterator_state_put(writer, bytes, count);
    return CADRE_OK;
}

cadre_status iterator_state_write_ids(
    struct iterator_state_writer *writer, const struct id_list *ids, struct cadre_error *error)
{
    size_t bytes = ids->count * sizeof ids->ids[0];
    CADRE_TRY(iterator_state_begin(writer, KIND_IDS, NUMBER_BYTES + bytes, error));
    put_number(writer, ids->count);
    iterator_state_put(writer, ids->ids, bytes);
    return CADRE_OK;
}

static size_t text_bytes(const cadre_tensor *tensor)
{
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    size_t bytes = 0;
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        bytes += strings[i].size;
    }
    return bytes;
}

static size_t tensor_saved_bytes(const cadre_tensor *tensor)
{
    size_t head = 2 + NUMBER_BYTES * (size_t)cadre_tensor_rank(tensor);
    if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
        return head + cadre_tensor_bytes(tensor);
    }
    return head + NUMBER_BYTES * (size_t)cadre_tensor_count(tensor) + text_bytes(tensor);
}

static void put_strings(
    struct iterator_state_writer *writer, const cadre_string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        put_number(writer, strings[i].size);
    }
    for (int64_t i = 0; i < count; i++) {
        iterator_state_put(writer, strings[i].bytes, strings[i].size);
    }
}

cadre_status iterator_state_write_element(
    struct iterator_state_writer *writer, const cadre_element *element, struct cadre_error *error)
{
    CADRE_ASSERT(element->count <= CADRE_ELEMENT_TENSORS_MAX);
    size_t bytes = 1;
    for (uint32_t i = 0; i < element->count; i++) {
        bytes += tensor_saved_bytes(element->tensors[i]);
    }
    CADRE_TRY(iterator_state_begin(writer, KIND_ELEMENT, bytes, error));
    iterator_state_put(writer, &(uint8_t){(uint8_t)element->count}, 1);
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        uint8_t head[2] = {
            (uint8_t)(cadre_tensor_dtype(tensor) | tensor_composite(tensor) << COMPOSITE_SHIFT),
            (uint8_t)cadre_tensor_rank(tensor)};
        iterator_state_put(writer, head, sizeof head);
        iterator_state_put(writer, cadre_tensor_dims(tensor), head[1] * sizeof(int64_t));
        if (cadre_tensor_dtype(tensor) == CADRE_STRING) {
            put_strings(writer, cadre_tensor_const_data(tensor), cadre_tensor_count(tensor));
        } else {
            iterator_state_put(writer, cadre_tensor_const_data(tensor), cadre_tensor_bytes(tensor));
        }
    }
    return CADRE_OK;
}

/* --- reading: `cursor` is a copy of the reader, which is moved only when the item was whole --- */

static cadre_status cut_short(const struct iterator_state_reader *cursor, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the saved position of a pipeline ends at byte %zu, inside of something; it is damaged",
        cursor->count);
}

/* `count` bytes that are there, or NULL. */
static const uint8_t *iterator_state_take(struct iterator_state_reader *cursor, uint64_t count)
{
    if (count > cursor->count - cursor->at) {
        return NULL;
    }
    const uint8_t *bytes = cursor->bytes + cursor->at;
    cursor->at += (size_t)count;
    return bytes;
}

static cadre_status take_number(
    struct iterator_state_reader *cursor, uint64_t *ret_number, struct cadre_error *error)
{
    const uint8_t *bytes = iterator_state_take(cursor, NUMBER_BYTES);
    if (bytes == NULL) {
        return cut_short(cursor, error);
    }
    memcpy(ret_number, bytes, NUMBER_BYTES);
    return CADRE_OK;
}

static cadre_status iterator_state_expect(
    struct iterator_state_reader *cursor, enum kind kind, struct cadre_error *error)
{
    CADRE_ASSERT(cursor->at <= cursor->count);
    const uint8_t *found = iterator_state_take(cursor, 1);
    if (found == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of a pipeline ends at byte %zu, where %s should be; it is of "
            "another "
            "pipeline, or damaged",
            cursor->count, kind_name((uint8_t)kind));
    }
    if (*found != (uint8_t)kind) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of a pipeline has %s at byte %zu, where %s should be; it is of "
            "another pipeline, or damaged",
            kind_name(*found), cursor->at - 1, kind_name((uint8_t)kind));
    }
    return CADRE_OK;
}

cadre_status iterator_state_read_number(
    struct iterator_state_reader *reader, uint64_t *ret_number, struct cadre_error *error)
{
    struct iterator_state_reader cursor = *reader;
    CADRE_TRY(iterator_state_expect(&cursor, KIND_NUMBER, error));
    CADRE_TRY(take_number(&cursor, ret_number, error));
    *reader = cursor;
    return CADRE_OK;
}

cadre_status iterator_state_read_bytes(struct iterator_state_reader *reader, const void **ret_bytes,
    size_t *ret_count, struct cadre_error *error)
{
    struct iterator_state_reader cursor = *reader;
    uint64_t count = 0;
    CADRE_TRY(iterator_state_expect(&cursor, KIND_BYTES, error));
    CADRE_TRY(take_number(&cursor, &count, error));
    const uint8_t *bytes = iterator_state_take(&cursor, count);
    if (bytes == NULL) {
        return cut_short(&cursor, error);
    }
    *ret_bytes = bytes;
    *ret_count = (size_t)count;
    *reader = cursor;
    return CADRE_OK;
}

cadre_status iterator_state_read_ids(
    struct iterator_state_reader *reader, struct id_list *ids, struct cadre_error *error)
{
    struct iterator_state_reader cursor = *reader;
    uint64_t count = 0;
    uint64_t bytes = 0;
    CADRE_TRY(iterator_state_expect(&cursor, KIND_IDS, error));
    CADRE_TRY(take_number(&cursor, &count, error));
    const uint8_t *from = __builtin_mul_overflow(count, NUMBER_BYTES, &bytes)
                              ? NULL
                              : iterator_state_take(&cursor, bytes);
    if (from == NULL) {
        return cut_short(&cursor, error);
    }
    size_t before = ids->count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = 0;
        memcpy(&id, from + i * NUMBER_BYTES, NUMBER_BYTES);
        cadre_status status = id_list_add(ids, id, error);
        if (status != CADRE_OK) {
            ids->count = before;
            return status;
        }
    }
    *reader = cursor;
    return CADRE_OK;
}

static cadre_status take_strings(struct iterator_state_reader *cursor, uint32_t rank,
    const int64_t *dims, int64_t count, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    const uint8_t *sizes = (uint64_t)count > cursor->count / NUMBER_BYTES
                               ? NULL
                               : iterator_state_take(cursor, (uint64_t)count * NUMBER_BYTES);
    if (sizes == NULL) {
        return cut_short(cursor, error);
    }
    CADRE_FREE_AT_EXIT cadre_string *strings = calloc((size_t)count + 1, sizeof strings[0]);
    if (strings == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " saved strings", count);
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t size = 0;
        memcpy(&size, sizes + i * NUMBER_BYTES, NUMBER_BYTES);
        const uint8_t *bytes = iterator_state_take(cursor, size);
        if (bytes == NULL) {
            return cut_short(cursor, error);
        }
        strings[i] = (cadre_string){.bytes = (const char *)bytes, .size = (size_t)size};
    }
    return tensor_from_data(CADRE_STRING, rank, dims, strings, ret_tensor, error);
}

static cadre_status check_truths(const uint8_t *values, size_t count, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i] > 1) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the saved position of a pipeline has a truth value of %d, which is neither 0 nor "
                "1; it is damaged",
                values[i]);
        }
    }
    return CADRE_OK;
}

static cadre_status take_tensor(
    struct iterator_state_reader *cursor, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX] = {0};
    int64_t count = 0;
    size_t bytes = 0;
    const uint8_t *head = iterator_state_take(cursor, 2);
    if (head == NULL) {
        return cut_short(cursor, error);
    }
    const cadre_dtype dtype = (cadre_dtype)(head[0] & ((1 << COMPOSITE_SHIFT) - 1));
    const cadre_composite composite = (cadre_composite)(head[0] >> COMPOSITE_SHIFT);
    uint32_t rank = head[1];
    if (composite > CADRE_COMPOSITE_SPARSE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of a pipeline holds a tensor of kind %u, which does not exist",
            (unsigned)head[0]);
    }
    for (uint32_t axis = 0; axis < rank && axis < CADRE_RANK_MAX; axis++) {
        uint64_t size = 0;
        CADRE_TRY(take_number(cursor, &size, error));
        dims[axis] = (int64_t)size;
    }
    cadre_status status = tensor_shape_check(dtype, rank, dims, &count, &bytes, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(
            error, status, "the saved position of a pipeline holds a tensor that cannot be");
    }
    if (dtype == CADRE_STRING) {
        return take_strings(cursor, rank, dims, count, ret_tensor, error);
    }
    const uint8_t *values = iterator_state_take(cursor, bytes);
    if (values == NULL) {
        return cut_short(cursor, error);
    }
    if (dtype == CADRE_BOOL) {
        CADRE_TRY(check_truths(values, bytes, error));
    }
    CADRE_TRY(tensor_from_data(dtype, rank, dims, values, ret_tensor, error));
    tensor_set_composite(*ret_tensor, composite);
    return CADRE_OK;
}

cadre_status iterator_state_read_element(
    struct iterator_state_reader *reader, cadre_element *ret_element, struct cadre_error *error)
{
    struct iterator_state_reader cursor = *reader;
    *ret_element = (cadre_element){0};
    CADRE_TRY(iterator_state_expect(&cursor, KIND_ELEMENT, error));
    const uint8_t *count = iterator_state_take(&cursor, 1);
    if (count == NULL) {
        return cut_short(&cursor, error);
    }
    if (*count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of a pipeline holds an element of %d components; the most is %d",
            *count, CADRE_ELEMENT_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < *count; i++) {
        cadre_status status = take_tensor(&cursor, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    *reader = cursor;
    return CADRE_OK;
}
