/* SPDX-License-Identifier: Apache-2.0
 * Lines of text files, plain and compressed: bytes that Python's gzip and zlib (zlib 1.2.13) wrote,
 * lines around the edges of the buffer and the limit, and files that are damaged. */
#include "tests/unit/input/cmocka_unit.h"

#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/input/files/inflate_stream.h"

/* gzip.compress(b"one\ntwo\r\n\nfour", 9, mtime=0), and the same by zlib.compress. */
static const char gzip_bytes[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xcf\x4b\xe5\x2a\x29\xcf\xe7\xe5\xe2\x4a\xcb\x2f"
    "\x2d\x02\x00\xe5\x0d\x6b\xf4\x0e\x00\x00\x00";
static const char zlib_bytes[] =
    "\x78\xda\xcb\xcf\x4b\xe5\x2a\x29\xcf\xe7\xe5\xe2\x4a\xcb\x2f\x2d\x02\x00\x22\x19\x04\x84";

/* "five\n" behind a header with all that RFC 1952 allows: extra field, name, comment, checksum. */
static const char long_header[] =
    "\x1f\x8b\x08\x1f\x00\x00\x00\x00\x00\x03\x05\x00\x65\x78\x74\x72\x61\x6e\x61\x6d\x65\x00\x63"
    "\x6f\x6d\x6d\x65\x6e\x74\x00\x42\xbe\x4b\xcb\x2c\x4b\xe5\x02\x00\x67\xaf\x5d\x3e\x05\x00\x00"
    "\x00";

#define SIZE_OF(literal) (sizeof(literal) - 1)

static cadre_dataset *lines_of(const char *path, cadre_compression compression, int64_t line_bytes)
{
    const cadre_text_options options = {.compression = compression, .line_bytes = line_bytes};
    return cadre_dataset_text_lines(&path, 1, &options);
}

static cadre_dataset *lines_in(const char *bytes, size_t size, cadre_compression compression)
{
    /* A new file each time: where an old one is overwritten some file systems wait for the disk. */
    unlink(scratch_path("text"));
    return lines_of(scratch_write("text", bytes, size), compression, 0);
}

static void plain_lines(void **state)
{
    (void)state;
    const char *paths[] = {scratch_write("a", "one\ntwo\r\n\nfour", 14),
        scratch_write("none", "", 0), scratch_write("b", "\n\r\nfive\r six\n", 13),
        scratch_write("c", "\r", 1)};
    cadre_dataset *data = cadre_dataset_text_lines(paths, 4, NULL);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    expect_spec(data, "string []");
    expect_consistent(data);
    expect_elements(data, "one two  four   five\r six \r");
    expect_elements(cadre_dataset_batch(cadre_dataset_text_lines(paths, 4, NULL), 3, false),
        "[one two ] [four  ] [five\r six \r]");
    expect_elements(lines_in("", 0, CADRE_COMPRESSION_NONE), "");
    expect_elements(lines_in("x", 1, CADRE_COMPRESSION_NONE), "x");
    expect_elements(lines_in("x\n", 2, CADRE_COMPRESSION_NONE), "x");
}

static void compressed_lines(void **state)
{
    (void)state;
    expect_elements(
        lines_in(gzip_bytes, SIZE_OF(gzip_bytes), CADRE_COMPRESSION_GZIP), "one two  four");
    expect_elements(
        lines_in(zlib_bytes, SIZE_OF(zlib_bytes), CADRE_COMPRESSION_ZLIB), "one two  four");
    char both[SIZE_OF(gzip_bytes) * 2 + SIZE_OF(long_header)];
    memcpy(both, gzip_bytes, SIZE_OF(gzip_bytes));
    memcpy(both + SIZE_OF(gzip_bytes), long_header, SIZE_OF(long_header));
    memcpy(both + SIZE_OF(gzip_bytes) + SIZE_OF(long_header), gzip_bytes, SIZE_OF(gzip_bytes));
    /* The end of a member is not the end of a line. */
    expect_elements(
        lines_in(both, sizeof both, CADRE_COMPRESSION_GZIP), "one two  fourfive one two  four");
    memcpy(both, zlib_bytes, SIZE_OF(zlib_bytes));
    memcpy(both + SIZE_OF(zlib_bytes), zlib_bytes, SIZE_OF(zlib_bytes));
    expect_elements(lines_in(both, 2 * SIZE_OF(zlib_bytes), CADRE_COMPRESSION_ZLIB),
        "one two  fourone two  four");
    cadre_dataset *data = lines_in(gzip_bytes, SIZE_OF(gzip_bytes), CADRE_COMPRESSION_GZIP);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* Fails unless the file is refused as damaged, naming it. */
static void expect_damage(
    const char *bytes, size_t size, cadre_compression compression, const char *message)
{
    expect_failure(lines_in(bytes, size, compression), CADRE_DATA_LOSS, message);
}

static void damaged_files(void **state)
{
    (void)state;
    const cadre_compression gzip = CADRE_COMPRESSION_GZIP;
    const cadre_compression zlib = CADRE_COMPRESSION_ZLIB;
    char bytes[256];
    for (size_t size = 0; size < SIZE_OF(gzip_bytes); size++) {
        expect_damage(gzip_bytes, size, gzip, "text is cut short: its ");
    }
    for (size_t size = 0; size < SIZE_OF(zlib_bytes); size++) {
        expect_damage(zlib_bytes, size, zlib, "inside the zlib stream that begins at byte 0");
    }
    for (size_t size = 1; size < SIZE_OF(long_header); size++) {
        memcpy(bytes, gzip_bytes, SIZE_OF(gzip_bytes));
        memcpy(bytes + SIZE_OF(gzip_bytes), long_header, size);
        expect_damage(bytes, SIZE_OF(gzip_bytes) + size, gzip,
            "inside the gzip stream that begins at byte 34");
    }
    /* Every byte of the data and behind it matters, but for one that is mostly padding. */
    for (size_t at = 10; at < SIZE_OF(gzip_bytes); at += at == 24 ? 2 : 1) {
        memcpy(bytes, gzip_bytes, SIZE_OF(gzip_bytes));
        bytes[at] ^= 0x10;
        cadre_dataset *data = lines_in(bytes, SIZE_OF(gzip_bytes), gzip);
        expect_failure(data, CADRE_DATA_LOSS, "/text");
    }
    memcpy(bytes, gzip_bytes, SIZE_OF(gzip_bytes));
    memset(bytes + SIZE_OF(gzip_bytes), 0, 100);
    expect_damage(bytes, SIZE_OF(gzip_bytes) + 100, gzip,
        "after the end of the gzip stream, from byte 34 on, stands something else");
    /* Also where there is less of it than a header. */
    memcpy(bytes + SIZE_OF(gzip_bytes), "more", 4);
    for (size_t size = 1; size < 4; size++) {
        expect_damage(bytes, SIZE_OF(gzip_bytes) + size, gzip,
            "after the end of the gzip stream, from byte 34 on, stands something else");
        expect_damage(
            bytes + SIZE_OF(gzip_bytes), size, gzip, "text is not a gzip file (the header");
    }
    memcpy(bytes, zlib_bytes, SIZE_OF(zlib_bytes));
    memcpy(bytes + SIZE_OF(zlib_bytes), "more", 4);
    expect_damage(bytes, SIZE_OF(zlib_bytes) + 4, zlib, "from byte 22 on, stands something else");
    memcpy(bytes, gzip_bytes, SIZE_OF(gzip_bytes));
    bytes[SIZE_OF(gzip_bytes) - 8] ^= 1;
    expect_damage(bytes, SIZE_OF(gzip_bytes), gzip, "(a checksum is wrong)");
    bytes[SIZE_OF(gzip_bytes) - 8] ^= 1;
    bytes[3] = 0x20;
    expect_damage(bytes, SIZE_OF(gzip_bytes), gzip, "flags that do not exist");
    expect_damage(zlib_bytes, SIZE_OF(zlib_bytes), gzip, "is not a gzip file");
    expect_damage(gzip_bytes, SIZE_OF(gzip_bytes), zlib, "is not a zlib file");
    expect_damage("plain text\n", 11, gzip, "is not a gzip file");
    expect_damage("\x88\x1c\x03\x00\x00\x00\x00\x01", 8, zlib, "a window that does not exist");
    /* zlib.compressobj(..., zdict=b"dictionary") */
    expect_failure(
        lines_in("\x78\xf9\x16\xc0\x04\x37\x4b\x81\xb3\xb8\x00\x1b\x01\x04\x41", 15, zlib),
        CADRE_UNIMPLEMENTED, "needs a dictionary");
}

/* Any bytes in a compressed file are lines, or damage that is named; and all lines come out where
 * nothing was changed. */
static void mutated_files(void **state)
{
    (void)state;
    struct prng prng = {.state = 2026};
    size_t damaged = 0;
    for (int round = 0; round < 600; round++) {
        bool gzip = prng_chance(&prng, 1, 2);
        size_t size = gzip ? SIZE_OF(gzip_bytes) : SIZE_OF(zlib_bytes);
        uint64_t changes = prng_uniform(&prng, 3);
        char bytes[SIZE_OF(gzip_bytes)];
        memcpy(bytes, gzip ? gzip_bytes : zlib_bytes, size);
        for (uint64_t i = 0; i < changes; i++) {
            bytes[prng_uniform(&prng, size)] = (char)prng_next(&prng);
        }
        cadre_dataset *data =
            lines_in(bytes, size, gzip ? CADRE_COMPRESSION_GZIP : CADRE_COMPRESSION_ZLIB);
        const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
        bool whole = strcmp(text, "one two  four") == 0;
        bool lost = strstr(text, "!DATA_LOSS") != NULL || strstr(text, "!UNIMPLEMENTED") != NULL;
        assert_true(changes == 0 ? whole : whole || lost);
        damaged += lost;
        cadre_dataset_release(data);
    }
    assert_true(damaged > 100);
}

/* --- larger ones --- */

/* A gzip file of one member, by ISA-L. */
static const char *write_gzip(const char *name, const char *text, size_t size)
{
    struct isal_zstream stream;
    size_t room = size + size / 8 + 1024;
    uint8_t *bytes = malloc(room);
    assert_non_null(bytes);
    isal_deflate_stateless_init(&stream);
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (uint32_t)size;
    stream.next_out = bytes;
    stream.avail_out = (uint32_t)room;
    stream.end_of_stream = 1;
    stream.gzip_flag = IGZIP_GZIP;
    assert_int_equal(isal_deflate_stateless(&stream), COMP_OK);
    const char *path = scratch_write(name, bytes, stream.total_out);
    free(bytes);
    return path;
}

/* Lines from nothing to more than two buffers, so that every edge falls everywhere. */
static char *make_text(size_t lines, size_t *ret_size)
{
    struct prng prng = {.state = 7};
    char *text = malloc(16 << 20);
    size_t size = 0;
    assert_non_null(text);
    for (size_t line = 0; line < lines; line++) {
        uint64_t kind = prng_uniform(&prng, 1000);
        uint64_t length = kind == 0 ? prng_uniform(&prng, 700000) : prng_uniform(&prng, 200);
        for (uint64_t i = 0; i < length; i++) {
            text[size++] = (char)('a' + (line + i) % 26);
        }
        text[size++] = '\n';
    }
    assert_true(size < 16 << 20);
    *ret_size = size;
    return text;
}

/* Reads all of it and compares with the text. */
static void expect_text(cadre_dataset *data, const char *text, size_t size)
{
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_status status = cadre_dataset_iterate(data, 0, &iterator);
    assert_int_equal(status, CADRE_OK);
    size_t at = 0;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        const cadre_string *lines = cadre_tensor_const_data(element.tensors[0]);
        for (int64_t i = 0; i < cadre_tensor_count(element.tensors[0]); i++) {
            assert_true(lines[i].size < size - at);
            assert_memory_equal(lines[i].bytes, text + at, lines[i].size);
            at += lines[i].size;
            assert_int_equal(text[at], '\n');
            at++;
        }
        cadre_element_release(&element);
    }
    assert_int_equal(status, CADRE_OUT_OF_RANGE);
    assert_int_equal(at, size);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void large_files(void **state)
{
    (void)state;
    size_t size = 0;
    char *text = make_text(20000, &size);
    const char *plain = scratch_write("large", text, size);
    const char *packed = write_gzip("large.gz", text, size);
    expect_text(lines_of(plain, CADRE_COMPRESSION_NONE, 0), text, size);
    expect_text(lines_of(packed, CADRE_COMPRESSION_GZIP, 0), text, size);
    expect_text(
        cadre_dataset_batch(lines_of(plain, CADRE_COMPRESSION_NONE, 0), 100, false), text, size);
    expect_text(
        cadre_dataset_batch(lines_of(packed, CADRE_COMPRESSION_GZIP, 0), 3333, false), text, size);
    free(text);
}

static void longest_lines(void **state)
{
    (void)state;
    const cadre_compression none = CADRE_COMPRESSION_NONE;
    const char *path = scratch_write("limit", "ab\nabc\r\nabc\nabcd", 16);
    expect_elements(lines_of(path, none, 4), "ab abc abc abcd");
    expect_failure(lines_of(path, none, 3), CADRE_RESOURCE_EXHAUSTED,
        "limit: the line that begins at byte 12 of the text is longer than the 3 bytes");
    expect_failure(lines_of(path, none, 2), CADRE_RESOURCE_EXHAUSTED, "begins at byte 3");
    /* What comes before is given, one by one and in batches. */
    cadre_dataset *data = lines_of(path, none, 3);
    const char *some = elements_text(data, &(struct pass){0}, SIZE_MAX);
    assert_ptr_equal(strstr(some, "ab abc abc!RESOURCE_EXHAUSTED"), some);
    cadre_dataset_release(data);
    data = cadre_dataset_batch(lines_of(path, none, 3), 2, false);
    some = elements_text(data, &(struct pass){0}, SIZE_MAX);
    assert_ptr_equal(strstr(some, "[ab abc]!RESOURCE_EXHAUSTED"), some);
    cadre_dataset_release(data);
    /* Around the size of the buffer. */
    const size_t lengths[] = {(256 << 10) - 1, 256 << 10, (256 << 10) + 1, (512 << 10) + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t length = lengths[i];
        char *text = malloc(length + 2);
        assert_non_null(text);
        memset(text, 'x', length);
        memcpy(text + length, "\r\n", 2);
        for (size_t end = 0; end <= 2; end++) {
            path = scratch_write("limit", text, length + end);
            expect_failure(lines_of(path, none, (int64_t)length - 1 + (end == 1)),
                CADRE_RESOURCE_EXHAUSTED, "begins at byte 0 of the text");
            data = lines_of(path, none, (int64_t)length + (end == 1));
            cadre_iterator *iterator = NULL;
            cadre_element element = {0};
            assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
            assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
            const cadre_string *line = cadre_tensor_const_data(element.tensors[0]);
            assert_int_equal(line->size, length + (end == 1));
            cadre_element_release(&element);
            assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
            cadre_iterator_release(iterator);
            cadre_dataset_release(data);
        }
        free(text);
    }
}

/* --- what goes wrong around it --- */

static void cut_while_reading(void **state)
{
    (void)state;
    size_t size = 0;
    char *text = make_text(10000, &size);
    const char *path = scratch_write("cut", text, size);
    cadre_dataset *data = lines_of(path, CADRE_COMPRESSION_NONE, 0);
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    assert_int_equal(truncate(path, (off_t)size / 2), 0);
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        cadre_element_release(&element);
        status = cadre_iterator_next(iterator, &element);
    }
    assert_int_equal(status, CADRE_DATA_LOSS);
    assert_non_null(strstr(cadre_error_message(), "cut is cut short"));
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    free(text);
}

/* Goes to `offset` of file `file` of two with "one\ntwo\n". */
static cadre_status restored(
    uint64_t file, uint64_t offset, cadre_compression compression, struct cadre_error *ret_error)
{
    const char *path = compression == CADRE_COMPRESSION_NONE ? scratch_write("two", "one\ntwo\n", 8)
                                                             : write_gzip("two", "one\ntwo\n", 8);
    const cadre_text_options options = {.compression = compression};
    const char *const paths[] = {path, path};
    cadre_dataset *data = cadre_dataset_text_lines(paths, 2, &options);
    struct cadre_error error = {0};
    struct iterator_state_writer writer = {0};
    cadre_iterator *iterator = NULL;
    ASSERT_OK(iterator_state_write_number(&writer, file, &error));
    ASSERT_OK(iterator_state_write_number(&writer, offset, &error));
    ASSERT_OK(iterator_state_write_number(&writer, 5, &error));
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
    struct iterator_state_reader reader = {.bytes = writer.bytes, .count = writer.count};
    cadre_status status = iterator->ops->restore(iterator, &reader, ret_error);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    iterator_state_writer_clear(&writer);
    return status;
}

static void positions_of_other_files(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    for (int kind = CADRE_COMPRESSION_NONE; kind <= CADRE_COMPRESSION_GZIP; kind++) {
        cadre_compression compression = (cadre_compression)kind;
        for (uint64_t offset = 0; offset < 20; offset++) {
            bool fits = offset == 0 || offset == 4 || offset == 8;
            assert_int_equal(
                restored(1, offset, compression, &error), fits ? CADRE_OK : CADRE_INVALID_ARGUMENT);
            assert_true(fits || strstr(error.text, "no line begins there") != NULL);
        }
        assert_int_equal(restored(2, 0, compression, &error), CADRE_OK);
        assert_int_equal(restored(2, 1, compression, &error), CADRE_INVALID_ARGUMENT);
        assert_int_equal(restored(3, 0, compression, &error), CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "is in file 3 (from 0), and there are 2 files"));
        assert_int_equal(restored(1, UINT64_MAX, compression, &error), CADRE_INVALID_ARGUMENT);
    }
}

