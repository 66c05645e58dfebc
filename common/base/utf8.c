/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/utf8.h"

#include <stdint.h>

size_t utf8_printable(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80) {
        return bytes[0] >= 0x20 && bytes[0] != 0x7f ? 1 : 0;
    }
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || length > size) {
        return 0;
    }
    uint32_t character = bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | (bytes[i] & 0x3fu);
    }
    static const uint32_t smallest[] = {0, 0, 0xa0, 0x800, 0x10000};
    if (character < smallest[length] || character > 0x10ffff ||
        (character >= 0xd800 && character <= 0xdfff) ||
        (character >= 0x202a && character <= 0x202e) ||
        (character >= 0x2066 && character <= 0x2069)) {
        return 0;
    }
    return length;
}
