/* SPDX-License-Identifier: Apache-2.0
 * The packing side that all messages share: scratch memory, texts for people, limits, the buffer.
 */
#include <string.h>

#include "common/base/utf8.h"
#include "common/wire/arena.h"
#include "common/wire/check.h"
#include "common/wire/codec.h"

/* The model structs are in memory already; their wire structs are of the same order. */
#define SCRATCH_BYTES ((size_t)2 * LIMIT_UNPACK_BYTES)

static void out_of_memory(struct packer *packer)
{
    if (packer->status == CADRE_OK) {
        packer->status = cadre_error_set(packer->error, CADRE_RESOURCE_EXHAUSTED,
            "out of memory while packing a message; free memory on this machine");
    }
}

void *packer_array(struct packer *packer, size_t count, size_t item_bytes)
{
    if (count == 0) {
        return NULL;
    }
    if (packer->scratch == NULL) {
        packer->scratch = wire_arena_new(SCRATCH_BYTES);
    }
    void *array = NULL;
    if (packer->scratch != NULL && count <= SCRATCH_BYTES / item_bytes) {
        array = wire_arena_take(packer->scratch, count * item_bytes);
    }
    if (array == NULL) {
        out_of_memory(packer);
        return NULL;
    }
    return memset(array, 0, count * item_bytes);
}

char *packer_text(struct packer *packer, const char *text)
{
    if (text == NULL) {
        return (char *)"";
    }
    size_t size = strnlen(text, LIMIT_TEXT_BYTES);
    if (size < LIMIT_TEXT_BYTES && check_printable(text) == NULL) {
        return (char *)text;
    }
    char *clean = packer_array(packer, LIMIT_TEXT_BYTES, 1);
    if (clean == NULL) {
        return (char *)"";
    }
    size_t used = 0;
    for (size_t at = 0; at < size && text[at] != '\0';) {
        size_t length = utf8_printable(text + at, size - at);
        size_t room = length > 0 ? length : 1;
        if (used + room >= LIMIT_TEXT_BYTES) {
            break;
        }
        if (length > 0) {
            memcpy(clean + used, text + at, length);
        } else {
            clean[used] = (unsigned char)text[at] < 0x80 ? ' ' : '?';
        }
        used += room;
        at += room;
    }
    return clean;
}

static cadre_status pack(struct packer *packer, const ProtobufCMessage *message, size_t limit_bytes)
{
    const char *name = message->descriptor->short_name;
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > limit_bytes) {
        return cadre_error_set(packer->error, CADRE_RESOURCE_EXHAUSTED,
            "%s would be %zu bytes; a message of its kind has at most %zu", name, size,
            limit_bytes);
    }
    if (!wire_buffer_reserve(packer->buffer, size)) {
        return cadre_error_set(packer->error, CADRE_RESOURCE_EXHAUSTED,
            "out of memory for the %zu bytes of %s", size, name);
    }
    struct wire_buffer *buffer = packer->buffer;
    if (size > 0) {
        protobuf_c_message_pack(message, buffer->bytes + buffer->size);
    }
    buffer->size += size;
    return CADRE_OK;
}

cadre_status packer_finish(
    struct packer *packer, const ProtobufCMessage *message, size_t limit_bytes)
{
    if (packer->status == CADRE_OK) {
        packer->status = pack(packer, message, limit_bytes);
    }
    wire_arena_free(packer->scratch);
    packer->scratch = NULL;
    return packer->status;
}
