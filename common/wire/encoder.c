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

static void out_of_memory(struct encoder *encoder)
{
    if (encoder->status == CADRE_OK) {
        encoder->status = cadre_error_set(encoder->error, CADRE_RESOURCE_EXHAUSTED,
            "out of memory while packing a message; free memory on this machine");
    }
}

void *encoder_array(struct encoder *encoder, size_t count, size_t item_bytes)
{
    if (count == 0) {
        return NULL;
    }
    if (encoder->scratch == NULL) {
        encoder->scratch = wire_arena_new(SCRATCH_BYTES);
    }
    void *array = NULL;
    if (encoder->scratch != NULL && count <= SCRATCH_BYTES / item_bytes) {
        array = wire_arena_alloc(encoder->scratch, count * item_bytes);
    }
    if (array == NULL) {
        out_of_memory(encoder);
        return NULL;
    }
    return memset(array, 0, count * item_bytes);
}

char *encoder_text(struct encoder *encoder, const char *text)
{
    if (text == NULL) {
        return (char *)"";
    }
    size_t size = strnlen(text, LIMIT_TEXT_BYTES);
    if (size < LIMIT_TEXT_BYTES && check_printable(text) == NULL) {
        return (char *)text;
    }
    char *clean = encoder_array(encoder, LIMIT_TEXT_BYTES, 1);
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

static cadre_status encoder_pack(
    struct encoder *encoder, const ProtobufCMessage *message, size_t limit_bytes)
{
    const char *name = message->descriptor->short_name;
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > limit_bytes) {
        return cadre_error_set(encoder->error, CADRE_RESOURCE_EXHAUSTED,
            "%s would be %zu bytes; a message of its kind has at most %zu", name, size,
            limit_bytes);
    }
    if (!wire_buffer_reserve(encoder->buffer, size)) {
        return cadre_error_set(encoder->error, CADRE_RESOURCE_EXHAUSTED,
            "out of memory for the %zu bytes of %s", size, name);
    }
    struct wire_buffer *buffer = encoder->buffer;
    if (size > 0) {
        protobuf_c_message_pack(message, buffer->bytes + buffer->size);
    }
    buffer->size += size;
    return CADRE_OK;
}

cadre_status encoder_finish(
    struct encoder *encoder, const ProtobufCMessage *message, size_t limit_bytes)
{
    if (encoder->status == CADRE_OK) {
        encoder->status = encoder_pack(encoder, message, limit_bytes);
    }
    wire_arena_free(encoder->scratch);
    encoder->scratch = NULL;
    return encoder->status;
}
