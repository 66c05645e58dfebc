/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/fields.h"

#include <string.h>

/* Reads a base-128 number; false at the end of the data or beyond 64 bits. */
static bool read_varint(struct field_reader *reader, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_field(struct field_reader *reader, struct field *field)
{
    uint64_t tag, size = 0;
    if (!read_varint(reader, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) {
        return false;
    }
    *field = (struct field){.id = (uint32_t)(tag >> 3), .kind = (enum field_kind)(tag & 7)};
    switch (field->kind) {
    case FIELD_NUMBER:
        return read_varint(reader, &field->number);
    case FIELD_FIXED64:
        size = 8;
        break;
    case FIELD_FIXED32:
        size = 4;
        break;
    case FIELD_BYTES:
        if (!read_varint(reader, &size)) {
            return false;
        }
        break;
    default:
        return false; /* groups, which proto3 does not have */
    }
    if (size > (uint64_t)(reader->end - reader->at)) {
        return false;
    }
    field->bytes = reader->at;
    field->size = (size_t)size;
    reader->at += size;
    return true;
}

bool field_next(struct field_reader *reader, struct field *ret_field)
{
    if (reader->broken || reader->at == reader->end) {
        return false;
    }
    reader->broken = !read_field(reader, ret_field);
    return !reader->broken;
}

/* ---- writing ---- */

static void put_varint(struct field_writer *writer, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        if (writer->at != NULL) {
            writer->at[writer->size] = byte;
        }
        writer->size++;
        value >>= 7;
    } while (value != 0);
}

void field_put_number(struct field_writer *writer, uint32_t id, uint64_t number)
{
    put_varint(writer, (uint64_t)id << 3 | FIELD_NUMBER);
    put_varint(writer, number);
}

void field_put_head(struct field_writer *writer, uint32_t id, size_t size)
{
    put_varint(writer, (uint64_t)id << 3 | FIELD_BYTES);
    put_varint(writer, size);
}

void field_put_bytes(struct field_writer *writer, uint32_t id, const void *bytes, size_t size)
{
    field_put_head(writer, id, size);
    if (writer->at != NULL && size != 0) {
        memcpy(writer->at + writer->size, bytes, size);
    }
    writer->size += size;
}
