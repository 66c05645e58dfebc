/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files for tests; see tfrecord_writing.h. */
#include "tests/unit/input/tfrecord_writing.h"

#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/scratch_folder.h"

const uint8_t foo_bar[FOO_BAR_BYTES] = {3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 0x66, 0x6f,
    0x6f, 0x61, 0x8a, 0xbe, 0xfe, 3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 0x62, 0x61, 0x72,
    0x46, 0, 0xe5, 0xc8};

void frames_clear(struct frames *frames)
{
    free(frames->bytes);
    *frames = (struct frames){0};
}

uint32_t plain_crc32c(const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= from[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

uint32_t plain_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void put(struct frames *frames, const void *bytes, size_t size)
{
    if (frames->bytes == NULL || frames->size + size > frames->room) {
        frames->room = 2 * (frames->size + size) + 64;
        frames->bytes = realloc(frames->bytes, frames->room);
        assert_non_null(frames->bytes);
    }
    if (size > 0) {
        memcpy(frames->bytes + frames->size, bytes, size);
    }
    frames->size += size;
}

void frames_add_wrong_length(struct frames *frames, uint64_t length, const void *data, size_t size)
{
    uint32_t crc = plain_mask(plain_crc32c(&length, sizeof length));
    assert_true(frames->count + 1 < sizeof frames->starts / sizeof frames->starts[0]);
    frames->starts[frames->count++] = frames->size;
    put(frames, &length, sizeof length);
    put(frames, &crc, sizeof crc);
    put(frames, data, size);
    crc = plain_mask(plain_crc32c(data, size));
    put(frames, &crc, sizeof crc);
    frames->starts[frames->count] = frames->size;
}

void frames_add(struct frames *frames, const void *data, size_t size)
{
    frames_add_wrong_length(frames, size, data, size);
}

void frames_add_pattern(struct frames *frames, uint64_t number, size_t size)
{
    uint8_t *data = malloc(size + sizeof number);
    assert_non_null(data);
    memcpy(data, &number, sizeof number);
    for (size_t i = sizeof number; i < size; i++) {
        data[i] = (uint8_t)(number * 37 + i * 11 + (i >> 8));
    }
    frames_add(frames, data, size);
    free(data);
}

void frames_add_patterns(struct frames *frames, size_t count, size_t size_max)
{
    for (size_t i = 0; i < count; i++) {
        frames_add_pattern(frames, i, i * 7919 % (size_max + 1));
    }
}

cadre_string frames_record(const struct frames *frames, size_t number)
{
    assert_true(number < frames->count);
    size_t start = frames->starts[number];
    return (cadre_string){.bytes = (const char *)frames->bytes + start + 12,
        .size = frames->starts[number + 1] - start - 16};
}

const char *frames_write(const struct frames *frames, const char *name)
{
    return scratch_write(name, frames->bytes, frames->size);
}

void frames_expect(
    const struct frames *frames, size_t first, const cadre_string *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cadre_string expected = frames_record(frames, first + i);
        assert_int_equal(records[i].size, expected.size);
        assert_memory_equal(records[i].bytes, expected.bytes, expected.size);
    }
}
