/* SPDX-License-Identifier: Apache-2.0
 * Frames in memory: the known ones, every wrong one, and many mutated from a seed, which must be
 * answered without reading out of bounds (see it under a sanitizer). */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "common/pure/prng.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/files/record_frame.h"

static const struct record_rules rules = {.record_bytes = 1 << 20};

/* Walks over a copy of the very size, so that a read beyond it is one beyond an allocation. */
static struct record_walk walk(const uint8_t *bytes, size_t size, size_t most,
    const struct record_rules *by, cadre_string records[])
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    struct record_walk found = record_walk_frames(exact, size, most, by, records);
    for (size_t i = 0; i < found.count; i++) {
        assert_true(records[i].bytes >= (char *)exact);
        assert_true(records[i].bytes + records[i].size + 4 <= (char *)exact + size);
        records[i].bytes = (const char *)bytes + (records[i].bytes - (char *)exact);
    }
    assert_true(found.used <= size);
    free(exact);
    return found;
}

static void checksums_are_those_of_the_definition(void **state)
{
    (void)state;
    uint8_t bytes[4200];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 31 >> 2);
    }
    for (size_t size = 0; size < 700; size++) {
        size_t at = size % 9;
        assert_int_equal(
            record_checksum(bytes + at, size), plain_mask(plain_crc32c(bytes + at, size)));
    }
    assert_int_equal(
        record_checksum(bytes, sizeof bytes), plain_mask(plain_crc32c(bytes, sizeof bytes)));
}

static void known_frames(void **state)
{
    (void)state;
    cadre_string records[4];
    struct record_walk found = walk(foo_bar, FOO_BAR_BYTES, 4, &rules, records);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.used, FOO_BAR_BYTES);
    assert_int_equal(found.fault, RECORD_SOUND);
    assert_int_equal(found.wanted, RECORD_HEADER_BYTES);
    assert_int_equal(records[0].size, 3);
    assert_memory_equal(records[0].bytes, "foo", 3);
    assert_memory_equal(records[1].bytes, "bar", 3);
    uint8_t made[FOO_BAR_BYTES];
    record_frame_make("foo", 3, made, made + 15);
    memcpy(made + 12, "foo", 3);
    record_frame_make("bar", 3, made + 19, made + 34);
    memcpy(made + 31, "bar", 3);
    assert_memory_equal(made, foo_bar, FOO_BAR_BYTES);
}

/* At each size what is whole is found, and what is missing is reported. */
static void parts_of_frames(void **state)
{
    (void)state;
    cadre_string records[4];
    for (size_t size = 0; size < FOO_BAR_BYTES; size++) {
        struct record_walk found = walk(foo_bar, size, 4, &rules, records);
        size_t left = size < 19 ? size : size - 19;
        assert_int_equal(found.fault, RECORD_SOUND);
        assert_int_equal(found.count, size < 19 ? 0 : 1);
        assert_int_equal(found.used, size < 19 ? 0 : 19);
        assert_int_equal(found.wanted, left < 12 ? 12 : 19);
        assert_int_equal(found.length, left < 12 ? 0 : 3);
    }
    struct record_walk first = walk(foo_bar, FOO_BAR_BYTES, 1, &rules, records);
    assert_int_equal(first.count, 1);
    assert_int_equal(first.wanted, 0);
}

/* Every bit of a frame that is turned is found, and where. */
static void turned_bits(void **state)
{
    (void)state;
    const struct record_rules trusting = {.record_bytes = 1 << 20, .skip_checksums = true};
    for (size_t bit = 0; bit < (size_t)8 * FOO_BAR_BYTES; bit++) {
        uint8_t bytes[FOO_BAR_BYTES];
        cadre_string records[4];
        memcpy(bytes, foo_bar, sizeof bytes);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct record_walk found = walk(bytes, sizeof bytes, 4, &rules, records);
        size_t frame = bit / 8 / 19;
        assert_int_equal(found.count, frame);
        assert_int_equal(found.used, frame * 19);
        assert_int_equal(
            found.fault, bit / 8 % 19 < 12 ? RECORD_LENGTH_DAMAGED : RECORD_DATA_DAMAGED);
        if (bit / 8 % 19 >= 8) {
            found = walk(bytes, sizeof bytes, 4, &trusting, records);
            assert_int_equal(found.count, 2);
        }
    }
}