static void wrong_arguments(void **state)
{
    (void)state;
    const char *const none[] = {NULL};
    const char *path = scratch_write("a", "x\n", 2);
    expect_failure(
        cadre_dataset_text_lines(NULL, 1, NULL), CADRE_INVALID_ARGUMENT, "no file given");
    expect_failure(
        cadre_dataset_text_lines(none, 0, NULL), CADRE_INVALID_ARGUMENT, "no file given");
    expect_failure(
        cadre_dataset_text_lines(none, 1, NULL), CADRE_INVALID_ARGUMENT, "path 0 is NULL");
    expect_failure(
        lines_of(path, (cadre_compression)3, 0), CADRE_INVALID_ARGUMENT, "3 is not a compression");
    expect_failure(
        lines_of(path, CADRE_COMPRESSION_NONE, -1), CADRE_INVALID_ARGUMENT, "at most -1 bytes");
    expect_failure(
        lines_of(scratch_path("absent"), CADRE_COMPRESSION_NONE, 0), CADRE_NOT_FOUND, "absent");
    expect_failure(lines_of("/dev/null", CADRE_COMPRESSION_NONE, 0), CADRE_INVALID_ARGUMENT,
        "not a regular file");
    struct inflate_stream *stream = NULL;
    struct cadre_error error = {0};
    assert_int_equal(
        inflate_stream_open(path, (cadre_compression)-1, &stream, &error), CADRE_INVALID_ARGUMENT);
    inflate_stream_close(stream);
}

