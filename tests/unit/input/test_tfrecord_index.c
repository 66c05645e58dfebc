/* SPDX-License-Identifier: Apache-2.0
 * The places of records: found again, kept in files, and refused when the file was damaged, is of
 * another file or another state of it; made by one process at a time. */
#include "tests/unit/input/cmocka_unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/files/record_index_file.h"
#include "worker/library/input/files/record_table.h"

static const struct record_options options = {
    .rules = {.record_bytes = 1 << 20}, .buffer_bytes = 5000};

/* Paths of the scratch folder that stay: one at a time. */
static const char *stay(const char *path)
{
    static char stable[600];
    snprintf(stable, sizeof stable, "%s", path);
    return stable;
}

static void expect_positions_uniform(const struct record_index *index, const struct frames *frames)
{
    assert_int_equal(index->count, frames->count);
    for (size_t i = 0; i <= frames->count; i++) {
        assert_int_equal(record_index_offset(index, i), frames->starts[i]);
        if (i < frames->count) {
            record_index_prefetch(index, i);
        }
    }
}

static void places_of_any_distance(void **state)
{
    (void)state;
    static const uint64_t distances[] = {16, 200, 5000, 70000, UINT64_C(5) << 30};
    static const uint32_t widths[] = {2, 2, 4, 4, 8};
    for (size_t d = 0; d < 5; d++) {
        struct record_index index = {0};
        struct cadre_error error = {0};
        uint64_t offset = 0;
        uint64_t offsets[2000];
        for (size_t i = 0; i < 2000; i++) {
            offsets[i] = offset;
            ASSERT_OK(record_index_add(&index, offset, &error));
            /* Short ones first: the index is widened when the first long one comes. */
            offset += i < 1000 ? 16 + i % 5 : distances[d] + i % 3;
        }
        index.end = offset;
        assert_int_equal(index.width, widths[d]);
        for (size_t i = 0; i < 2000; i++) {
            assert_int_equal(record_index_offset(&index, i), offsets[i]);
        }
        assert_int_equal(record_index_offset(&index, 2000), offset);
        record_index_clear(&index);
    }
}

/* The bytes of an index of `frames`, which is of `file`. */
static uint8_t *pack(
    const struct frames *frames, const struct record_index_file *file, size_t *ret_size)
{
    struct record_index index = {0};
    struct cadre_error error = {0};
    for (size_t i = 0; i < frames->count; i++) {
        ASSERT_OK(record_index_add(&index, frames->starts[i], &error));
    }
    index.end = frames->size;
    *ret_size = RECORD_INDEX_HEADER_BYTES + record_index_body_bytes(&index);
    uint8_t *bytes = malloc(*ret_size);
    assert_non_null(bytes);
    record_index_pack(&index, file, bytes);
    memcpy(bytes + RECORD_INDEX_HEADER_BYTES, index.groups, record_index_body_bytes(&index));
    record_index_clear(&index);
    return bytes;
}

static cadre_status unpack(
    const uint8_t *bytes, size_t size, const struct record_index_file *file, const char *part)
{
    struct record_index index = {0};
    struct cadre_error error = {0};
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    cadre_status status = record_index_unpack(copy, size, file, &index, &error);
    assert_true(part == NULL || strstr(error.text, part) != NULL);
    record_index_clear(&index);
    return status;
}

static void indexes_that_are_refused(void **state)
{
    (void)state;
    struct frames frames = {0};
    frames_add_patterns(&frames, 40, 300);
    struct record_index_file file = {.bytes = frames.size, .modified_ns = 1234567};
    size_t size = 0;
    uint8_t *bytes = pack(&frames, &file, &size);
    assert_int_equal(unpack(bytes, size, &file, NULL), CADRE_OK);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(unpack(bytes, size, &file, NULL), CADRE_OK);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(unpack(bytes, cut, &file, NULL), CADRE_DATA_LOSS);
    }
    struct record_index_file other = {.bytes = file.bytes + 1, .modified_ns = file.modified_ns};
    assert_int_equal(unpack(bytes, size, &other, "not of this one"), CADRE_FAILED_PRECONDITION);
    other = (struct record_index_file){.bytes = file.bytes, .modified_ns = 1234568};
    assert_int_equal(unpack(bytes, size, &other, "changed since"), CADRE_FAILED_PRECONDITION);
    bytes[8]++;
    assert_int_equal(unpack(bytes, size, &file, "version 2"), CADRE_FAILED_PRECONDITION);
    free(bytes);
    frames_clear(&frames);
}

