/* SPDX-License-Identifier: Apache-2.0
 * The unpacking side: protobuf-c's structs in the arena, and from them the model's by the tables.
 * messages.c calls it. */
#include <string.h>

#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "common/wire/codec.h"

void *decoder_open(struct decoder *decoder, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes)
{
    decoder->path.message = descriptor->short_name;
    if (size > limit_bytes) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, NULL,
            "is %zu bytes; at most %zu are accepted", size, limit_bytes);
        return NULL;
    }
    void *message =
        protobuf_c_message_unpack(descriptor, wire_arena_allocator(decoder->arena), size, bytes);
    if (message != NULL) {
        return message;
    }
    if (wire_arena_is_spent(decoder->arena)) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, NULL,
            "of %zu bytes unpacks to more than the %zu bytes of memory that one message may use",
            size, wire_arena_budget(decoder->arena));
    } else {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, NULL,
            "cannot be read: these %zu bytes are no message of that type", size);
    }
    return NULL;
}

/* ---- single values ---- */

static void take_range(
    struct decoder *decoder, const struct wire_row *row, const char *message, const char *wire)
{
    uint64_t value = wire_row_number(row, wire);
    uint64_t most = row->is_bound ? wire_row_number(row, message + row->bound) : row->most;
    if ((value < row->least && !(row->or_zero && value == 0)) || value > most) {
        decode_number(decoder, row->name, value, row->least, most);
    }
}

static void decode_string(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    char *value;
    memcpy(&value, wire, sizeof value);
    const char *text = row->text(decoder, row->name, value);
    if (row->size > 0) {
        memcpy(model, text, strlen(text) + 1);
    } else {
        memcpy(model, &text, sizeof text);
    }
}

static void take_bytes(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    ProtobufCBinaryData value;
    memcpy(&value, wire, sizeof value);
    if (value.len != row->size) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, row->name, "has %zu bytes; it must have %zu",
            value.len, (size_t)row->size);
    } else {
        memcpy(model, value.data, value.len);
    }
}

/* A value of a field or an entry of its list, which has neither DATA nor lists in it; `message` is
 * its message. */
static inline __attribute__((always_inline)) void take_value(struct decoder *decoder,
    const struct wire_row *row, enum row_kind kind, const char *message, const char *wire,
    char *model)
{
    protobuf_c_boolean truth;
    int32_t number;
    const void *part;
    switch (kind) {
    case ROW_COPY:
        wire_row_copy(row, model, wire);
        return;
    case ROW_BOOL:
        memcpy(&truth, wire, sizeof truth);
        *(bool *)model = truth != 0;
        return;
    case ROW_NUMBER:
        take_range(decoder, row, message, wire);
        wire_row_copy(row, model, wire);
        return;
    case ROW_SIGNED:
        memcpy(&number, wire, sizeof number);
        decode_i32(decoder, row->name, number, (int32_t)row->least, (int32_t)row->most);
        memcpy(model, &number, sizeof number);
        return;
    case ROW_JOB:
        if (wire_row_number(row, wire) == 0) {
            decoder_fail(
                decoder, CADRE_INVALID_ARGUMENT, row->name, "is 0; jobs are numbered from 1");
        }
        wire_row_copy(row, model, wire);
        return;
    case ROW_TEXT:
        decode_string(decoder, row, wire, model);
        return;
    case ROW_BYTES:
        take_bytes(decoder, row, wire, model);
        return;
    case ROW_MESSAGE:
        memcpy(&part, wire, sizeof part);
        taker_take(decoder, row->of, part, model);
        return;
    case ROW_DATA:
    case ROW_LIST:
        break;
    }
    CADRE_ASSERT(false);
}

/* ---- fields ---- */

static void decode_data(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    ProtobufCBinaryData value;
    memcpy(&value, wire + row->wire, sizeof value);
    if (value.len > row->limit) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, row->name,
            "has %zu bytes; at most %zu are accepted", value.len, (size_t)row->limit);
    }
    memcpy(model + row->model, &value.data, sizeof value.data);
    memcpy(model + row->model_count, &value.len, sizeof value.len);
}

