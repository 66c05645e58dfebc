/* SPDX-License-Identifier: Apache-2.0
 * See closure_wire.h. Called by worker_connection.c, worker_connection_results.c and
 * closure_run.c. */
#include "worker/library/runtime/closures/closure_wire.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

#define HEAD_BYTES 24

enum item_tag { ITEM_TENSOR = 1, ITEM_OBJECT = 2 };

struct head {
    uint32_t tag;
    uint32_t dtype;
    uint32_t rank;
    uint32_t zero;
    uint64_t bytes;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "it is sent as it lies in memory");

static size_t text_bytes(const cadre_tensor *tensor)
{
    CADRE_ASSERT(cadre_tensor_dtype(tensor) == CADRE_STRING);
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    size_t bytes = 0;
    if (strings_measure(strings, cadre_tensor_count(tensor), &bytes, NULL) != CADRE_OK) {
        return SIZE_MAX;
    }
    return bytes;
}

static size_t data_bytes(const cadre_tensor *tensor)
{
    if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
        return cadre_tensor_bytes(tensor);
    }
    size_t text = text_bytes(tensor);
    size_t sizes = (size_t)cadre_tensor_count(tensor) * sizeof(uint64_t);
    return text > CLOSURE_BYTES_MAX ? SIZE_MAX : sizes + text;
}

size_t wire_item_bytes(const struct wire_item *item)
{
    if (item->tensor == NULL) {
        return HEAD_BYTES;
    }
    size_t bytes = data_bytes(item->tensor);
    if (bytes > CLOSURE_BYTES_MAX) {
        return SIZE_MAX;
    }
    return HEAD_BYTES + cadre_tensor_rank(item->tensor) * sizeof(int64_t) + wire_padded(bytes);
}

static uint8_t *closure_wire_put(uint8_t *at, const void *bytes, size_t count)
{
    if (count > 0) {
        memcpy(at, bytes, count);
    }
    return at + count;
}

static uint8_t *put_strings(uint8_t *at, const cadre_tensor *tensor)
{
    CADRE_ASSERT(cadre_tensor_dtype(tensor) == CADRE_STRING);
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    int64_t count = cadre_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        uint64_t size = strings[i].size;
        at = closure_wire_put(at, &size, sizeof size);
    }
    for (int64_t i = 0; i < count; i++) {
        at = closure_wire_put(at, strings[i].bytes, strings[i].size);
    }
    return at;
}

uint8_t *wire_item_write(const struct wire_item *item, uint8_t *at)
{
    const cadre_tensor *tensor = item->tensor;
    if (tensor == NULL) {
        struct head object = {.tag = ITEM_OBJECT, .bytes = item->object};
        return closure_wire_put(at, &object, sizeof object);
    }
    size_t bytes = data_bytes(tensor);
    CADRE_ASSERT(bytes <= CLOSURE_BYTES_MAX); /* wire_item_bytes was called before */
    struct head head = {.tag = ITEM_TENSOR,
        .dtype = (uint32_t)cadre_tensor_dtype(tensor),
        .rank = cadre_tensor_rank(tensor),
        .bytes = bytes};
    at = closure_wire_put(at, &head, sizeof head);
    at = closure_wire_put(at, cadre_tensor_dims(tensor), head.rank * sizeof(int64_t));
    at = cadre_tensor_dtype(tensor) == CADRE_STRING
             ? put_strings(at, tensor)
             : closure_wire_put(at, cadre_tensor_const_data(tensor), bytes);
    memset(at, 0, wire_padded(bytes) - bytes);
    return at + (wire_padded(bytes) - bytes);
}

/* --- reading --- */

static cadre_status closure_wire_bad(const char *why, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_INTERNAL, "arguments or outputs of a closure came damaged: %s", why);
}

/* The next `count` bytes; NULL: there are fewer. */
static const uint8_t *closure_wire_take(struct wire_reader *reader, size_t count)
{
    const uint8_t *at = reader->at;
    if (count > reader->left) {
        return NULL;
    }
    reader->at += count;
    reader->left -= count;
    return at;
}

static cadre_status read_strings(const uint8_t *bytes, size_t size, uint32_t rank,
    const int64_t *dims, int64_t count, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 0);
    char *text = NULL;
    if ((uint64_t)count > size / sizeof(uint64_t)) {
        return closure_wire_bad("fewer strings than its shape says", error);
    }
    const uint8_t *from = bytes + (size_t)count * sizeof(uint64_t);
    size_t left = size - (size_t)count * sizeof(uint64_t);
    CADRE_TRY(tensor_strings_create(rank, dims, left, ret_tensor, &text, error));
    cadre_string *strings = cadre_tensor_data(*ret_tensor);
    strings_clear(strings, count);
    if (left > 0) {
        memcpy(text, from, left);
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t string;
        memcpy(&string, bytes + (size_t)i * sizeof string, sizeof string);
        if (string > left) {
            cadre_tensor_release(*ret_tensor);
            *ret_tensor = NULL;
            return closure_wire_bad("strings that are longer than what came", error);
        }
        strings[i] = (cadre_string){.bytes = text, .size = (size_t)string};
        text += string;
        left -= (size_t)string;
    }
    return CADRE_OK;
}

static cadre_status read_tensor(struct wire_reader *reader, const struct head *head,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX] = {0};
    int64_t count = 0;
    size_t size = 0;
    if (head->rank > CADRE_RANK_MAX || head->bytes > CLOSURE_BYTES_MAX) {
        return closure_wire_bad("a tensor of too many axes or bytes", error);
    }
    const uint8_t *shape = closure_wire_take(reader, head->rank * sizeof(int64_t));
    const uint8_t *bytes =
        shape == NULL ? NULL : closure_wire_take(reader, wire_padded((size_t)head->bytes));
    if (bytes == NULL) {
        return closure_wire_bad("it ends in the middle of a tensor", error);
    }
    memcpy(dims, shape, head->rank * sizeof(int64_t));
    CADRE_TRY(tensor_shape_check((cadre_dtype)head->dtype, head->rank, dims, &count, &size, error));
    if (head->dtype == CADRE_STRING) {
        return read_strings(bytes, (size_t)head->bytes, head->rank, dims, count, ret_tensor, error);
    }
    if (size != head->bytes) {
        return closure_wire_bad("a tensor whose bytes are not those of its shape", error);
    }
    return tensor_from_data((cadre_dtype)head->dtype, head->rank, dims, bytes, ret_tensor, error);
}

cadre_status wire_item_read(
    struct wire_reader *reader, struct wire_item *ret_item, struct cadre_error *error)
{
    struct head head;
    *ret_item = (struct wire_item){0};
    const uint8_t *at = closure_wire_take(reader, sizeof head);
    if (at == NULL) {
        return closure_wire_bad("it ends in the middle of an item", error);
    }
    memcpy(&head, at, sizeof head);
    if (head.tag == ITEM_OBJECT) {
        ret_item->object = head.bytes;
        return CADRE_OK;
    }
    return head.tag == ITEM_TENSOR ? read_tensor(reader, &head, &ret_item->tensor, error)
                                   : closure_wire_bad("an item of no known kind", error);
}