/* Checksums do not help against who computes them: places outside the file, or too near to each
 * other, are refused as well. */
static void places_that_cannot_be(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 4; wrong++) {
        struct frames frames = {0};
        size_t size = 0;
        frames_add_patterns(&frames, 20, 50);
        struct record_index_file file = {.bytes = frames.size, .modified_ns = 1};
        if (wrong == 1) {
            frames.starts[0] = 1;
        } else if (wrong == 2) {
            frames.starts[7] = frames.starts[6] + 15;
        } else if (wrong == 3) {
            frames.starts[19] = frames.size - 15;
        }
        uint8_t *bytes = pack(&frames, &file, &size);
        assert_int_equal(unpack(bytes, size, &file, NULL), wrong == 0 ? CADRE_OK : CADRE_DATA_LOSS);
        free(bytes);
        frames_clear(&frames);
    }
}

static ino_t inode_of(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? facts.st_ino : 0;
}

static void open_and_expect(const char *path, const char *folder, const struct frames *frames)
{
    struct record_index index = {0};
    struct cadre_error error = {0};
    ASSERT_OK(record_index_open(path, folder, &options, &index, &error));
    expect_positions_uniform(&index, frames);
    record_index_clear(&index);
}

static void kept_and_found_again(void **state)
{
    (void)state;
    struct frames frames = {0};
    char index_path[700];
    frames_add_patterns(&frames, 1000, 300);
    frames_add_pattern(&frames, 1000, 200000);
    frames_add_patterns(&frames, 100, 300);
    const char *path = stay(frames_write(&frames, "a.tfrecord"));
    snprintf(index_path, sizeof index_path, "%s" RECORD_INDEX_SUFFIX, path);
    open_and_expect(path, NULL, &frames);
    ino_t made = inode_of(index_path);
    assert_true(made != 0);
    open_and_expect(path, NULL, &frames);
    assert_int_equal(inode_of(index_path), made);
    /* Another state of the file: made again. */
    frames_add_pattern(&frames, 7, 10);
    frames_write(&frames, "a.tfrecord");
    open_and_expect(path, NULL, &frames);
    /* Damaged, foreign, empty, a folder: made again, or done without. */
    scratch_write("a.tfrecord" RECORD_INDEX_SUFFIX, "what is this?", 13);
    open_and_expect(path, NULL, &frames);
    scratch_write("a.tfrecord" RECORD_INDEX_SUFFIX, "", 0);
    open_and_expect(path, NULL, &frames);
    made = inode_of(index_path);
    open_and_expect(path, NULL, &frames);
    assert_int_equal(inode_of(index_path), made);
    assert_int_equal(unlink(index_path), 0);
    assert_int_equal(mkdir(index_path, 0700), 0);
    open_and_expect(path, NULL, &frames);
    assert_int_equal(rmdir(index_path), 0);
    assert_int_equal(access(scratch_path("a.tfrecord" RECORD_INDEX_SUFFIX ".part"), F_OK), -1);
    frames_clear(&frames);
}

/* The time of change counts, not the size alone. */
static void rewritten_with_the_same_size(void **state)
{
    (void)state;
    struct frames first = {0};
    struct frames second = {0};
    frames_add_pattern(&first, 1, 100);
    frames_add_pattern(&first, 2, 50);
    frames_add_pattern(&second, 1, 50);
    frames_add_pattern(&second, 2, 100);
    assert_int_equal(first.size, second.size);
    const char *path = stay(frames_write(&first, "same"));
    const struct timespec then[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 5}};
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
    open_and_expect(path, NULL, &first);
    frames_write(&second, "same");
    open_and_expect(path, NULL, &second);
    frames_clear(&first);
    frames_clear(&second);
}