static void description(void **state)
{
    (void)state;
    cadre_dataset *data = lines_in(gzip_bytes, SIZE_OF(gzip_bytes), CADRE_COMPRESSION_GZIP);
    char *text = dataset_describe(data);
    assert_non_null(strstr(text, "text_lines: 1 gzip files, text (34 bytes)"));
    free(text);
    cadre_dataset_release(data);
}

/* Every allocation that can be made to fail fails the reading, and leaves nothing behind. */
static void without_memory(void **state)
{
    (void)state;
    static const char *const points[] = {"input.line", "input.inflate"};
    static char text[600 << 10];
    memset(text, 'x', sizeof text);
    const char *path = write_gzip("long.gz", text, sizeof text);
    for (size_t i = 0; i < 2; i++) {
        bool met = true;
        for (uint64_t nth = 1; met; nth++) {
            struct cadre_error error = {0};
            cadre_iterator *iterator = NULL;
            cadre_element element = {0};
            size_t count = 0;
            fault_arm(points[i], nth);
            cadre_dataset *data = lines_of(path, CADRE_COMPRESSION_GZIP, 0);
            cadre_status status = dataset_iterate(data, &(struct pass){0}, &iterator, &error);
            if (status == CADRE_OK) {
                status = iterator_next_rows(iterator, 4, &element, &count, NULL, &error);
            }
            met = fault_disarm();
            assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
            assert_true(met || nth > (i == 0 ? 4 : 1));
            cadre_element_release(&element);
            cadre_iterator_release(iterator);
            cadre_dataset_release(data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines),
        cmocka_unit_test(compressed_lines),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(mutated_files),
        cmocka_unit_test(large_files),
        cmocka_unit_test(longest_lines),
        cmocka_unit_test(cut_while_reading),
        cmocka_unit_test(positions_of_other_files),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(description),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
