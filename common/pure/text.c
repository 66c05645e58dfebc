/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pure/text.h"

#include "common/pure/assert.h"

struct text text_begin(char *buffer, size_t size)
{
    CADRE_ASSERT(size > 0);
    buffer[0] = '\0';
    return (struct text){.at = buffer, .left = size - 1};
}

void text_add(struct text *text, const char *string)
{
    while (text->left > 0 && *string != '\0') {
        *text->at++ = *string++;
        text->left--;
    }
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
