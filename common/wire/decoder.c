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

void *decoder_open(struct decoder *decoder, const ProtobufCMessageDescriptor *descriptor,
    const void *bytes, size_t size, size_t limit_bytes)
{
    const char *name = descriptor->short_name;
    if (size > limit_bytes) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, name,
            "is %zu bytes; at most %zu are accepted", size, limit_bytes);
        return NULL;
    }
    void *message =
        protobuf_c_message_unpack(descriptor, wire_arena_allocator(decoder->arena), size, bytes);
    if (message != NULL) {
        return message;
    }
    if (wire_arena_is_spent(decoder->arena)) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, name,
            "of %zu bytes unfolds to more than the %zu bytes of memory that one message may use",
            size, wire_arena_budget(decoder->arena));
    } else {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, name,
            "cannot be read: these %zu bytes are no message of that type", size);
    }
    return NULL;
}

void decoder_fail(
    struct decoder *decoder, cadre_status code, const char *field, const char *format, ...)
{
    if (decoder->status != CADRE_OK) {
        return;
    }
    char what[CADRE_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (decoder->list != NULL) {
        decoder->status = cadre_error_set(
            decoder->error, code, "%s %s (in %s[%zu])", field, what, decoder->list, decoder->entry);
    } else {
        decoder->status = cadre_error_set(decoder->error, code, "%s %s", field, what);
    }
}

bool decode_present(struct decoder *decoder, const char *field, const void *message)
{
    if (message == NULL) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "is missing");
    }
    return message != NULL && decoder->status == CADRE_OK;
}

bool decode_count(struct decoder *decoder, const char *field, size_t count, size_t limit)
{
    if (count > limit) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, field,
            "has %zu entries; at most %zu are accepted", count, limit);
    }
    return decoder->status == CADRE_OK;
}

void *decode_array(struct decoder *decoder, size_t count, size_t item_bytes)
{
    if (count == 0 || decoder->status != CADRE_OK) {
        return NULL;
    }
    void *array = count <= SIZE_MAX / item_bytes
                      ? wire_arena_alloc(decoder->arena, count * item_bytes)
                      : NULL;
    if (array == NULL) {
        decoder->status = cadre_error_set(decoder->error, CADRE_RESOURCE_EXHAUSTED,
            "a message unfolds to more than the %zu bytes of memory that one may use, or memory is "
            "out",
            wire_arena_budget(decoder->arena));
        return NULL;
    }
    return memset(array, 0, count * item_bytes);
}

uint64_t decode_number(
    struct decoder *decoder, const char *field, uint64_t value, uint64_t least, uint64_t most)
{
    if (value >= least && value <= most) {
        return value;
    }
    decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field,
        "is %" PRIu64 "; it must be from %" PRIu64 " to %" PRIu64, value, least, most);
    return least;
}

uint32_t decode_u32(
    struct decoder *decoder, const char *field, uint32_t value, uint32_t least, uint32_t most)
{
    return (uint32_t)decode_number(decoder, field, value, least, most);
}

int32_t decode_i32(
    struct decoder *decoder, const char *field, int32_t value, int32_t least, int32_t most)
{
    if (value >= least && value <= most) {
        return value;
    }
    decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field,
        "is %" PRId32 "; it must be from %" PRId32 " to %" PRId32, value, least, most);
    return least;
}

uint64_t decode_position(struct decoder *decoder, const char *field, uint64_t value)
{
    return decode_number(decoder, field, value, 0, LIMIT_POSITION);
}

uint32_t decode_stream(struct decoder *decoder, const char *field, uint32_t value)
{
    return decode_u32(decoder, field, value, 0, STREAM_ANY - 1);
}

uint64_t decode_duration(struct decoder *decoder, const char *field, uint64_t value)
{
    return decode_number(decoder, field, value, 0, INT64_MAX);
}

struct job_id decode_job_id(struct decoder *decoder, const char *field, uint64_t value)
{
    if (value == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "is 0; jobs are numbered from 1");
    }
    return (struct job_id){value};
}

void decode_fixed_bytes(struct decoder *decoder, const char *field, ProtobufCBinaryData value,
    uint8_t *ret_bytes, size_t size)
{
    if (value.len != size) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "has %zu bytes; it must have %zu",
            value.len, size);
        memset(ret_bytes, 0, size);
        return;
    }
    memcpy(ret_bytes, value.data, size);
}

