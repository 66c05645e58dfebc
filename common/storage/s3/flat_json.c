/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/flat_json.h"

#include <stdbool.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

#define DEPTH_MAX  8
#define NAME_BYTES 64

struct scan {
    const char *at, *end;
};

/* Where a text goes; NULL: nowhere. */
struct target {
    char *at;
    size_t left;   /* with the terminator */
    bool overflow; /* it did not fit */
};

static char next(struct scan *scan)
{
    return scan->at < scan->end ? *scan->at++ : '\0';
}

static char peek(struct scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\0' && strchr(" \t\r\n", *scan->at) != NULL) {
        scan->at++;
    }
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool take(struct scan *scan, char wanted)
{
    bool is = peek(scan) == wanted;
    scan->at += is ? 1 : 0;
    return is;
}

static void add(struct target *target, char c)
{
    if (target->at == NULL) {
        return;
    }
    if (target->left <= 1) {
        target->overflow = true;
        return;
    }
    *target->at++ = c;
    target->left--;
}

/* The four digits behind "\u", as UTF-8. What takes two of them is in no text that is asked for. */
static bool read_code_point(struct scan *scan, struct target *target)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = text_hex_digit(next(scan));
        if (digit < 0) {
            return false;
        }
        code = code * 16 + (unsigned)digit;
    }
    if (code == 0) {
        return false;
    }
    if (code >= 0xd800 && code <= 0xdfff) {
        add(target, '?');
    } else if (code < 0x80) {
        add(target, (char)code);
    } else if (code < 0x800) {
        add(target, (char)(0xc0 | (code >> 6)));
        add(target, (char)(0x80 | (code & 63)));
    } else {
        add(target, (char)(0xe0 | (code >> 12)));
        add(target, (char)(0x80 | ((code >> 6) & 63)));
        add(target, (char)(0x80 | (code & 63)));
    }
    return true;
}

static bool read_escape(struct scan *scan, struct target *target)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = next(scan);
    if (c == 'u') {
        return read_code_point(scan, target);
    }
    const char *at = c != '\0' ? strchr(from, c) : NULL;
    if (at == NULL) {
        return false;
    }
    add(target, to[at - from]);
    return true;
}

/* A text with its quotes. */
static bool read_text(struct scan *scan, struct target *target)
{
    if (!take(scan, '"')) {
        return false;
    }
    for (;;) {
        char c = next(scan);
        if (c == '"') {
            break;
        }
        if ((unsigned char)c < ' ') { /* the end of the document, too */
            return false;
        }
        if (c != '\\') {
            add(target, c);
        } else if (!read_escape(scan, target)) {
            return false;
        }
    }
    if (target->at != NULL) {
        *target->at = '\0';
    }
    return true;
}

static bool skip_text(struct scan *scan)
{
    struct target nowhere = {.at = NULL};
    return read_text(scan, &nowhere);
}

/* A number, true, false, null: of no interest, so that any of their characters will do. */
static bool skip_bare(struct scan *scan)
{
    const char *begin = scan->at;
    while (scan->at < scan->end &&
           ((*scan->at >= '0' && *scan->at <= '9') || (*scan->at >= 'a' && *scan->at <= 'z') ||
               *scan->at == 'E' || *scan->at == '-' || *scan->at == '+' || *scan->at == '.')) {
        scan->at++;
    }
    return scan->at > begin;
}

static bool skip_value(struct scan *scan, unsigned depth)
{
    char c = peek(scan);
    if (c == '"') {
        return skip_text(scan);
    }
    if (c != '{' && c != '[') {
        return skip_bare(scan);
    }
    char close = c == '{' ? '}' : ']';
    scan->at++;
    if (depth == DEPTH_MAX) {
        return false;
    }
    if (take(scan, close)) {
        return true;
    }
    do {
        if (c == '{' && (!skip_text(scan) || !take(scan, ':'))) {
            return false;
        }
        if (!skip_value(scan, depth + 1)) {
            return false;
        }
    } while (take(scan, ','));
    return take(scan, close);
}

enum s3_json_result s3_json_text(
    const char *text, size_t size, const char *name, char *ret_value, size_t room)
{
    struct scan scan = {.at = text, .end = text + size};
    enum s3_json_result result = S3_JSON_ABSENT;
    CADRE_ASSERT(room > 0 && strlen(name) < NAME_BYTES);
    ret_value[0] = '\0';
    bool good = take(&scan, '{');
    bool is_empty = good && take(&scan, '}');
    while (good && !is_empty) {
        char key[NAME_BYTES];
        struct target key_target = {.at = key, .left = sizeof key};
        struct target value_target = {.at = ret_value, .left = room};
        good = read_text(&scan, &key_target) && take(&scan, ':');
        bool is_named = good && !key_target.overflow && strcmp(key, name) == 0;
        if (is_named && peek(&scan) == '"') {
            good = read_text(&scan, &value_target) && !value_target.overflow;
            result = S3_JSON_FOUND;
        } else {
            good = good && skip_value(&scan, 1);
        }
        if (good && !take(&scan, ',')) {
            good = take(&scan, '}');
            break;
        }
    }
    if (!good || peek(&scan) != '\0' || scan.at != scan.end) {
        memset(ret_value, 0, room);
        return S3_JSON_WRONG;
    }
    return result;
}
