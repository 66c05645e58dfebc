/* SPDX-License-Identifier: Apache-2.0
 * The unpacking side that all messages share: budget, and the checks of single fields. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/utf8.h"
#include "common/wire/arena.h"
#include "common/wire/check.h"
#include "common/wire/codec.h"

#define SHOWN_BYTES 64

void *taker_open(struct taker *taker, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes)
{
    const char *name = descriptor->short_name;
    if (size > limit_bytes) {
        taker_fail(taker, CADRE_RESOURCE_EXHAUSTED, name, "is %zu bytes; at most %zu are accepted",
            size, limit_bytes);
        return NULL;
    }
    void *message =
        protobuf_c_message_unpack(descriptor, wire_arena_allocator(taker->arena), size, bytes);
    if (message != NULL) {
        return message;
    }
    if (wire_arena_is_spent(taker->arena)) {
        taker_fail(taker, CADRE_RESOURCE_EXHAUSTED, name,
            "of %zu bytes unfolds to more than the %zu bytes of memory that one message may use",
            size, wire_arena_budget(taker->arena));
    } else {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, name,
            "cannot be read: these %zu bytes are no message of that type", size);
    }
    return NULL;
}

void taker_fail(struct taker *taker, cadre_status code, const char *field, const char *format, ...)
{
    if (taker->status != CADRE_OK) {
        return;
    }
    char what[CADRE_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (taker->list != NULL) {
        taker->status = cadre_error_set(
            taker->error, code, "%s %s (in %s[%zu])", field, what, taker->list, taker->entry);
    } else {
        taker->status = cadre_error_set(taker->error, code, "%s %s", field, what);
    }
}

bool take_present(struct taker *taker, const char *field, const void *message)
{
    if (message == NULL) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "is missing");
    }
    return message != NULL && taker->status == CADRE_OK;
}

bool take_count(struct taker *taker, const char *field, size_t count, size_t limit)
{
    if (count > limit) {
        taker_fail(taker, CADRE_RESOURCE_EXHAUSTED, field,
            "has %zu entries; at most %zu are accepted", count, limit);
    }
    return taker->status == CADRE_OK;
}

void *take_array(struct taker *taker, size_t count, size_t item_bytes)
{
    if (count == 0 || taker->status != CADRE_OK) {
        return NULL;
    }
    void *array =
        count <= SIZE_MAX / item_bytes ? wire_arena_take(taker->arena, count * item_bytes) : NULL;
    if (array == NULL) {
        taker->status = cadre_error_set(taker->error, CADRE_RESOURCE_EXHAUSTED,
            "a message unfolds to more than the %zu bytes of memory that one may use, or memory is "
            "out",
            wire_arena_budget(taker->arena));
        return NULL;
    }
    return memset(array, 0, count * item_bytes);
}

uint64_t take_number(
    struct taker *taker, const char *field, uint64_t value, uint64_t least, uint64_t most)
{
    if (value >= least && value <= most) {
        return value;
    }
    taker_fail(taker, CADRE_INVALID_ARGUMENT, field,
        "is %" PRIu64 "; it must be from %" PRIu64 " to %" PRIu64, value, least, most);
    return least;
}

uint32_t take_u32(
    struct taker *taker, const char *field, uint32_t value, uint32_t least, uint32_t most)
{
    return (uint32_t)take_number(taker, field, value, least, most);
}

int32_t take_i32(struct taker *taker, const char *field, int32_t value, int32_t least, int32_t most)
{
    if (value >= least && value <= most) {
        return value;
    }
    taker_fail(taker, CADRE_INVALID_ARGUMENT, field,
        "is %" PRId32 "; it must be from %" PRId32 " to %" PRId32, value, least, most);
    return least;
}

uint64_t take_position(struct taker *taker, const char *field, uint64_t value)
{
    return take_number(taker, field, value, 0, LIMIT_POSITION);
}

uint32_t take_stream(struct taker *taker, const char *field, uint32_t value)
{
    return take_u32(taker, field, value, 0, STREAM_ANY - 1);
}

uint64_t take_span(struct taker *taker, const char *field, uint64_t value)
{
    return take_number(taker, field, value, 0, INT64_MAX);
}

struct job_id take_job_id(struct taker *taker, const char *field, uint64_t value)
{
    if (value == 0) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "is 0; jobs are numbered from 1");
    }
    return (struct job_id){value};
}

void take_fixed_bytes(struct taker *taker, const char *field, ProtobufCBinaryData value,
    uint8_t *ret_bytes, size_t size)
{
    if (value.len != size) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "has %zu bytes; it must have %zu",
            value.len, size);
        memset(ret_bytes, 0, size);
        return;
    }
    memcpy(ret_bytes, value.data, size);
}

void take_data(struct taker *taker, const char *field, ProtobufCBinaryData value, size_t limit,
    const uint8_t **ret_bytes, size_t *ret_size)
{
    if (value.len > limit) {
        taker_fail(taker, CADRE_RESOURCE_EXHAUSTED, field,
            "has %zu bytes; at most %zu are accepted", value.len, limit);
    }
    *ret_bytes = value.data;
    *ret_size = value.len;
}

/* The start of a value as it can be shown: odd bytes become "?". */
static const char *shown(const char *value, char *buffer)
{
    size_t used = 0;
    for (size_t at = 0; value[at] != '\0';) {
        size_t length = utf8_printable(value + at, strnlen(value + at, 4));
        size_t room = length > 0 ? length : 1;
        if (used + room > SHOWN_BYTES - 4) {
            memcpy(buffer + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(buffer + used, length > 0 ? value + at : "?", room);
        used += room;
        at += room;
    }
    buffer[used] = '\0';
    return buffer;
}

static void fail_string(
    struct taker *taker, const char *field, const char *value, const char *fault)
{
    char buffer[SHOWN_BYTES];
    taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "\"%s\" %s", shown(value, buffer), fault);
}

/* protobuf-c ends a string at its first NUL and says nothing. It takes one byte more than came over
 * the wire, so the arena knows how long it was. The default "" is protobuf-c's own and never in the
 * arena. */
static bool take_length(struct taker *taker, const char *field, const char *value, size_t limit)
{
    if (taker->status != CADRE_OK || value == protobuf_c_empty_string) {
        return taker->status == CADRE_OK;
    }
    size_t size = wire_arena_size_of(value) - 1;
    if (size >= limit) {
        char buffer[SHOWN_BYTES];
        taker_fail(taker, CADRE_RESOURCE_EXHAUSTED, field,
            "\"%s\" has %zu bytes; at most %zu are accepted", shown(value, buffer), size,
            limit - 1);
        return false;
    }
    if (memchr(value, '\0', size) != NULL) {
        fail_string(taker, field, value, "has a NUL byte");
        return false;
    }
    return true;
}

static const char *take_string(struct taker *taker, const char *field, const char *value,
    size_t limit, const char *(*rule)(const char *))
{
    if (!take_length(taker, field, value, limit)) {
        return "";
    }
    const char *fault = rule(value);
    if (fault != NULL) {
        fail_string(taker, field, value, fault);
        return "";
    }
    return value;
}

const char *take_name_or_empty(struct taker *taker, const char *field, char *value)
{
    return take_string(taker, field, value, LIMIT_NAME_BYTES, check_printable);
}

const char *take_name(struct taker *taker, const char *field, char *value)
{
    if (value[0] == '\0') {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "is empty; give it 1 to %d bytes",
            LIMIT_NAME_BYTES - 1);
    }
    return take_name_or_empty(taker, field, value);
}