static void other_folders(void **state)
{
    (void)state;
    struct frames frames = {0};
    struct cadre_error error = {0};
    char *index_path = NULL;
    char *other_path = NULL;
    char folder[600];
    frames_add_patterns(&frames, 100, 300);
    const char *path = stay(frames_write(&frames, "b.tfrecord"));
    /* One that is none: in memory alone. */
    open_and_expect(path, path, &frames);
    open_and_expect(path, "/proc/self/fd/none", &frames);
    assert_int_equal(access(scratch_path("b.tfrecord" RECORD_INDEX_SUFFIX), F_OK), -1);
    snprintf(folder, sizeof folder, "%s", scratch_path("."));
    ASSERT_OK(record_index_path(path, folder, &index_path, &error));
    open_and_expect(path, folder, &frames);
    assert_true(inode_of(index_path) != 0);
    /* Files of one name in two folders do not share one. */
    ASSERT_OK(record_index_path("/elsewhere/b.tfrecord", folder, &other_path, &error));
    assert_string_not_equal(index_path, other_path);
    free(index_path);
    free(other_path);
    frames_clear(&frames);
}

static void empty_and_bad_files(void **state)
{
    (void)state;
    struct record_index index = {0};
    struct cadre_error error = {0};
    struct frames frames = {0};
    open_and_expect(scratch_write("empty", "", 0), NULL, &frames);
    open_and_expect(scratch_path("empty"), NULL, &frames);
    frames_add_patterns(&frames, 10, 100);
    const char *path = stay(scratch_write("cut", frames.bytes, frames.size - 1));
    assert_int_equal(record_index_open(path, NULL, &options, &index, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, "cut, record 9 at offset"));
    assert_int_equal(access(scratch_path("cut" RECORD_INDEX_SUFFIX), F_OK), -1);
    assert_int_equal(access(scratch_path("cut" RECORD_INDEX_SUFFIX ".part"), F_OK), -1);
    assert_int_equal(
        record_index_open(scratch_path("none"), NULL, &options, &index, &error), CADRE_NOT_FOUND);
    assert_int_equal(
        record_index_open(scratch_path("."), scratch_path("none"), &options, &index, &error),
        CADRE_INVALID_ARGUMENT);
    frames_clear(&frames);
}

/* Processes that all want it: whatever they do to each other, each has the right places. */
static void many_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 4, ROUNDS = 20 };
    struct frames frames = {0};
    frames_add_patterns(&frames, 4000, 50);
    const char *path = stay(frames_write(&frames, "shared"));
    for (int round = 0; round < ROUNDS; round++) {
        pid_t processes[PROCESSES];
        int start[2];
        assert_int_equal(pipe(start), 0);
        unlink(scratch_path("shared" RECORD_INDEX_SUFFIX));
        for (int p = 0; p < PROCESSES; p++) {
            processes[p] = fork();
            assert_true(processes[p] >= 0);
            if (processes[p] == 0) {
                char byte = 0;
                struct record_index index = {0};
                close(start[1]);
                bool right = read(start[0], &byte, 1) == 0 &&
                             record_index_open(path, NULL, &options, &index, NULL) == CADRE_OK &&
                             index.count == frames.count;
                for (size_t i = 0; right && i <= frames.count; i++) {
                    right = record_index_offset(&index, i) == frames.starts[i];
                }
                _exit(right ? 0 : 1);
            }
        }
        close(start[0]);
        close(start[1]); /* the start */
        for (int p = 0; p < PROCESSES; p++) {
            int how = 0;
            assert_int_equal(waitpid(processes[p], &how, 0), processes[p]);
            assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        }
        assert_true(inode_of(scratch_path("shared" RECORD_INDEX_SUFFIX)) != 0);
        assert_int_equal(access(scratch_path("shared" RECORD_INDEX_SUFFIX ".part"), F_OK), -1);
    }
    frames_clear(&frames);
}

/* Who waits for a maker that dies makes it; who waits for one that finishes loads it. */
static void a_maker_that_dies(void **state)
{
    (void)state;
    struct frames frames = {0};
    frames_add_patterns(&frames, 100, 50);
    const char *path = stay(frames_write(&frames, "orphan"));
    const char *part = scratch_path("orphan" RECORD_INDEX_SUFFIX ".part");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t maker = fork();
    assert_true(maker >= 0);
    if (maker == 0) {
        int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        bool locked = fd >= 0 && flock(fd, LOCK_EX) == 0 && write(fd, "half of it", 10) == 10;
        _exit(write(ready[1], "x", 1) == 1 && locked ? 0 : 1); /* dies with the lock */
    }
    char byte = 0;
    int how = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    open_and_expect(path, NULL, &frames);
    assert_int_equal(waitpid(maker, &how, 0), maker);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    assert_true(inode_of(scratch_path("orphan" RECORD_INDEX_SUFFIX)) != 0);
    assert_int_equal(access(part, F_OK), -1);
    close(ready[0]);
    close(ready[1]);
    frames_clear(&frames);
}

