/* SPDX-License-Identifier: Apache-2.0
 * The packing side: fills protobuf-c's structs by the tables. Scratch memory, texts for people,
 * limits, the buffer. messages.c calls it. */
#include <string.h>

#include "common/base/utf8.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "common/wire/check.h"
#include "common/wire/codec.h"

/* The model structs are in memory already; their wire structs are of the same order of size. */
#define SCRATCH_BYTES ((size_t)2 * LIMIT_UNPACK_BYTES)

/* Of a number, or of the head of a message: a tag of at most 5 bytes, and a varint of at most 10 or
 * 8 bytes. */
#define FIELD_BYTES_MOST 15

void packer_open(struct encoder *encoder, struct wire_buffer *buffer, struct cadre_error *error)
{
    /* Member by member: its space is not cleared. */
    encoder->buffer = buffer;
    encoder->error = error;
    encoder->scratch = NULL;
    encoder->status = CADRE_OK;
    encoder->space_used = 0;
    encoder->bytes_most = 0;
    encoder->is_small = true;
}

/* Of the space on the stack while there is room; not cleared. NULL: memory is out. */
static void *packer_take(struct encoder *encoder, size_t bytes)
{
    size_t span = (bytes + 7) / 8 * 8;
    if (span <= sizeof encoder->space - encoder->space_used) {
        void *taken = encoder->space + encoder->space_used;
        encoder->space_used += span;
        return taken;
    }
    if (encoder->scratch == NULL) {
        encoder->scratch = wire_arena_new(SCRATCH_BYTES);
    }
    void *taken = encoder->scratch != NULL ? wire_arena_alloc(encoder->scratch, bytes) : NULL;
    if (taken == NULL && encoder->status == CADRE_OK) {
        encoder->status = cadre_error_set(encoder->error, CADRE_RESOURCE_EXHAUSTED,
            "out of memory while packing a message; free memory on this machine");
    }
    return taken;
}

/* A text for people in a form that every decoder accepts: bad bytes become "?", control characters
 * " ", too long ones are cut. Mostly `text` itself. NULL is "". */
