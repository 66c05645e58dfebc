/* SPDX-License-Identifier: Apache-2.0
 * Parsing and writing device names, and the functions of cadre/device.h. */
#include "worker/library/device/local_device.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"

#define INDEX_DIGITS_MAX 9 /* so that a number fits into 31 bits */

_Static_assert(sizeof "/job:/replica:/task:/device::" + sizeof((cadre_device_spec *)0)->job +
                       sizeof((cadre_device_spec *)0)->type + 3 * INDEX_DIGITS_MAX <=
                   CADRE_DEVICE_NAME_BYTES,
    "a canonical name fits");

static const cadre_device_spec nothing = {.replica = -1, .task = -1, .index = -1};

/* A piece of a name: not terminated. */
struct piece {
    const char *at;
    size_t size;
};

static bool is_word(struct piece piece, const char *word)
{
    return piece.size == strlen(word) && memcmp(piece.at, word, piece.size) == 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(struct piece piece)
{
    bool good = piece.size > 0 && is_letter(piece.at[0]);
    for (size_t i = 1; good && i < piece.size; i++) {
        char c = piece.at[i];
        good = is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    }
    return good;
}

/* Sets a name that is not set yet. */
static bool take_name(struct piece piece, char *ret_name, size_t size, bool capitals)
{
    if (ret_name[0] != '\0' || !is_name(piece) || piece.size >= size) {
        return false;
    }
    for (size_t i = 0; i < piece.size; i++) {
        char c = piece.at[i];
        ret_name[i] = capitals && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    ret_name[piece.size] = '\0';
    return true;
}

static bool take_number(struct piece piece, int32_t *ret_number)
{
    if (*ret_number != -1 || piece.size == 0 || piece.size > INDEX_DIGITS_MAX) {
        return false;
    }
    int32_t number = 0;
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.at[i] < '0' || piece.at[i] > '9') {
            return false;
        }
        number = number * 10 + (piece.at[i] - '0');
    }
    *ret_number = number;
    return true;
}

static bool take_device(cadre_device_spec *spec, struct piece type, struct piece index)
{
    return take_name(type, spec->type, sizeof spec->type, true) &&
           (is_word(index, "*") || take_number(index, &spec->index));
}

/* Takes one field of a name, "field:field:field", of `count` of them. */
static bool take_part(cadre_device_spec *spec, const struct piece fields[3], size_t count)
{
    if (count == 2 && is_word(fields[0], "job")) {
        return take_name(fields[1], spec->job, sizeof spec->job, false);
    }
    if (count == 2 && is_word(fields[0], "replica")) {
        return take_number(fields[1], &spec->replica);
    }
    if (count == 2 && is_word(fields[0], "task")) {
        return take_number(fields[1], &spec->task);
    }
    if (count == 3 && is_word(fields[0], "device")) {
        return take_device(spec, fields[1], fields[2]);
    }
    const struct piece any = {"*", 1};
    return count <= 2 && !is_word(fields[0], "device") &&
           take_device(spec, fields[0], count == 2 ? fields[1] : any);
}

static size_t device_name_split(struct piece part, struct piece ret_fields[3])
{
    size_t count = 0;
    while (count < 3) {
        const char *colon = memchr(part.at, ':', part.size);
        size_t size = colon == NULL ? part.size : (size_t)(colon - part.at);
        ret_fields[count++] = (struct piece){part.at, size};
        if (colon == NULL) {
            return count;
        }
        part = (struct piece){colon + 1, part.size - size - 1};
    }
    return count + 1; /* more than any part has */
}

cadre_status device_name_parse(
    const char *name, cadre_device_spec *ret_spec, struct cadre_error *error)
{
    *ret_spec = nothing;
    for (const char *at = name; *at != '\0';) {
        struct piece part = {at, strcspn(at, "/")};
        struct piece fields[3] = {{0}};
        size_t count = device_name_split(part, fields);
        if (part.size > 0 && (count > 3 || !take_part(ret_spec, fields, count))) {
            *ret_spec = nothing;
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "'%.*s' in the device name '%.100s' is not known, is there twice or does not fit; "
                "write it as /job:worker/replica:0/task:1/device:GPU:0 or in part, as CPU:0",
                (int)(part.size < 100 ? part.size : 100), part.at, name);
        }
        at += part.size + (at[part.size] == '/' ? 1 : 0);
    }
    return CADRE_OK;
}

static void fill_number(int32_t *number, int32_t from)
{
    *number = *number == -1 ? from : *number;
}

void device_name_fill(cadre_device_spec *spec, const cadre_device_spec *from)
{
    if (spec->job[0] == '\0') {
        memcpy(spec->job, from->job, sizeof spec->job);
    }
    if (spec->type[0] == '\0') {
        memcpy(spec->type, from->type, sizeof spec->type);
    }
    fill_number(&spec->replica, from->replica);
    fill_number(&spec->task, from->task);
    fill_number(&spec->index, from->index);
}

void device_name_text(const cadre_device_spec *spec, char ret_name[CADRE_DEVICE_NAME_BYTES])
{
    static const cadre_device_spec defaults = {.job = "localhost", .type = "CPU"};
    cadre_device_spec whole = *spec;
    device_name_fill(&whole, &defaults);
    int size =
        snprintf(ret_name, CADRE_DEVICE_NAME_BYTES, "/job:%s/replica:%d/task:%d/device:%s:%d",
            whole.job, whole.replica, whole.task, whole.type, whole.index);
    CADRE_ASSERT(size > 0 && size < CADRE_DEVICE_NAME_BYTES);
}

/* --- public --- */

cadre_status cadre_device_parse(const char *name, cadre_device_spec *ret_spec)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_spec, __func__, "ret_spec", &error);
    if (status == CADRE_OK) {
        *ret_spec = nothing;
        status = argument_require(name, __func__, "name", &error);
    }
    if (status == CADRE_OK) {
        status = device_name_parse(name, ret_spec, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_device_canonical(
    const char *name, const char *fallback, char ret_name[CADRE_DEVICE_NAME_BYTES])
{
    struct cadre_error error = {0};
    cadre_device_spec spec = nothing;
    cadre_device_spec other = nothing;
    cadre_status status = argument_require(ret_name, __func__, "ret_name", &error);
    if (status == CADRE_OK) {
        ret_name[0] = '\0';
        status = argument_require(name, __func__, "name", &error);
    }
    if (status == CADRE_OK) {
        status = device_name_parse(name, &spec, &error);
    }
    if (status == CADRE_OK && fallback != NULL) {
        status = device_name_parse(fallback, &other, &error);
    }
    if (status != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    device_name_fill(&spec, &other);
    device_name_text(&spec, ret_name);
    return CADRE_OK;
}