/* Each call that can fail does so once: the places are right, or there is an error and no half
 * file. */
static void every_call_fails_once(void **state)
{
    (void)state;
    struct frames frames = {0};
    bool met = true;
    frames_add_patterns(&frames, 3000, 50);
    const char *path = stay(frames_write(&frames, "faults"));
    for (uint64_t nth = 1; met; nth++) {
        struct record_index index = {0};
        struct cadre_error error = {0};
        unlink(scratch_path("faults" RECORD_INDEX_SUFFIX));
        fault_arm("", nth);
        cadre_status status = record_index_open(path, NULL, &options, &index, &error);
        met = fault_disarm();
        if (status == CADRE_OK) {
            expect_positions_uniform(&index, &frames);
            record_index_clear(&index);
        } else {
            assert_true(met && error.text[0] != '\0');
        }
        assert_int_equal(access(scratch_path("faults" RECORD_INDEX_SUFFIX ".part"), F_OK), -1);
        open_and_expect(path, NULL, &frames);
        assert_true(nth < 1000);
    }
    frames_clear(&frames);
}

/* Another file of the same name, with records as long, is not read on: some would be the old file's
 * and some the new one's. */
static void replaced_while_it_is_read(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    static uint8_t to[BYTES + 16];
    static uint8_t data[2][BYTES];
    struct frames before = {0};
    struct frames after = {0};
    struct record_table table = {0};
    struct cadre_error error = {0};
    cadre_string record = {0};
    memset(data[1], 1, sizeof data[1]);
    for (int i = 0; i < 3; i++) {
        frames_add(&before, data[0], BYTES);
        frames_add(&after, data[1], BYTES);
    }
    char path[256];
    snprintf(path, sizeof path, "%s", frames_write(&before, "replaced"));
    for (int keep_open = 0; keep_open < 2; keep_open++) {
        frames_write(&before, "replaced");
        assert_int_equal(
            record_table_open(&table, path, NULL, &options, keep_open == 1, &error), CADRE_OK);
        struct record_run run = {.table = &table, .first = 1, .count = 1};
        record_table_locate(&run);
        assert_int_equal(record_table_read(&run, 1, to, &record, &error), CADRE_OK);
        assert_int_equal(rename(frames_write(&after, "new"), path), 0);
        cadre_status status = record_table_read(&run, 1, to, &record, &error);
        if (keep_open == 1) {
            assert_int_equal(status, CADRE_OK);
            assert_int_equal(record.bytes[0], 0); /* the old one goes on */
        } else {
            assert_int_equal(status, CADRE_DATA_LOSS);
            assert_non_null(strstr(error.text, "replaced by another file"));
        }
        record_table_close(&table);
    }
    frames_clear(&before);
    frames_clear(&after);
}

/* Records that are alike have places that are computed. One of another size, wherever it is, and
 * all are looked up. */
static void places_of_records_that_are_alike(void **state)
{
    (void)state;
    enum { RECORDS = 40, BYTES = 30 };
    const uint8_t data[BYTES + 1] = {0};
    for (size_t other = 0; other <= RECORDS; other++) { /* RECORDS: none is */
        struct frames frames = {0};
        struct record_index index = {0};
        struct cadre_error error = {0};
        for (size_t i = 0; i < RECORDS; i++) {
            frames_add(&frames, data, BYTES + (i == other));
        }
        const char *path = stay(frames_write(&frames, "alike"));
        for (int kept = 0; kept < 2; kept++) { /* made, then found again */
            ASSERT_OK(record_index_open(path, NULL, &options, &index, &error));
            bool alike = other == RECORDS;
            assert_int_equal(index.frame_bytes, alike ? BYTES + RECORD_FRAME_BYTES : 0);
            expect_positions_uniform(&index, &frames);
            record_index_clear(&index);
        }
        frames_clear(&frames);
    }
}

/* Reads the records `numbers` as one run each. */
static cadre_status read_each(const struct record_table *table, const size_t numbers[],
    size_t count, uint8_t *to, cadre_string records[], struct cadre_error *error)
{
    struct record_run runs[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        runs[i] = (struct record_run){.table = table, .first = numbers[i], .count = 1};
        record_table_locate(&runs[i]);
    }
    return record_table_read(runs, count, to, records, error);
}