static const char *encoder_text(struct encoder *encoder, const char *text)
{
    if (text == NULL) {
        return "";
    }
    size_t size = strnlen(text, LIMIT_TEXT_BYTES);
    if (size < LIMIT_TEXT_BYTES && check_printable(text) == NULL) {
        return text;
    }
    char *clean = packer_take(encoder, LIMIT_TEXT_BYTES);
    if (clean == NULL) {
        return "";
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
    clean[used] = '\0';
    return clean;
}

/* ---- by the tables ---- */

static void fill_text(
    struct encoder *encoder, const struct wire_row *row, char *wire, const char *model)
{
    const char *text = model; /* an array of the model */
    encoder->is_small = false;
    if (row->size == 0) {
        memcpy(&text, model, sizeof text);
    }
    text = row->for_people ? encoder_text(encoder, text) : text;
    memcpy(wire, &text, sizeof text);
}

static void fill_data(
    struct encoder *encoder, const struct wire_row *row, char *wire, const char *model)
{
    ProtobufCBinaryData data;
    encoder->is_small = false;
    memcpy(&data.data, model + row->model, sizeof data.data);
    memcpy(&data.len, model + row->model_count, sizeof data.len);
    memcpy(wire + row->wire, &data, sizeof data);
}

/* A value of a field or an entry of its list, which has neither DATA nor lists in it. */
static inline void fill_value(struct encoder *encoder, const struct wire_row *row,
    enum row_kind kind, char *wire, const char *model)
{
    switch (kind) {
    case ROW_COPY:
    case ROW_NUMBER:
    case ROW_SIGNED:
    case ROW_JOB:
        wire_row_copy(row, wire, model);
        return;
    case ROW_BOOL: {
        protobuf_c_boolean value = *(const bool *)model;
        memcpy(wire, &value, sizeof value);
        return;
    }
    case ROW_TEXT:
        fill_text(encoder, row, wire, model);
        return;
    case ROW_BYTES: {
        encoder->is_small = false;
        ProtobufCBinaryData bytes = {.len = row->size, .data = (uint8_t *)model};
        memcpy(wire, &bytes, sizeof bytes);
        return;
    }
    case ROW_MESSAGE: {
        void *message = packer_fill(encoder, row->of, model);
        memcpy(wire, &message, sizeof message);
        return;
    }
    case ROW_DATA:
    case ROW_LIST:
        break;
    }
    CADRE_ASSERT(false);
}

static void fill_list(
    struct encoder *encoder, const struct wire_row *row, char *wire, const char *model)
{
    size_t count;
    uint32_t narrow;
    const char *members = model + row->model;
    if (row->is_array) {
        memcpy(&narrow, model + row->model_count, sizeof narrow);
        count = narrow;
    } else {
        memcpy(&count, model + row->model_count, sizeof count);
        memcpy(&members, model + row->model, sizeof members);
    }
    if (count == 0) {
        return;
    }
    encoder->is_small = false;
    size_t entry_bytes = wire_row_entry_bytes(row);
    size_t member_bytes = wire_row_member_bytes(row);
    /* The members are in memory, so that their number times a few bytes does not overflow. */
    char *entries = packer_take(encoder, count * entry_bytes);
    for (size_t i = 0; i < count && encoder->status == CADRE_OK; i++) {
        fill_value(encoder, row, (enum row_kind)row->entry, entries + i * entry_bytes,
            members + i * member_bytes);
    }
    if (encoder->status == CADRE_OK) {
        memcpy(wire + row->wire, &entries, sizeof entries);
        memcpy(wire + row->wire_count, &count, sizeof count);
    }
}

/* False: it is absent, as protobuf-c initialized it. */
static bool fill_presence(const struct wire_row *row, char *wire, const char *model)
{
    bool there = false;
    uint32_t number = row->number;
    switch ((enum row_when)row->when) {
    case WHEN_ALWAYS:
        there = true;
        break;
    case WHEN_GIVEN:
        there = row->of->is_given == NULL || row->of->is_given(model + row->model);
        break;
    case WHEN_FLAG:
        there = *(const bool *)(model + row->flag);
        break;
    case WHEN_NOT_NONE:
        there = wire_row_number(row, model + row->model) != row->none;
        break;
    }
    if (there && number != 0) {
        memcpy(wire + row->wire_case, &number, sizeof number);
    }
    return there;
}

static void fill_member(
    struct encoder *encoder, const struct wire_table *table, char *wire, const char *model)
{
    uint32_t type;
    memcpy(&type, model + table->member_type, sizeof type);
    CADRE_ASSERT(type < table->member_count);
    const struct wire_row *row = &table->members[type];
    CADRE_ASSERT(row->kind == ROW_MESSAGE);
    memcpy(wire + table->member_case, &type, sizeof type);
    fill_value(encoder, row, ROW_MESSAGE, wire + row->wire, model + row->model);
}

static void fill_table(
    struct encoder *encoder, const struct wire_table *table, char *wire, const char *model)
{
    encoder->bytes_most += (table->row_count + 1) * FIELD_BYTES_MOST; /* 1: of a oneof */
    table->descriptor->message_init((ProtobufCMessage *)(void *)wire);
    for (size_t i = 0; i < table->row_count; i++) {
        const struct wire_row *row = &table->rows[i];
        if (row->when != WHEN_ALWAYS && !fill_presence(row, wire, model)) {
            continue;
        }
        if (row->kind == ROW_LIST) {
            fill_list(encoder, row, wire, model);
        } else if (row->kind == ROW_DATA) {
            fill_data(encoder, row, wire, model);
        } else {
            fill_value(
                encoder, row, (enum row_kind)row->kind, wire + row->wire, model + row->model);
        }
    }
    if (table->members != NULL) {
        fill_member(encoder, table, wire, model);
    }
    if (table->after_fill != NULL && encoder->status == CADRE_OK) {
        table->after_fill(wire, model);
    }
}

void *packer_fill(struct encoder *encoder, const struct wire_table *table, const void *model)
{
    void *wire = packer_take(encoder, table->descriptor->sizeof_message);
    if (wire != NULL) {
        fill_table(encoder, table, wire, model);
    }
    return wire;
}

/* ---- the buffer ---- */

/* A message of numbers alone, also nested, has a known bound, because counting its bytes takes as
 * long as packing it. */
static size_t bytes_needed(const struct encoder *encoder, const ProtobufCMessage *message)
{
    bool bounded = encoder->is_small && encoder->bytes_most <= PACKER_SPACE_BYTES;
    return bounded ? encoder->bytes_most : protobuf_c_message_get_packed_size(message);
}

static cadre_status encoder_pack(
    struct encoder *encoder, const ProtobufCMessage *message, size_t limit_bytes)
{
    const char *name = message->descriptor->short_name;
    size_t size = bytes_needed(encoder, message);
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
        size_t written = protobuf_c_message_pack(message, buffer->bytes + buffer->size);
        CADRE_ASSERT(written <= size);
        buffer->size += written;
    }
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