void decode_data(struct decoder *decoder, const char *field, ProtobufCBinaryData value,
    size_t limit, const uint8_t **ret_bytes, size_t *ret_size)
{
    if (value.len > limit) {
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, field,
            "has %zu bytes; at most %zu are accepted", value.len, limit);
    }
    *ret_bytes = value.data;
    *ret_size = value.len;
}

/* The start of a value as it can be shown: odd bytes become "?". */
static const char *decoder_shown(const char *value, char *buffer)
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
    struct decoder *decoder, const char *field, const char *value, const char *fault)
{
    char buffer[SHOWN_BYTES];
    decoder_fail(
        decoder, CADRE_INVALID_ARGUMENT, field, "\"%s\" %s", decoder_shown(value, buffer), fault);
}

/* protobuf-c ends a string at its first NUL and says nothing. It takes one byte more than came over
 * the wire, so the arena knows how long it was. The default "" is protobuf-c's own and never in the
 * arena. */
static bool decode_length(
    struct decoder *decoder, const char *field, const char *value, size_t limit)
{
    if (decoder->status != CADRE_OK || value == protobuf_c_empty_string) {
        return decoder->status == CADRE_OK;
    }
    size_t size = wire_arena_size_of(value) - 1;
    if (size >= limit) {
        char buffer[SHOWN_BYTES];
        decoder_fail(decoder, CADRE_RESOURCE_EXHAUSTED, field,
            "\"%s\" has %zu bytes; at most %zu are accepted", decoder_shown(value, buffer), size,
            limit - 1);
        return false;
    }
    if (memchr(value, '\0', size) != NULL) {
        fail_string(decoder, field, value, "has a NUL byte");
        return false;
    }
    return true;
}

static const char *decode_string(struct decoder *decoder, const char *field, const char *value,
    size_t limit, const char *(*rule)(const char *))
{
    if (!decode_length(decoder, field, value, limit)) {
        return "";
    }
    const char *fault = rule(value);
    if (fault != NULL) {
        fail_string(decoder, field, value, fault);
        return "";
    }
    return value;
}

const char *decode_name_or_empty(struct decoder *decoder, const char *field, char *value)
{
    return decode_string(decoder, field, value, LIMIT_NAME_BYTES, check_printable);
}

const char *decode_name(struct decoder *decoder, const char *field, char *value)
{
    if (value[0] == '\0') {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "is empty; give it 1 to %d bytes",
            LIMIT_NAME_BYTES - 1);
    }
    return decode_name_or_empty(decoder, field, value);
}

const char *decode_address(struct decoder *decoder, const char *field, char *value)
{
    return decode_string(decoder, field, value, LIMIT_ADDRESS_BYTES, check_printable);
}

const char *decode_text(struct decoder *decoder, const char *field, char *value)
{
    return decode_string(decoder, field, value, LIMIT_TEXT_BYTES, check_printable);
}

const char *decode_argument(struct decoder *decoder, const char *field, char *value)
{
    return decode_string(decoder, field, value, LIMIT_ARGUMENT_BYTES, check_utf8);
}

const char *decode_assignment(struct decoder *decoder, const char *field, char *value)
{
    char name[128];
    if (!decode_length(decoder, field, value, LIMIT_ARGUMENT_BYTES)) {
        return "";
    }
    const char *fault = check_environment(value);
    if (fault != NULL) {
        size_t length = strcspn(value, "=");
        length = length < sizeof name - 1 ? length : sizeof name - 1;
        memcpy(name, value, length);
        name[length] = '\0';
        fail_string(decoder, field, name, fault);
        return "";
    }
    return value;
}

const char *decode_path(struct decoder *decoder, const char *field, char *value)
{
    struct cadre_error inner;
    if (!decode_length(decoder, field, value, LIMIT_FILE_NAME_BYTES)) {
        return "";
    }
    if (file_name_check(value, &inner) != CADRE_OK) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "is bad: %s", inner.text);
        return "";
    }
    return value;
}

const char *decode_path_or_empty(struct decoder *decoder, const char *field, char *value)
{
    return value == protobuf_c_empty_string ? "" : decode_path(decoder, field, value);
}

const char *decode_folder_or_empty(struct decoder *decoder, const char *field, char *value)
{
    if (value == protobuf_c_empty_string) {
        return "";
    }
    return decode_string(decoder, field, value, LIMIT_FILE_NAME_BYTES, check_folder);
}
