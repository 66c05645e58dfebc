/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/target.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/pure/text.h"

/* The character that an escape stands for; '\0': none that may be there. */
static char target_unescape(const char *escape, bool in_path)
{
    int high = text_hex_digit(escape[1]);
    int low = high >= 0 ? text_hex_digit(escape[2]) : -1;
    char character = low >= 0 ? (char)(high * 16 + low) : '\0';
    return character == '/' && in_path ? '\0' : character;
}

/* Decodes the text in its place; `in_path`: "+" stands for itself, and no escape for "/". False:
 * the text ends before what is wrong. */
static bool target_decode(char *text, bool in_path)
{
    char *to = text;
    bool good = true;
    for (const char *from = text; *from != '\0' && good; from++) {
        char character = *from == '+' && !in_path ? ' ' : *from;
        if (*from == '%') {
            character = target_unescape(from, in_path);
            from += character != '\0' ? 2 : 0;
        }
        good = character != '\0';
        *to = character;
        to += good ? 1 : 0;
    }
    *to = '\0';
    size_t size = (size_t)(to - text);
    for (size_t i = 0; i < size;) {
        size_t length = utf8_printable(text + i, size - i);
        if (length == 0) {
            text[i] = '\0';
            return false;
        }
        i += length;
    }
    return good;
}

static cadre_status target_refuse(
    struct http_target *target, struct cadre_error *error, const char *text)
{
    target->argument_count = 0;
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s", text);
}

/* Cuts the next argument off; returns where the one after it begins, NULL: there is none. */
static char *target_cut(char *text, struct http_argument *ret_argument)
{
    char *rest = strchr(text, '&');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    char *value = strchr(text, '=');
    if (value != NULL) {
        *value++ = '\0';
    }
    *ret_argument =
        (struct http_argument){.name = text, .value = value != NULL ? value : text + strlen(text)};
    return rest;
}

static cadre_status add_arguments(
    struct http_target *target, char *query, struct cadre_error *error)
{
    while (query != NULL && *query != '\0') {
        struct http_argument argument;
        query = target_cut(query, &argument);
        if (argument.name[0] == '\0' && argument.value[0] == '\0') {
            continue; /* "a=1&&b=2", and "?" alone */
        }
        if (target->argument_count == HTTP_ARGUMENTS_MAX) {
            return target_refuse(target, error, "the URL has more than 8 arguments");
        }
        if (!target_decode((char *)(uintptr_t)argument.name, false) ||
            !target_decode((char *)(uintptr_t)argument.value, false)) {
            return target_refuse(target, error,
                "an argument of the URL is no text: write % with two hexadecimal digits for what "
                "has to be escaped, in UTF-8 and without control characters");
        }
        if (http_target_argument(target, argument.name) != NULL) {
            return target_refuse(target, error, "the URL has an argument twice");
        }
        target->arguments[target->argument_count++] = argument;
    }
    return CADRE_OK;
}

cadre_status http_target_parse(
    const char *raw, struct http_target *ret_target, struct cadre_error *error)
{
    size_t size = strnlen(raw, sizeof ret_target->text);
    bool fits = size < sizeof ret_target->text;
    size -= fits ? 0 : 1;
    ret_target->argument_count = 0;
    memcpy(ret_target->text, raw, size);
    ret_target->text[size] = '\0';
    ret_target->path = ret_target->text;
    char *query = strchr(ret_target->text, '?');
    if (query != NULL) {
        *query++ = '\0';
    }
    if (ret_target->text[0] != '/' || !target_decode(ret_target->text, true)) {
        return target_refuse(ret_target, error,
            "the path of the URL is no text that begins with \"/\": write % with two hexadecimal "
            "digits for what has to be escaped, in UTF-8 and without control characters");
    }
    if (!fits) {
        return target_refuse(ret_target, error, "the URL is longer than 2047 bytes");
    }
    return add_arguments(ret_target, query, error);
}

const char *http_target_argument(const struct http_target *target, const char *name)
{
    for (size_t i = 0; i < target->argument_count; i++) {
        if (strcmp(target->arguments[i].name, name) == 0) {
            return target->arguments[i].value;
        }
    }
    return NULL;
}

cadre_status http_target_check(
    const struct http_target *target, const char *const *names, struct cadre_error *error)
{
    for (size_t i = 0; i < target->argument_count; i++) {
        const char *const *name = names;
        while (*name != NULL && strcmp(*name, target->arguments[i].name) != 0) {
            name++;
        }
        if (*name == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%.100s has no argument \"%.100s\"", target->path, target->arguments[i].name);
        }
    }
    return CADRE_OK;
}

bool http_number_parse(const char *text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (max - digit) / 10 || digit > max) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret_number = number;
    return true;
}

cadre_status http_target_number(const struct http_target *target, const char *name,
    uint64_t otherwise, uint64_t max, uint64_t *ret_number, struct cadre_error *error)
{
    const char *value = http_target_argument(target, name);
    if (value == NULL) {
        *ret_number = otherwise;
        return CADRE_OK;
    }
    if (!http_number_parse(value, max, ret_number)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.40s=%.60s is no whole number from 0 to %" PRIu64, name, value, max);
    }
    return CADRE_OK;
}
