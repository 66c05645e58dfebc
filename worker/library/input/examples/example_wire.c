/* SPDX-License-Identifier: Apache-2.0
 * Reading the bytes of examples; see example_wire.h. The encoding:
 * https://protobuf.dev/programming-guides/encoding. */
#include "worker/library/input/examples/example_wire.h"

#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

#define VARINT_BYTES_MAX 10

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

struct field {
    uint32_t number;
    uint32_t type;
    struct cursor content; /* the varint itself, the bytes without their length */
};

static bool fault_set(struct example_fault *fault, const uint8_t *at, const char *what)
{
    *fault = (struct example_fault){.what = what, .at = at};
    return false;
}

static bool read_long_varint(
    struct cursor *cursor, uint64_t *ret_value, struct example_fault *fault)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
        if (cursor->at + i == cursor->end) {
            return fault_set(fault, cursor->at, "it ends inside a number");
        }
        uint8_t byte = cursor->at[i];
        if (i == VARINT_BYTES_MAX - 1 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            cursor->at += i + 1;
            *ret_value = value;
            return true;
        }
    }
    return fault_set(fault, cursor->at, "a number has more than 64 bits");
}

static inline bool read_varint(
    struct cursor *cursor, uint64_t *ret_value, struct example_fault *fault)
{
    if (cursor->at < cursor->end && *cursor->at < 0x80) {
        *ret_value = *cursor->at++;
        return true;
    }
    return read_long_varint(cursor, ret_value, fault);
}

static bool example_wire_take(
    struct cursor *cursor, uint64_t bytes, struct cursor *ret_content, struct example_fault *fault)
{
    if (bytes > (uint64_t)(cursor->end - cursor->at)) {
        return fault_set(fault, cursor->at, "a field is longer than what it lies in");
    }
    *ret_content = (struct cursor){.at = cursor->at, .end = cursor->at + bytes};
    cursor->at += bytes;
    return true;
}

static bool read_any_field(
    struct cursor *cursor, struct field *ret_field, struct example_fault *fault)
{
    const uint8_t *start = cursor->at;
    uint64_t tag = 0;
    uint64_t number = 0;
    if (!read_varint(cursor, &tag, fault)) {
        return false;
    }
    ret_field->number = (uint32_t)(tag >> 3);
    ret_field->type = (uint32_t)(tag & 7);
    if (tag > UINT32_MAX || ret_field->number == 0) {
        return fault_set(fault, start, "a field has a number that does not exist");
    }
    switch (ret_field->type) {
    case WIRE_BYTES:
        return read_varint(cursor, &number, fault) &&
               example_wire_take(cursor, number, &ret_field->content, fault);
    case WIRE_VARINT:
        ret_field->content.at = cursor->at;
        if (!read_varint(cursor, &number, fault)) {
            return false;
        }
        ret_field->content.end = cursor->at;
        return true;
    case WIRE_64:
        return example_wire_take(cursor, 8, &ret_field->content, fault);
    case WIRE_32:
        return example_wire_take(cursor, 4, &ret_field->content, fault);
    default:
        return fault_set(fault, start, "a field has a type that does not exist");
    }
}

/* The next field of a message, whichever it is. Nearly all have a number below 16 and less than 128
 * bytes: these need no more than two looks. */
static inline bool read_field(
    struct cursor *cursor, struct field *ret_field, struct example_fault *fault)
{
    const uint8_t *at = cursor->at;
    ptrdiff_t left = cursor->end - at;
    if (left >= 2 && at[0] >= 8 && at[0] < 0x80 && (at[0] & 7) == WIRE_BYTES && at[1] < 0x80 &&
        at[1] <= left - 2) {
        ret_field->number = at[0] >> 3;
        ret_field->type = WIRE_BYTES;
        ret_field->content.at = at + 2;
        ret_field->content.end = at + 2 + at[1];
        cursor->at = ret_field->content.end;
        return true;
    }
    return read_any_field(cursor, ret_field, fault);
}

void example_reader_init(struct example_reader *reader, const void *bytes, size_t size)
{
    const uint8_t *start = bytes;
    *reader = (struct example_reader){.at = start, .features_end = start, .end = start};
    if (size > 0) {
        reader->end = start + size;
    }
}

/* Finds what kind a Feature holds and where the lists of that kind begin. */
static bool read_feature(
    struct cursor message, struct example_feature *feature, struct example_fault *fault)
{
    feature->end = message.end;
    feature->lists = message.end;
    while (message.at < message.end) {
        const uint8_t *start = message.at;
        struct field field;
        if (!read_field(&message, &field, fault)) {
            return false;
        }
        bool list = field.type == WIRE_BYTES && field.number <= EXAMPLE_INTS;
        if (list && field.number != (uint32_t)feature->kind) {
            feature->kind = (enum example_kind)field.number;
            feature->lists = start;
        }
    }
    return true;
}

