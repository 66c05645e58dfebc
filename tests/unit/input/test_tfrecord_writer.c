/* SPDX-License-Identifier: Apache-2.0
 * Writing TFRecord files: they are those of TensorFlow, whole or absent, and a full disk is
 * reported. */
#include "tests/unit/input/cmocka_unit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/tfrecord.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/files/record_reader.h"

static unsigned files_in_folder(void)
{
    DIR *dir = opendir(scratch_path("."));
    unsigned count = 0;
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

/* The first failure of writing and closing. */
static cadre_status write_all(
    const char *path, cadre_compression compression, const struct frames *frames)
{
    cadre_tfrecord_writer *writer = NULL;
    cadre_status status = cadre_tfrecord_writer_create(path, compression, &writer);
    if (status != CADRE_OK) {
        assert_null(writer);
        return status;
    }
    for (size_t i = 0; i < frames->count && status == CADRE_OK; i++) {
        cadre_string record = frames_record(frames, i);
        status = cadre_tfrecord_writer_write(writer, record.bytes, record.size);
    }
    /* What failed once fails again. */
    assert_true(status == CADRE_OK || cadre_tfrecord_writer_write(writer, "x", 1) == status);
    cadre_status closed = cadre_tfrecord_writer_close(writer);
    assert_true(status == CADRE_OK || closed == status);
    return closed;
}

static void the_bytes_of_tensorflow(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    char *bytes = NULL;
    size_t size = 0;
    frames_add(&frames, "foo", 3);
    frames_add(&frames, "bar", 3);
    const char *path = scratch_path("plain");
    assert_int_equal(write_all(path, CADRE_COMPRESSION_NONE, &frames), CADRE_OK);
    ASSERT_OK(file_read(path, 1000, &bytes, &size, &error));
    assert_int_equal(size, FOO_BAR_BYTES);
    assert_memory_equal(bytes, foo_bar, FOO_BAR_BYTES);
    free(bytes);
    frames_clear(&frames);
    assert_int_equal(write_all(path, CADRE_COMPRESSION_NONE, &frames), CADRE_OK);
    ASSERT_OK(file_read(path, 1000, &bytes, &size, &error));
    assert_int_equal(size, 0);
    free(bytes);
}

static void expect_read(
    const char *path, cadre_compression compression, const struct frames *frames)
{
    struct record_reader *reader = NULL;
    struct cadre_error error = {0};
    const struct record_options options = {
        .compression = compression, .rules = {.record_bytes = 1 << 30}, .buffer_bytes = 1 << 20};
    size_t read = 0;
    size_t count = 0;
    ASSERT_OK(record_reader_open(path, &options, &reader, &error));
    do {
        const cadre_string *records = NULL;
        ASSERT_OK(record_reader_next(reader, 64, &records, &count, &error));
        frames_expect(frames, read, records, count);
        read += count;
    } while (count > 0);
    assert_int_equal(read, frames->count);
    record_reader_close(reader);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct frames frames = {0};
    frames_add_patterns(&frames, 3000, 3000);
    frames_add_pattern(&frames, 1, (1 << 20) - 1);
    frames_add_pattern(&frames, 2, 5 << 20);
    frames_add_patterns(&frames, 10, 300);
    for (int kind = CADRE_COMPRESSION_NONE; kind <= CADRE_COMPRESSION_ZLIB; kind++) {
        const char *path = scratch_path("a");
        assert_int_equal(write_all(path, (cadre_compression)kind, &frames), CADRE_OK);
        expect_read(path, (cadre_compression)kind, &frames);
        struct stat facts;
        assert_int_equal(stat(path, &facts), 0);
        assert_true(kind == CADRE_COMPRESSION_NONE ? (size_t)facts.st_size == frames.size
                                                   : (size_t)facts.st_size < frames.size / 2);
    }
    frames_clear(&frames);
}

static void nothing_before_it_is_closed(void **state)
{
    (void)state;
    cadre_tfrecord_writer *writer = NULL;
    const char *path = scratch_write("b", "what was there", 14);
    unsigned before = files_in_folder();
    struct frames frames = {0};
    struct cadre_error error = {0};
    char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer), CADRE_OK);
    assert_int_equal(cadre_tfrecord_writer_write(writer, NULL, 0), CADRE_OK);
    ASSERT_OK(file_read(path, 1000, &bytes, &size, &error));
    assert_int_equal(size, 14);
    free(bytes);
    cadre_tfrecord_writer_release(writer);
    cadre_tfrecord_writer_release(NULL);
    assert_int_equal(cadre_tfrecord_writer_close(NULL), CADRE_OK);
    assert_int_equal(files_in_folder(), before);
    frames_add(&frames, "", 0);
    assert_int_equal(write_all(path, CADRE_COMPRESSION_NONE, &frames), CADRE_OK);
    expect_read(path, CADRE_COMPRESSION_NONE, &frames);
    assert_int_equal(files_in_folder(), before);
    frames_clear(&frames);
}

