/* SPDX-License-Identifier: Apache-2.0
 * The checks of single received fields: those that rows name, and those of after_take functions.
 * decoder.c and the tables call it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/utf8.h"
#include "common/pure/object_path.h"
#include "common/wire/arena.h"
#include "common/wire/check.h"
#include "common/wire/codec.h"

#define SHOWN_BYTES 64

void decoder_fail(
    struct decoder *decoder, cadre_status code, const char *field, const char *format, ...)
{
    if (decoder->status != CADRE_OK) {
        return;
    }
    const struct field_path *path = &decoder->path;
    const char *dot = field != NULL ? "." : "";
    const char *name = field != NULL ? field : "";
    char what[CADRE_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (path->list != NULL) {
        decoder->status = cadre_error_set(decoder->error, code, "%s%s%s %s (in %s.%s[%zu])",
            path->message, dot, name, what, path->list_of, path->list, path->entry);
    } else {
        decoder->status =
            cadre_error_set(decoder->error, code, "%s%s%s %s", path->message, dot, name, what);
    }
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
            "a message unpacks to more than the %zu bytes of memory that one may use, or memory is "
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

/* The start of a value in printable form: odd bytes become "?". */
static const char *fields_shown(const char *value, char *buffer)
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
        decoder, CADRE_INVALID_ARGUMENT, field, "\"%s\" %s", fields_shown(value, buffer), fault);
}

/* protobuf-c ends a string at its first NUL without an error. It takes one byte more than it
 * received, so the arena has its true length. The default "" is protobuf-c's own and never in the
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
            "\"%s\" has %zu bytes; at most %zu are accepted", fields_shown(value, buffer), size,
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

const char *decode_manifest(struct decoder *decoder, const char *field, char *value)
{
    return object_path_is(value)
               ? decode_string(decoder, field, value, LIMIT_FILE_NAME_BYTES, check_object)
               : decode_path(decoder, field, value);
}

const char *decode_manifest_or_empty(struct decoder *decoder, const char *field, char *value)
{
    return value == protobuf_c_empty_string ? "" : decode_manifest(decoder, field, value);
}

const char *decode_folder_or_empty(struct decoder *decoder, const char *field, char *value)
{
    if (value == protobuf_c_empty_string) {
        return "";
    }
    return decode_string(decoder, field, value, LIMIT_FILE_NAME_BYTES, check_folder);
}

const char *decode_outputs_folder_or_empty(struct decoder *decoder, const char *field, char *value)
{
    if (value == protobuf_c_empty_string) {
        return "";
    }
    return decode_string(decoder, field, value, LIMIT_FILE_NAME_BYTES, check_outputs_folder);
}

const char *decode_url_or_empty(struct decoder *decoder, const char *field, char *value)
{
    if (value == protobuf_c_empty_string) {
        return "";
    }
    return decode_string(decoder, field, value, LIMIT_URL_BYTES, check_url);
}
