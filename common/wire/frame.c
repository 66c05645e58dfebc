/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/frame.h"

#include <string.h>

#define LENGTH_BYTES 4

static const uint8_t magic[6] = {'C', 'A', 'D', 'R', 'E', 0};

void frame_preamble_write(uint8_t preamble[FRAME_PREAMBLE_BYTES])
{
    memcpy(preamble, magic, sizeof magic);
    preamble[6] = TASK_FRAME_VERSION & 0xff;
    preamble[7] = TASK_FRAME_VERSION >> 8 & 0xff;
}

cadre_status frame_preamble_check(
    const uint8_t preamble[FRAME_PREAMBLE_BYTES], const char *peer, struct cadre_error *error)
{
    if (memcmp(preamble, magic, sizeof magic) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s sends no frames of Cadre: it began with %02x%02x%02x%02x%02x%02x; check what "
            "listens or connects there",
            peer, preamble[0], preamble[1], preamble[2], preamble[3], preamble[4], preamble[5]);
    }
    unsigned version = preamble[6] | (unsigned)preamble[7] << 8;
    if (version != TASK_FRAME_VERSION) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s has version %u of the frames between program and daemon, this side (Cadre %s) has "
            "version %d; rebuild the program with the daemon's version of Cadre",
            peer, version, CADRE_VERSION, TASK_FRAME_VERSION);
    }
    return CADRE_OK;
}

/* Leaves room for the length; *ret_start is the offset of the frame. */
static cadre_status frame_begin(
    struct wire_buffer *buffer, size_t *ret_start, struct cadre_error *error)
{
    if (!wire_buffer_reserve(buffer, LENGTH_BYTES)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "out of memory for a frame");
    }
    *ret_start = buffer->size;
    buffer->size += LENGTH_BYTES;
    return CADRE_OK;
}

/* Writes the length, or removes the half frame. */
static cadre_status frame_end(struct wire_buffer *buffer, size_t start, cadre_status status)
{
    if (status != CADRE_OK) {
        buffer->size = start;
        return status;
    }
    size_t size = buffer->size - start - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        buffer->bytes[start + i] = (uint8_t)(size >> (8 * i));
    }
    return CADRE_OK;
}

cadre_status frame_pack_task_up(
    const struct task_up *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    size_t start = 0;
    CADRE_TRY(frame_begin(buffer, &start, error));
    return frame_end(buffer, start, wire_pack_task_up(message, buffer, error));
}

cadre_status frame_pack_task_down(
    const struct task_down *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    size_t start = 0;
    CADRE_TRY(frame_begin(buffer, &start, error));
    return frame_end(buffer, start, wire_pack_task_down(message, buffer, error));
}

void frame_reader_free(struct frame_reader *reader)
{
    wire_buffer_free(&reader->buffer);
    reader->taken = 0;
}

uint8_t *frame_reader_room(struct frame_reader *reader, size_t size)
{
    struct wire_buffer *buffer = &reader->buffer;
    size_t left = buffer->size - reader->taken;
    /* Each move copies at most what was handed out since the last one, so a byte is moved at most
     * once. */
    if (reader->taken > 0 && left <= reader->taken) {
        memmove(buffer->bytes, buffer->bytes + reader->taken, left);
        buffer->size = left;
        reader->taken = 0;
    }
    if (!wire_buffer_reserve(buffer, size)) {
        return NULL;
    }
    return buffer->bytes + buffer->size;
}

void frame_reader_commit(struct frame_reader *reader, size_t size)
{
    reader->buffer.size += size;
}

cadre_status frame_reader_next(struct frame_reader *reader, const uint8_t **ret_payload,
    size_t *ret_size, struct cadre_error *error)
{
    size_t left = reader->buffer.size - reader->taken;
    if (left < LENGTH_BYTES) {
        return CADRE_PENDING;
    }
    const uint8_t *at = reader->buffer.bytes + reader->taken;
    size_t size = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
    if (size > LIMIT_FRAME_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "a frame claims %zu bytes; at most %d are accepted, so this is no frame: close the "
            "connection",
            size, LIMIT_FRAME_BYTES);
    }
    if (left - LENGTH_BYTES < size) {
        return CADRE_PENDING;
    }
    *ret_payload = at + LENGTH_BYTES;
    *ret_size = size;
    reader->taken += LENGTH_BYTES + size;
    return CADRE_OK;
}
