/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/series/version_1.h"

#include <stdlib.h>
#include <string.h>

#include <isa-l/crc64.h>

#include "tests/lib/test.h"

#define HEAD_BYTES 16

enum { HEAD = 1, BEGIN = 2, NAME = 3 };

static void append_record(
    struct wire_buffer *buffer, uint32_t type, const uint8_t *payload, uint32_t size)
{
    uint8_t sealed[8];
    memcpy(sealed, &type, 4); /* tests run on little-endian machines only */
    memcpy(sealed + 4, &size, 4);
    uint64_t sum = crc64_ecma_refl(0, sealed, sizeof sealed);
    sum = size > 0 ? crc64_ecma_refl(sum, payload, size) : sum;
    assert_true(wire_buffer_reserve(buffer, HEAD_BYTES + size));
    uint8_t *to = buffer->bytes + buffer->size;
    memcpy(to, &size, 4);
    memcpy(to + 4, &type, 4);
    memcpy(to + 8, &sum, 8);
    memcpy(to + HEAD_BYTES, payload, size);
    buffer->size += HEAD_BYTES + size;
}

void version_1_of(const struct wire_buffer *file, struct wire_buffer *ret_old)
{
    for (size_t at = 0; at < file->size;) {
        uint32_t size;
        uint32_t type;
        memcpy(&size, file->bytes + at, 4);
        memcpy(&type, file->bytes + at + 4, 4);
        const uint8_t *payload = file->bytes + at + HEAD_BYTES;
        if (type == HEAD) {
            append_record(ret_old, type, (const uint8_t *)"cadre series 1", 15);
        } else if (type == BEGIN) { /* without the source behind the numbers */
            assert_int_equal(payload[32], 0);
            append_record(ret_old, type, payload, 32);
        } else if (type == NAME) { /* without the source before the name */
            assert_int_equal(payload[0], 0);
            append_record(ret_old, type, payload + 1, size - 1);
        } else {
            append_record(ret_old, type, payload, size);
        }
        at += HEAD_BYTES + size;
    }
}