static void lengths_over_the_limit(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {(1 << 20) + 1, UINT64_C(1) << 62, UINT64_C(1) << 63,
        UINT64_MAX - 16, UINT64_MAX - 15, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct frames frames = {0};
        cadre_string records[1];
        frames_add_wrong_length(&frames, lengths[i], "data", 4);
        struct record_walk found = walk(frames.bytes, frames.size, 1, &rules, records);
        assert_int_equal(found.fault, RECORD_TOO_LONG);
        assert_int_equal(found.length, lengths[i]);
        assert_int_equal(found.count, 0);
        found = record_walk_headers(frames.bytes, frames.size, 1, &rules, 0, NULL);
        assert_int_equal(found.fault, RECORD_TOO_LONG);
        const struct record_rules trusting = {.record_bytes = 1 << 20, .skip_checksums = true};
        found = walk(frames.bytes, frames.size, 1, &trusting, records);
        assert_int_equal(found.fault, RECORD_TOO_LONG);
        frames_clear(&frames);
    }
}

static void headers_alone(void **state)
{
    (void)state;
    struct frames frames = {0};
    uint64_t starts[101];
    frames_add_patterns(&frames, 100, 300);
    for (size_t i = 0; i < frames.count; i++) {
        frames.bytes[frames.starts[i + 1] - 1] ^= 1; /* data is not looked at */
    }
    struct record_walk found =
        record_walk_headers(frames.bytes, frames.size, 101, &rules, 1000, starts);
    assert_int_equal(found.count, 100);
    assert_int_equal(found.used, frames.size);
    assert_int_equal(found.last, frames.starts[99]);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(starts[i], 1000 + frames.starts[i]);
    }
    /* The last header is enough for the last frame. */
    found = record_walk_headers(frames.bytes, frames.starts[99] + 12, 101, &rules, 0, NULL);
    assert_int_equal(found.count, 100);
    assert_int_equal(found.used, frames.size);
    found = record_walk_headers(frames.bytes, frames.starts[99] + 11, 101, &rules, 0, NULL);
    assert_int_equal(found.count, 99);
    assert_int_equal(found.wanted, 12);
    frames_clear(&frames);
}

static void mutated_frames(void **state)
{
    (void)state;
    struct prng prng = {.state = 20};
    for (int round = 0; round < 20000; round++) {
        struct frames frames = {0};
        cadre_string records[8];
        frames_add_pattern(&frames, 1, prng_uniform(&prng, 40));
        frames_add_pattern(&frames, 2, prng_uniform(&prng, 400));
        frames.bytes[prng_uniform(&prng, frames.size)] = (uint8_t)prng_next(&prng);
        size_t size = prng_uniform(&prng, frames.size + 1);
        const struct record_rules by = {
            .record_bytes = 1000, .skip_checksums = prng_uniform(&prng, 2) == 0};
        struct record_walk found = walk(frames.bytes, size, 8, &by, records);
        assert_true(found.count <= 8);
        assert_true(found.fault != RECORD_SOUND || found.count == 8 || found.wanted > 0);
        found = record_walk_headers(frames.bytes, size, 8, &by, 0, NULL);
        assert_true(found.used <= size + 1016);
        frames_clear(&frames);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_definition),
        cmocka_unit_test(known_frames),
        cmocka_unit_test(parts_of_frames),
        cmocka_unit_test(turned_bits),
        cmocka_unit_test(lengths_over_the_limit),
        cmocka_unit_test(headers_alone),
        cmocka_unit_test(mutated_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