const char *take_address(struct taker *taker, const char *field, char *value)
{
    return take_string(taker, field, value, LIMIT_ADDRESS_BYTES, check_printable);
}

const char *take_text(struct taker *taker, const char *field, char *value)
{
    return take_string(taker, field, value, LIMIT_TEXT_BYTES, check_printable);
}

const char *take_argument(struct taker *taker, const char *field, char *value)
{
    return take_string(taker, field, value, LIMIT_ARGUMENT_BYTES, check_utf8);
}

const char *take_assignment(struct taker *taker, const char *field, char *value)
{
    char name[128];
    if (!take_length(taker, field, value, LIMIT_ARGUMENT_BYTES)) {
        return "";
    }
    const char *fault = check_environment(value);
    if (fault != NULL) {
        size_t length = strcspn(value, "=");
        length = length < sizeof name - 1 ? length : sizeof name - 1;
        memcpy(name, value, length);
        name[length] = '\0';
        fail_string(taker, field, name, fault);
        return "";
    }
    return value;
}

const char *take_path(struct taker *taker, const char *field, char *value)
{
    struct cadre_error inner;
    if (!take_length(taker, field, value, LIMIT_FILE_NAME_BYTES)) {
        return "";
    }
    if (file_name_check(value, &inner) != CADRE_OK) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "is bad: %s", inner.text);
        return "";
    }
    return value;
}

const char *take_path_or_empty(struct taker *taker, const char *field, char *value)
{
    return value == protobuf_c_empty_string ? "" : take_path(taker, field, value);
}

const char *take_folder_or_empty(struct taker *taker, const char *field, char *value)
{
    if (value == protobuf_c_empty_string) {
        return "";
    }
    return take_string(taker, field, value, LIMIT_FILE_NAME_BYTES, check_folder);
}