static void arguments_that_are_refused(void **state)
{
    (void)state;
    cadre_tfrecord_writer *writer = NULL;
    assert_int_equal(cadre_tfrecord_writer_create(NULL, CADRE_COMPRESSION_NONE, &writer),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tfrecord_writer_create("a", CADRE_COMPRESSION_NONE, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tfrecord_writer_create("a", (cadre_compression)7, &writer), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tfrecord_writer_create(scratch_path("none/a"), CADRE_COMPRESSION_NONE, &writer),
        CADRE_NOT_FOUND);
    assert_non_null(strstr(cadre_error_message(), "none/a"));
    assert_int_equal(
        cadre_tfrecord_writer_create("https://host/a", CADRE_COMPRESSION_NONE, &writer),
        CADRE_INVALID_ARGUMENT); /* not when it is closed */
    assert_int_equal(cadre_tfrecord_writer_write(NULL, "a", 1), CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_tfrecord_writer_create(scratch_path("a"), CADRE_COMPRESSION_NONE, &writer), CADRE_OK);
    assert_int_equal(cadre_tfrecord_writer_write(writer, NULL, 1), CADRE_INVALID_ARGUMENT);
    cadre_tfrecord_writer_release(writer);
    /* The name is a folder's. */
    assert_int_equal(mkdir(scratch_path("folder"), 0700), 0);
    unsigned before = files_in_folder();
    struct frames frames = {0};
    assert_int_not_equal(
        write_all(scratch_path("folder"), CADRE_COMPRESSION_NONE, &frames), CADRE_OK);
    assert_int_equal(files_in_folder(), before);
    assert_int_equal(rmdir(scratch_path("folder")), 0);
}

/* A limit of the file's size stands for a full disk: the system refuses the write. */
static void disk_that_is_full(void **state)
{
    (void)state;
    struct rlimit limit;
    struct frames frames = {0};
    for (uint64_t i = 0; i < 3; i++) {
        frames_add_pattern(&frames, i, 2 << 20);
    }
    frames_add_patterns(&frames, 1000, 4000);
    unsigned before = files_in_folder();
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    for (rlim_t bytes = 1 << 10; bytes <= 8 << 20; bytes *= 8) {
        const struct rlimit small = {.rlim_cur = bytes, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        cadre_status status = write_all(scratch_path("full"), CADRE_COMPRESSION_NONE, &frames);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(status, bytes < frames.size ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        assert_true(status == CADRE_OK || strstr(cadre_error_message(), "full") != NULL);
        assert_int_equal(files_in_folder(), before + (status == CADRE_OK));
        unlink(scratch_path("full"));
    }
    signal(SIGXFSZ, handler);
    frames_clear(&frames);
}

static void every_call_fails_once(void **state)
{
    (void)state;
    struct frames frames = {0};
    bool met = true;
    frames_add_patterns(&frames, 1000, 4000);
    unlink(scratch_path("a"));
    unsigned before = files_in_folder();
    for (uint64_t nth = 1; met; nth++) {
        cadre_compression compression =
            nth % 2 == 0 ? CADRE_COMPRESSION_NONE : CADRE_COMPRESSION_GZIP;
        fault_arm("", nth);
        cadre_status status = write_all(scratch_path("a"), compression, &frames);
        met = fault_disarm();
        assert_true(met == (status != CADRE_OK));
        assert_int_equal(files_in_folder(), before + (status == CADRE_OK));
        assert_true(nth < 1000);
    }
    frames_clear(&frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_of_tensorflow),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nothing_before_it_is_closed),
        cmocka_unit_test(arguments_that_are_refused),
        cmocka_unit_test(disk_that_is_full),
        cmocka_unit_test(every_call_fails_once),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
