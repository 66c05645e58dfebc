/* SPDX-License-Identifier: Apache-2.0
 * Reading one TFRecord file in order: the same records whatever the buffer, the way and the
 * compression, and what is said of files that are cut, damaged, or something else. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/files/record_reader.h"

/* The 38 bytes of foo_bar as Python 3.11's gzip.compress and zlib.compress (zlib 1.2.13) made them.
 */
static const uint8_t foo_bar_gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
    0x63, 0x66, 0x80, 0x80, 0x0d, 0x33, 0x3d, 0xf9, 0xd2, 0xf2, 0xf3, 0x13, 0xbb, 0xf6, 0xfd, 0x63,
    0x46, 0x12, 0x4a, 0x4a, 0x2c, 0x72, 0x63, 0x78, 0x7a, 0x02, 0x00, 0xdc, 0x9a, 0x44, 0x5c, 0x26,
    0x00, 0x00, 0x00};
static const uint8_t foo_bar_zlib[] = {0x78, 0x9c, 0x63, 0x66, 0x80, 0x80, 0x0d, 0x33, 0x3d, 0xf9,
    0xd2, 0xf2, 0xf3, 0x13, 0xbb, 0xf6, 0xfd, 0x63, 0x46, 0x12, 0x4a, 0x4a, 0x2c, 0x72, 0x63, 0x78,
    0x7a, 0x02, 0x00, 0xa3, 0x3b, 0x0a, 0x5a};

static struct record_options options_of(cadre_compression compression, size_t buffer_bytes)
{
    return (struct record_options){.compression = compression,
        .rules = {.record_bytes = 1 << 20},
        .buffer_bytes = buffer_bytes};
}

static struct record_reader *open_reader(const char *path, size_t buffer_bytes)
{
    struct record_reader *reader = NULL;
    struct cadre_error error = {0};
    const struct record_options options = options_of(CADRE_COMPRESSION_NONE, buffer_bytes);
    ASSERT_OK(record_reader_open(path, &options, &reader, &error));
    return reader;
}

enum way { VIEWS, BLOCKS, BOTH };

/* Reads all records, `most` at a time, and compares; they are checked when the reader has gone on
 * as far as it may, and those of blocks once more at the end. */
static void expect_all(const char *path, const struct record_options *options,
    const struct frames *frames, size_t most, enum way way)
{
    struct record_reader *reader = NULL;
    struct cadre_error error = {0};
    cadre_tensor *blocks[64] = {0};
    size_t held = 0;
    size_t read = 0;
    size_t count = 0;
    ASSERT_OK(record_reader_open(path, options, &reader, &error));
    do {
        const cadre_string *records = NULL;
        cadre_tensor *block = NULL;
        assert_int_equal(record_reader_number(reader), read);
        assert_int_equal(record_reader_offset(reader), frames->starts[read]);
        if (way == VIEWS || (way == BOTH && read % 3 == 0)) {
            ASSERT_OK(record_reader_next(reader, most, &records, &count, &error));
        } else {
            ASSERT_OK(record_reader_next_block(reader, most, &records, &count, &block, &error));
            assert_true((block != NULL) == (count > 0));
            assert_true(count == most || read + count == frames->count);
        }
        assert_true(count <= most && read + count <= frames->count);
        frames_expect(frames, read, records, count);
        read += count;
        cadre_tensor_release(blocks[held % 64]);
        blocks[held++ % 64] = block;
    } while (count > 0);
    assert_int_equal(read, frames->count);
    record_reader_close(reader);
    for (size_t i = 0; i < 64; i++) {
        cadre_tensor_release(blocks[i]);
    }
}

static void the_same_records_every_way(void **state)
{
    (void)state;
    static const size_t buffers[] = {1, 16, 17, 100, 333, 4096, 70000, 1 << 20};
    static const size_t mosts[] = {1, 2, 7, 64, 1000};
    struct frames frames = {0};
    frames_add_patterns(&frames, 500, 700);
    frames_add_pattern(&frames, 500, 100000);
    frames_add_patterns(&frames, 20, 90000);
    const char *path = frames_write(&frames, "a.tfrecord");
    for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
        for (size_t m = 0; m < sizeof mosts / sizeof mosts[0]; m++) {
            const struct record_options options = options_of(CADRE_COMPRESSION_NONE, buffers[b]);
            expect_all(path, &options, &frames, mosts[m], VIEWS);
            expect_all(path, &options, &frames, mosts[m], BLOCKS);
            expect_all(path, &options, &frames, mosts[m], BOTH);
        }
    }
    frames_clear(&frames);
}

