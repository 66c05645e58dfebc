/* SPDX-License-Identifier: Apache-2.0
 * Writes .npy files into memory; see npy_writing.h. */
#include "tests/unit/input/npy_writing.h"

#include <string.h>

#include "tests/unit/input/cmocka_unit.h"

size_t npy_make(uint8_t *bytes, size_t room, unsigned major, const char *dictionary,
    const void *data, size_t data_bytes)
{
    size_t prefix = major == 1 ? 10 : 12;
    size_t text = strlen(dictionary);
    size_t whole = (prefix + text + 1 + 63) / 64 * 64;
    size_t length = whole - prefix;
    assert_true(whole + data_bytes <= room);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)major;
    bytes[7] = 0;
    for (size_t i = 8; i < prefix; i++) {
        bytes[i] = (uint8_t)(length >> 8 * (i - 8));
    }
    memset(bytes + prefix, ' ', length);
    memcpy(bytes + prefix, dictionary, text);
    bytes[whole - 1] = '\n';
    if (data_bytes > 0) {
        memcpy(bytes + whole, data, data_bytes);
    }
    return whole + data_bytes;
}