/* Frames that were copied together are checked together; which one is damaged is found all the
 * same, and of several the first. */
static void damage_among_many_runs(void **state)
{
    (void)state;
    enum { RECORDS = 64, BYTES = 1000 };
    static uint8_t to[RECORDS * (BYTES + 16)];
    struct frames frames = {0};
    struct record_table table = {0};
    struct cadre_error error = {0};
    cadre_string records[RECORDS];
    size_t numbers[RECORDS];
    for (size_t i = 0; i < RECORDS; i++) {
        frames_add_pattern(&frames, i, BYTES);
        numbers[i] = i * 37 % RECORDS; /* no two are neighbours */
    }
    for (size_t first = 0; first + 9 < RECORDS; first += 5) {
        static const size_t places[] = {0, 20, BYTES + 13}; /* length, data, checksum */
        for (size_t place = 0; place < 3; place++) {
            uint8_t *damaged[] = {frames.bytes + frames.starts[numbers[first]] + places[place],
                frames.bytes + frames.starts[numbers[first + 9]] + 20};
            char path[256];
            char wanted[64];
            snprintf(path, sizeof path, "%s", frames_write(&frames, "among"));
            ASSERT_OK(record_table_open(&table, path, NULL, &options, true, &error));
            ASSERT_OK(read_each(&table, numbers, RECORDS, to, records, &error));
            for (size_t i = 0; i < RECORDS; i++) {
                frames_expect(&frames, numbers[i], &records[i], 1);
            }
            record_table_close(&table);
            *damaged[0] ^= 1;
            *damaged[1] ^= 1;
            ASSERT_OK(record_table_open(&table, path, NULL, &options, true, &error));
            int fd = open(path, O_WRONLY | O_CLOEXEC);
            assert_int_equal(pwrite(fd, frames.bytes, frames.size, 0), (ssize_t)frames.size);
            close(fd);
            assert_int_equal(
                read_each(&table, numbers, RECORDS, to, records, &error), CADRE_DATA_LOSS);
            snprintf(wanted, sizeof wanted, ", record %zu at", numbers[first]);
            assert_non_null(strstr(error.text, wanted));
            record_table_close(&table);
            *damaged[0] ^= 1;
            *damaged[1] ^= 1;
        }
    }
    frames_clear(&frames);
}

/* Two frames in the place of two others, sound and as long in all, but not each. */
static void lengths_that_changed_places(void **state)
{
    (void)state;
    struct frames before = {0};
    struct frames after = {0};
    struct record_table table = {0};
    struct cadre_error error = {0};
    uint8_t to[200];
    cadre_string records[2];
    frames_add_pattern(&before, 0, 50);
    frames_add_pattern(&before, 1, 60);
    frames_add_pattern(&after, 0, 60);
    frames_add_pattern(&after, 1, 50);
    char path[256];
    snprintf(path, sizeof path, "%s", frames_write(&before, "places"));
    ASSERT_OK(record_table_open(&table, path, NULL, &options, true, &error));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, after.bytes, after.size, 0), (ssize_t)after.size);
    close(fd);
    const size_t numbers[] = {0, 1};
    assert_int_equal(read_each(&table, numbers, 2, to, records, &error), CADRE_DATA_LOSS);
    assert_non_null(
        strstr(error.text, "record 0 at offset 0: its length is not that of the index"));
    record_table_close(&table);
    frames_clear(&before);
    frames_clear(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_any_distance),
        cmocka_unit_test(indexes_that_are_refused),
        cmocka_unit_test(places_that_cannot_be),
        cmocka_unit_test(places_of_records_that_are_alike),
        cmocka_unit_test(damage_among_many_runs),
        cmocka_unit_test(lengths_that_changed_places),
        cmocka_unit_test(kept_and_found_again),
        cmocka_unit_test(rewritten_with_the_same_size),
        cmocka_unit_test(replaced_while_it_is_read),
        cmocka_unit_test(other_folders),
        cmocka_unit_test(empty_and_bad_files),
        cmocka_unit_test(many_processes),
        cmocka_unit_test(a_maker_that_dies),
        cmocka_unit_test(every_call_fails_once),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