static void compressed_files(void **state)
{
    (void)state;
    struct frames frames = {0};
    frames_add(&frames, "foo", 3);
    frames_add(&frames, "bar", 3);
    assert_memory_equal(frames.bytes, foo_bar, FOO_BAR_BYTES);
    const char *gzip = scratch_write("a.gz", foo_bar_gzip, sizeof foo_bar_gzip);
    const char *zlib = scratch_write("a.zlib", foo_bar_zlib, sizeof foo_bar_zlib);
    for (size_t buffer = 1; buffer < 64; buffer += 7) {
        struct record_options options = options_of(CADRE_COMPRESSION_GZIP, buffer);
        expect_all(gzip, &options, &frames, 1, VIEWS);
        expect_all(gzip, &options, &frames, 3, BLOCKS);
        options.compression = CADRE_COMPRESSION_ZLIB;
        expect_all(zlib, &options, &frames, 2, BOTH);
    }
    /* Members one behind the other are one stream, also with records across them. */
    uint8_t twice[2 * sizeof foo_bar_gzip];
    memcpy(twice, foo_bar_gzip, sizeof foo_bar_gzip);
    memcpy(twice + sizeof foo_bar_gzip, foo_bar_gzip, sizeof foo_bar_gzip);
    frames_add(&frames, "foo", 3);
    frames_add(&frames, "bar", 3);
    const struct record_options options = options_of(CADRE_COMPRESSION_GZIP, 25);
    expect_all(scratch_write("b.gz", twice, sizeof twice), &options, &frames, 3, VIEWS);
    frames_clear(&frames);
}

/* Reads to the end or the first failure; the failure must be of this kind and say this. */
static size_t expect_failure_after(
    const char *path, const struct record_options *options, cadre_status code, const char *part)
{
    struct record_reader *reader = NULL;
    struct cadre_error error = {0};
    size_t read = 0;
    size_t count = 0;
    cadre_status status = record_reader_open(path, options, &reader, &error);
    do {
        const cadre_string *records = NULL;
        if (status == CADRE_OK) {
            status = record_reader_next(reader, 100, &records, &count, &error);
            read += count;
        }
    } while (status == CADRE_OK && count > 0);
    if (status != code || (code != CADRE_OK && strstr(error.text, part) == NULL)) {
        fail_msg("%s: '%s' expected, but found %s: %s", path, part, cadre_status_name(status),
            error.text);
    }
    assert_true(code == CADRE_OK || strstr(error.text, path) != NULL);
    record_reader_close(reader);
    return read;
}

static void files_cut_anywhere(void **state)
{
    (void)state;
    for (size_t size = 0; size <= FOO_BAR_BYTES; size++) {
        const char *path = scratch_write("cut", foo_bar, size);
        size_t left = size % 19;
        char part[64];
        snprintf(part, sizeof part, "record %zu at offset %zu: the file ends inside its %s",
            size / 19, size - left,
            left < 12   ? "length"
            : left < 15 ? "data"
                        : "checksum");
        for (size_t buffer = 1; buffer < 50; buffer += 12) {
            struct record_options options = options_of(CADRE_COMPRESSION_NONE, buffer);
            size_t read =
                expect_failure_after(path, &options, left == 0 ? CADRE_OK : CADRE_DATA_LOSS, part);
            assert_int_equal(read, size / 19);
        }
        /* Passing over records finds it too. */
        struct record_reader *reader = open_reader(path, 13);
        struct cadre_error error = {0};
        uint64_t skipped = 0;
        cadre_status status = record_reader_skip(reader, 9, NULL, &skipped, &error);
        assert_int_equal(status, left == 0 ? CADRE_OK : CADRE_DATA_LOSS);
        assert_true(left == 0 || strstr(error.text, part) != NULL);
        assert_true(left != 0 || skipped == size / 19);
        record_reader_close(reader);
    }
}