static void take_list(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    size_t count;
    const char *entries;
    memcpy(&count, wire + row->wire_count, sizeof count);
    memcpy(&entries, wire + row->wire, sizeof entries);
    size_t entry_bytes = wire_row_entry_bytes(row);
    size_t member_bytes = wire_row_member_bytes(row);
    if (count == 0 || !decode_count(decoder, row->name, count, row->limit)) {
        return;
    }
    char *members = row->is_array ? model + row->model : decode_array(decoder, count, member_bytes);
    struct field_path before = decoder->path;
    decoder->path.list_of = decoder->path.message;
    decoder->path.list = row->name;
    for (size_t i = 0; i < count && decoder->status == CADRE_OK; i++) {
        decoder->path.entry = i;
        take_value(decoder, row, (enum row_kind)row->entry, wire, entries + i * entry_bytes,
            members + i * member_bytes);
    }
    decoder->path = before;
    if (row->is_array) {
        uint32_t narrow = (uint32_t)count;
        memcpy(model + row->model_count, &narrow, sizeof narrow);
    } else {
        memcpy(model + row->model, &members, sizeof members);
        memcpy(model + row->model_count, &count, sizeof count);
    }
}

static bool is_there(const struct wire_row *row, const char *wire)
{
    uint32_t number;
    const void *part;
    ProtobufCBinaryData value;
    if (row->number != 0) {
        memcpy(&number, wire + row->wire_case, sizeof number);
        return number == row->number;
    }
    if (row->kind == ROW_MESSAGE) {
        memcpy(&part, wire + row->wire, sizeof part);
        return part != NULL;
    }
    CADRE_ASSERT(row->kind == ROW_BYTES);
    memcpy(&value, wire + row->wire, sizeof value);
    return value.len > 0;
}

/* What absence is in the model, which is zeroed: texts are "", never NULL. */
static void take_absence(const struct wire_row *row, char *model)
{
    static const char *const empty = "";
    if (row->when == WHEN_NOT_NONE) {
        memcpy(model + row->model, &row->none, row->size);
    } else if (row->kind == ROW_TEXT && row->size == 0) {
        memcpy(model + row->model, &empty, sizeof empty);
    } else if (row->kind == ROW_MESSAGE) {
        for (size_t i = 0; i < row->of->row_count; i++) {
            take_absence(&row->of->rows[i], model + row->model);
        }
    }
}

/* False: it is absent, and so it is in the model. */
static bool take_presence(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    bool there = is_there(row, wire);
    if (row->when == WHEN_FLAG) {
        *(bool *)(model + row->flag) = there;
    }
    if (!there && row->when == WHEN_ALWAYS) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, row->name, "is missing");
    } else if (!there) {
        take_absence(row, model);
    }
    return there;
}

static void take_row(
    struct decoder *decoder, const struct wire_row *row, const char *wire, char *model)
{
    bool is_optional = row->when != WHEN_ALWAYS || row->kind == ROW_MESSAGE;
    if (is_optional && !take_presence(decoder, row, wire, model)) {
        return;
    }
    if (row->kind == ROW_LIST) {
        take_list(decoder, row, wire, model);
    } else if (row->kind == ROW_DATA) {
        decode_data(decoder, row, wire, model);
    } else {
        take_value(
            decoder, row, (enum row_kind)row->kind, wire, wire + row->wire, model + row->model);
    }
}

static void decode_member(
    struct decoder *decoder, const struct wire_table *table, const char *wire, char *model)
{
    uint32_t type;
    memcpy(&type, wire + table->member_case, sizeof type);
    if (type >= table->member_count || table->members[type].kind == 0) {
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, NULL, "has no message of this version");
        return;
    }
    const struct wire_row *row = &table->members[type];
    memcpy(model + table->member_type, &type, sizeof type);
    take_value(decoder, row, ROW_MESSAGE, wire, wire + row->wire, model + row->model);
}

void taker_take(
    struct decoder *decoder, const struct wire_table *table, const void *wire, void *ret_model)
{
    const char *before = decoder->path.message;
    decoder->path.message = table->descriptor->short_name;
    for (size_t i = 0; i < table->row_count && decoder->status == CADRE_OK; i++) {
        take_row(decoder, &table->rows[i], wire, ret_model);
    }
    if (table->members != NULL && decoder->status == CADRE_OK) {
        decode_member(decoder, table, wire, ret_model);
    }
    if (table->after_take != NULL && decoder->status == CADRE_OK) {
        table->after_take(decoder, wire, ret_model);
    }
    decoder->path.message = before;
}
