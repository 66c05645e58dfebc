/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pure/text.h"

#include <string.h>

#include "common/pure/assert.h"

struct text text_begin(char *buffer, size_t size)
{
    CADRE_ASSERT(size > 0);
    buffer[0] = '\0';
    return (struct text){.at = buffer, .left = size - 1};
}

void text_add(struct text *text, const char *string)
{
    size_t count = strlen(string);
    if (count > text->left) {
        count = text->left;
        while (count > 0 && ((unsigned char)string[count] & 0xC0) == 0x80) {
            count--; /* not in the middle of a UTF-8 character */
        }
        text->left = count;
    }
    memcpy(text->at, string, count);
    text->at += count;
    text->left -= count;
    *text->at = '\0';
}

void text_add_u64(struct text *text, uint64_t value)
{
    char digits[21]; /* of 2^64 - 1, and the terminator */
    char *first = &digits[sizeof(digits) - 1];
    *first = '\0';
    do {
        *--first = (char)('0' + (char)(value % 10));
        value /= 10;
    } while (value != 0);
    text_add(text, first);
}

void text_add_i64(struct text *text, int64_t value)
{
    if (value < 0) {
        text_add(text, "-");
        text_add_u64(text, UINT64_C(0) - (uint64_t)value);
    } else {
        text_add_u64(text, (uint64_t)value);
    }
}

int text_hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