static void damaged_files(void **state)
{
    (void)state;
    struct record_options options = options_of(CADRE_COMPRESSION_NONE, 1000);
    uint8_t bytes[FOO_BAR_BYTES];
    memcpy(bytes, foo_bar, sizeof bytes);
    bytes[19 + 9] ^= 4;
    const char *path = scratch_write("length", bytes, sizeof bytes);
    assert_int_equal(expect_failure_after(path, &options, CADRE_DATA_LOSS,
                         "length, record 1 at offset 19: the checksum of its length is wrong"),
        1);
    memcpy(bytes, foo_bar, sizeof bytes);
    bytes[13] ^= 4;
    path = scratch_write("data", bytes, sizeof bytes);
    assert_int_equal(expect_failure_after(path, &options, CADRE_DATA_LOSS,
                         "data, record 0 at offset 0: the checksum of its 3 bytes of data"),
        0);
    options.rules.skip_checksums = true;
    assert_int_equal(expect_failure_after(path, &options, CADRE_OK, ""), 2);
    options.rules.skip_checksums = false;
    options.rules.record_bytes = 2;
    expect_failure_after(scratch_write("long", foo_bar, sizeof foo_bar), &options, CADRE_DATA_LOSS,
        "record 0 at offset 0: a length of 3 bytes, over the limit of 2");
    struct frames frames = {0};
    frames_add(&frames, "ok", 2);
    frames_add_wrong_length(&frames, UINT64_C(1) << 63, "x", 1);
    options.rules.record_bytes = 1 << 20;
    assert_int_equal(expect_failure_after(frames_write(&frames, "lie"), &options, CADRE_DATA_LOSS,
                         "record 1 at offset 18: a length of 9223372036854775808 bytes"),
        1);
    frames_clear(&frames);
}

static void files_that_are_none(void **state)
{
    (void)state;
    const struct record_options options = options_of(CADRE_COMPRESSION_NONE, 1000);
    expect_failure_after(scratch_path("missing"), &options, CADRE_NOT_FOUND, "No such file");
    expect_failure_after(scratch_path("."), &options, CADRE_INVALID_ARGUMENT, "regular");
    assert_int_equal(
        expect_failure_after(scratch_write("empty", "", 0), &options, CADRE_OK, ""), 0);
    expect_failure_after(scratch_write("text", "This is no TFRecord file.", 25), &options,
        CADRE_DATA_LOSS, "no TFRecord file");
    expect_failure_after(scratch_write("a.gz", foo_bar_gzip, sizeof foo_bar_gzip), &options,
        CADRE_DATA_LOSS, "compression was not given");
}

static void damaged_compressed_files(void **state)
{
    (void)state;
    static const char junk[] = "this is no header of gzip";
    uint8_t bytes[sizeof foo_bar_gzip + sizeof junk];
    const struct record_options gzip = options_of(CADRE_COMPRESSION_GZIP, 1000);
    memcpy(bytes, foo_bar_gzip, sizeof foo_bar_gzip);
    memcpy(bytes + sizeof foo_bar_gzip, junk, sizeof junk);
    expect_failure_after(
        scratch_write("junk.gz", bytes, sizeof bytes), &gzip, CADRE_DATA_LOSS, "something else");
    expect_failure_after(scratch_write("plain", foo_bar, sizeof foo_bar), &gzip, CADRE_DATA_LOSS,
        "is not a gzip file");
    for (size_t size = 0; size < sizeof foo_bar_gzip; size++) {
        const char *path = scratch_write("cut.gz", foo_bar_gzip, size);
        if (size > 0) {
            expect_failure_after(path, &gzip, CADRE_DATA_LOSS, "cut short");
        }
    }
    memcpy(bytes, foo_bar_gzip, sizeof foo_bar_gzip);
    bytes[sizeof foo_bar_gzip - 6] ^= 1;
    expect_failure_after(scratch_write("crc.gz", bytes, sizeof foo_bar_gzip), &gzip,
        CADRE_DATA_LOSS, "a checksum is wrong");
}

static void file_that_shrinks(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    const cadre_string *records = NULL;
    size_t count = 0;
    frames_add_patterns(&frames, 100, 1000);
    const char *path = frames_write(&frames, "shrinks");
    struct record_reader *reader = open_reader(path, 64);
    ASSERT_OK(record_reader_next(reader, 1, &records, &count, &error));
    assert_int_equal(truncate(path, (off_t)frames.starts[50] + 13), 0);
    cadre_status status = CADRE_OK;
    size_t read = count;
    while (status == CADRE_OK && count > 0) {
        status = record_reader_next(reader, 1, &records, &count, &error);
        read += count;
    }
    assert_int_equal(status, CADRE_DATA_LOSS);
    assert_int_equal(read, 50);
    assert_non_null(strstr(error.text, "record 50 at offset"));
    assert_non_null(strstr(error.text, "cut short"));
    record_reader_close(reader);
    frames_clear(&frames);
}

