/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/wire/wire.h"

#define FIRST_BYTES 1024

void wire_buffer_clear(struct wire_buffer *buffer)
{
    buffer->size = 0;
}

void wire_buffer_free(struct wire_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct wire_buffer){0};
}

bool wire_buffer_reserve(struct wire_buffer *buffer, size_t size)
{
    if (size <= buffer->capacity - buffer->size) {
        return true;
    }
    if (size > SIZE_MAX / 2 - buffer->size) {
        return false;
    }
    size_t needed = buffer->size + size;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_BYTES;
    while (capacity < needed) {
        capacity *= 2;
    }
    uint8_t *bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}
