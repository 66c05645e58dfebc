/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/format/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

char *base64_encode(const uint8_t *bytes, size_t count)
{
    char *text = count <= INT_MAX / 4 * 3 ? malloc((count + 2) / 3 * 4 + 1) : NULL;
    if (text != NULL) {
        EVP_EncodeBlock((unsigned char *)text, bytes, (int)count);
    }
    return text;
}

bool base64_decode(const char *text, size_t length, uint8_t **ret_bytes, size_t *ret_count)
{
    *ret_bytes = NULL;
    size_t digits = length;
    while (digits > 0 && length - digits < 2 && text[digits - 1] == '=') {
        digits--;
    }
    /* EVP_DecodeBlock skips white space at both ends and takes '=' for a digit anywhere. */
    if (length % 4 != 0 || length > INT_MAX || strcspn(text, "= \t\r\n") < digits) {
        return false;
    }
    uint8_t *bytes = malloc(length / 4 * 3 + 1);
    if (bytes == NULL ||
        EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length) != (int)(length / 4 * 3)) {
        free(bytes);
        return false;
    }
    *ret_bytes = bytes;
    *ret_count = digits / 4 * 3 + (digits % 4 == 0 ? 0 : digits % 4 - 1);
    return true;
}