static void passing_over_records(void **state)
{
    (void)state;
    static const size_t buffers[] = {1, 30, 1000, 100000};
    struct frames frames = {0};
    struct cadre_error error = {0};
    frames_add_patterns(&frames, 300, 500);
    for (uint64_t i = 0; i < 5; i++) {
        frames_add_pattern(&frames, i, 80000 + (size_t)i);
    }
    frames_add_patterns(&frames, 300, 50);
    const char *path = frames_write(&frames, "a.tfrecord");
    for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
        struct record_reader *reader = open_reader(path, buffers[b]);
        uint64_t starts[1000];
        uint64_t skipped = 0;
        size_t at = 0;
        for (size_t step = 0; at < frames.count; step++) {
            const cadre_string *records = NULL;
            size_t count = 0;
            ASSERT_OK(record_reader_skip(reader, step % 19, starts + at, &skipped, &error));
            at += skipped;
            ASSERT_OK(record_reader_next(reader, 1, &records, &count, &error));
            frames_expect(&frames, at, records, count);
            if (count == 1) {
                starts[at] = frames.starts[at];
                at++;
            }
        }
        for (size_t i = 0; i < at; i++) {
            assert_int_equal(starts[i], frames.starts[i]);
        }
        ASSERT_OK(record_reader_skip(reader, 5, NULL, &skipped, &error));
        assert_int_equal(skipped, 0);
        assert_int_equal(record_reader_offset(reader), frames.size);
        record_reader_close(reader);
    }
    frames_clear(&frames);
}

static void going_to_an_index(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    const cadre_string *records = NULL;
    size_t count = 0;
    frames_add_patterns(&frames, 40, 100);
    const char *path = frames_write(&frames, "a.tfrecord");
    for (size_t i = 0; i <= frames.count; i++) {
        struct record_reader *reader = open_reader(path, 64);
        ASSERT_OK(record_reader_seek(reader, frames.starts[i], i, &error));
        assert_int_equal(record_reader_number(reader), i);
        ASSERT_OK(record_reader_next(reader, 1, &records, &count, &error));
        assert_int_equal(count, i < frames.count);
        frames_expect(&frames, i, records, count);
        record_reader_close(reader);
    }
    struct record_reader *reader = open_reader(path, 64);
    assert_int_equal(
        record_reader_seek(reader, frames.size + 1, 40, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "is said to be at offset"));
    record_reader_close(reader);
    frames_clear(&frames);
}

/* What is expected is what comes, when all are alike; and nothing at the end. */
static void expected_bytes(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    const cadre_string *records = NULL;
    uint64_t bytes = 0;
    size_t count = 0;
    for (uint64_t i = 0; i < 10; i++) {
        frames_add_pattern(&frames, i, 84);
    }
    struct record_reader *reader = open_reader(frames_write(&frames, "a.tfrecord"), 150);
    ASSERT_OK(record_reader_expect(reader, 1, &bytes, &error));
    assert_int_equal(bytes, 100);
    ASSERT_OK(record_reader_expect(reader, 64, &bytes, &error));
    assert_int_equal(bytes, 6400);
    ASSERT_OK(record_reader_expect(reader, SIZE_MAX, &bytes, &error));
    assert_int_equal(bytes, INT64_MAX);
    for (size_t read = 0; read < 10; read += count) {
        ASSERT_OK(record_reader_next(reader, 10, &records, &count, &error));
        assert_true(count > 0);
    }
    ASSERT_OK(record_reader_expect(reader, 64, &bytes, &error));
    assert_int_equal(bytes, 0);
    record_reader_close(reader);
    frames_clear(&frames);
}

/* Who keeps a short record that follows long ones keeps no more than it. */
static void short_records_among_long_ones(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    const cadre_string *records = NULL;
    size_t count = 0;
    for (uint64_t i = 0; i < 30; i++) {
        frames_add_pattern(&frames, i, i % 3 == 0 ? 500000 : i % 3 == 1 ? 10 : 20000);
    }
    struct record_reader *reader = open_reader(frames_write(&frames, "a.tfrecord"), 1000);
    for (size_t i = 0; i < 30; i++) {
        cadre_tensor *block = NULL;
        uint64_t bytes = 0;
        ASSERT_OK(record_reader_expect(reader, 1, &bytes, &error));
        ASSERT_OK(record_reader_next_block(reader, 1, &records, &count, &block, &error));
        assert_int_equal(count, 1);
        frames_expect(&frames, i, records, 1);
        assert_int_equal(bytes, records[0].size + 16);
        assert_true(cadre_tensor_bytes(block) <= 2 * records[0].size + 1100);
        cadre_tensor_release(block);
    }
    record_reader_close(reader);
    frames_clear(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_records_every_way),
        cmocka_unit_test(compressed_files),
        cmocka_unit_test(files_cut_anywhere),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(damaged_compressed_files),
        cmocka_unit_test(file_that_shrinks),
        cmocka_unit_test(passing_over_records),
        cmocka_unit_test(going_to_an_index),
        cmocka_unit_test(expected_bytes),
        cmocka_unit_test(short_records_among_long_ones),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
