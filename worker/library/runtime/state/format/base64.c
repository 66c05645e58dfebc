/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/format/base64.h"

#include <stdlib.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const uint8_t *bytes, size_t count)
{
    char *text = malloc((count + 2) / 3 * 4 + 1);
    char *to = text;
    for (size_t i = 0; text != NULL && i < count; i += 3) {
        size_t left = count - i;
        uint32_t word = (uint32_t)bytes[i] << 16;
        word |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        word |= left > 2 ? bytes[i + 2] : 0;
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    if (text != NULL) {
        *to = '\0';
    }
    return text;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four digits; `pads` of them stand for nothing. */
static bool decode_four(const char *text, int pads, uint8_t **to)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        int value = i >= 4 - pads ? 0 : value_of(text[i]);
        if (value < 0) {
            return false;
        }
        word = word << 6 | (uint32_t)value;
    }
    for (int i = 0; i < 3 - pads; i++) {
        *(*to)++ = (uint8_t)(word >> (16 - 8 * i));
    }
    return true;
}

bool base64_decode(const char *text, size_t length, uint8_t **ret_bytes, size_t *ret_count)
{
    uint8_t *bytes = length % 4 == 0 ? malloc(length / 4 * 3 + 1) : NULL;
    uint8_t *to = bytes;
    bool good = bytes != NULL;
    *ret_bytes = NULL;
    for (size_t i = 0; good && i < length; i += 4) {
        bool last = i + 4 == length;
        int pads = last && text[i + 3] == '=' ? (text[i + 2] == '=' ? 2 : 1) : 0;
        good = decode_four(text + i, pads, &to);
    }
    if (!good) {
        free(bytes);
        return false;
    }
    *ret_bytes = bytes;
    *ret_count = (size_t)(to - bytes);
    return true;
}