static bool read_entry(
    struct cursor entry, struct example_feature *ret_feature, struct example_fault *fault)
{
    bool has_value = false;
    *ret_feature = (struct example_feature){.name = entry.at};
    while (entry.at < entry.end) {
        const uint8_t *start = entry.at;
        struct field field;
        if (!read_field(&entry, &field, fault)) {
            return false;
        }
        if (field.type != WIRE_BYTES) {
            continue;
        }
        if (field.number == 1) {
            ret_feature->name = field.content.at;
            ret_feature->name_bytes = (size_t)(field.content.end - field.content.at);
        } else if (field.number == 2) {
            if (has_value) {
                return fault_set(fault, start, "an entry has two values");
            }
            has_value = true;
            if (!read_feature(field.content, ret_feature, fault)) {
                return false;
            }
        }
    }
    return true;
}

bool example_reader_next(struct example_reader *reader, struct example_feature *ret_feature)
{
    for (;;) {
        bool inside = reader->at < reader->features_end;
        struct cursor cursor = {
            .at = reader->at, .end = inside ? reader->features_end : reader->end};
        struct field field;
        if (reader->fault.what != NULL || cursor.at == cursor.end ||
            !read_field(&cursor, &field, &reader->fault)) {
            return false;
        }
        bool known = field.number == 1 && field.type == WIRE_BYTES;
        if (inside) {
            reader->at = cursor.at;
            if (known) {
                return read_entry(field.content, ret_feature, &reader->fault);
            }
        } else if (known && field.content.at < field.content.end) {
            reader->at = field.content.at;
            reader->features_end = field.content.end;
        } else {
            reader->at = cursor.at;
            reader->features_end = cursor.at;
        }
    }
}

/* Where values go, and how many there were so far. */
struct values {
    void *to;
    uint64_t room;
    uint64_t count;
};

static void add_floats(struct values *values, struct cursor content)
{
    uint64_t count = (uint64_t)(content.end - content.at) / sizeof(float);
    uint64_t left = values->count < values->room ? values->room - values->count : 0;
    uint64_t copied = count < left ? count : left;
    if (copied > 0) {
        memcpy((float *)values->to + values->count, content.at, copied * sizeof(float));
    }
    values->count += count;
}

/* Counts numbers without decoding them, and refuses those that decoding would: a number ends where
 * the top bit of a byte is clear, and has 64 bits at most. */
static bool count_ints(struct values *values, struct cursor content, struct example_fault *fault)
{
    size_t bytes = 0; /* of the number at hand */
    for (const uint8_t *at = content.at; at < content.end; at++) {
        bytes++;
        if (bytes == VARINT_BYTES_MAX && *at > 1) {
            return fault_set(fault, at + 1 - bytes, "a number has more than 64 bits");
        }
        if (*at < 0x80) {
            values->count++;
            bytes = 0;
        }
    }
    return bytes == 0 || fault_set(fault, content.end - bytes, "it ends inside a number");
}

static bool add_ints(struct values *values, struct cursor content, struct example_fault *fault)
{
    int64_t *to = values->to;
    while (content.at < content.end && values->count < values->room) {
        uint64_t number = 0;
        if (!read_varint(&content, &number, fault)) {
            return false;
        }
        to[values->count++] = (int64_t)number;
    }
    return count_ints(values, content, fault);
}

static bool add_field(struct values *values, enum example_kind kind, const struct field *field,
    struct example_fault *fault)
{
    size_t size = (size_t)(field->content.end - field->content.at);
    switch (kind) {
    case EXAMPLE_STRINGS:
        if (field->type == WIRE_BYTES) {
            if (values->count < values->room) {
                ((cadre_string *)values->to)[values->count] =
                    (cadre_string){.bytes = (const char *)field->content.at, .size = size};
            }
            values->count++;
        }
        return true;
    case EXAMPLE_FLOATS:
        if (field->type == WIRE_BYTES && size % sizeof(float) != 0) {
            return fault_set(fault, field->content.at, "packed floats end inside a float");
        }
        if (field->type == WIRE_BYTES || field->type == WIRE_32) {
            add_floats(values, field->content);
        }
        return true;
    case EXAMPLE_INTS:
        return (field->type != WIRE_BYTES && field->type != WIRE_VARINT) ||
               add_ints(values, field->content, fault);
    case EXAMPLE_NOTHING:
    default:
        return true;
    }
}

bool example_values(const struct example_feature *feature, void *to, uint64_t room,
    uint64_t *ret_count, struct example_fault *ret_fault)
{
    struct values values = {.to = to, .room = room};
    struct cursor message = {.at = feature->lists, .end = feature->end};
    *ret_count = 0;
    while (message.at < message.end) {
        struct field list;
        if (!read_field(&message, &list, ret_fault)) {
            return false;
        }
        if (list.number != (uint32_t)feature->kind || list.type != WIRE_BYTES) {
            continue;
        }
        while (list.content.at < list.content.end) {
            struct field field;
            if (!read_field(&list.content, &field, ret_fault)) {
                return false;
            }
            if (field.number == 1 && !add_field(&values, feature->kind, &field, ret_fault)) {
                return false;
            }
        }
    }
    *ret_count = values.count;
    return true;
}
