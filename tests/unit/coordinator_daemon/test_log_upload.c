/* SPDX-License-Identifier: Apache-2.0
 * The files of a log that become segments in an object store, which is a folder here: a
 * coordinator that begins with the store has the same of the log, and goes on with it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_base.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/logs/log_files.h"
#include "coordinator/daemon/logs/log_upload.h"
#include "tests/lib/test.h"

#define MARKS_MAX 64

/* log_files.c asks it. */
bool disk_is_full(int errnum);
bool disk_is_full(int errnum)
{
    return errnum == ENOSPC;
}

static char folder[TEST_PATH_BYTES];
static char before[TEST_PATH_BYTES]; /* the log of a coordinator with a folder */
static char after[TEST_PATH_BYTES];  /* the copy of one with the store */
static struct objects *objects;
static struct leading leading;
static struct log_copies *copies;
static const struct job_id job = {7};

static int set_up(void **state)
{
    (void)state;
    static unsigned number;
    struct cadre_error error = {0};
    char name[64];
    char root[TEST_PATH_BYTES];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", test_temp_dir());
    }
    snprintf(name, sizeof name, "%u/before/0", number);
    test_path(before, folder, name);
    snprintf(name, sizeof name, "%u/after/0", number);
    test_path(after, folder, name);
    snprintf(name, sizeof name, "%u/store", number++);
    test_path(root, folder, name);
    const struct objects_options options = {.root = root, .deadline_us = CADRE_US_PER_S};
    assert_ok(objects_open(&options, &objects, &error), &error);
    assert_ok(log_copies_open(objects, &leading, 1, UINT64_MAX, &copies, &error), &error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_copies_close(copies);
    objects_close(objects);
    return 0;
}

/* A turn of a coordinator; the offset that is answered. `in_store`: NULL: in the folder. */
static uint64_t write_at(struct log_copies *in_store, uint64_t incarnation, uint64_t offset,
    const char *text, uint64_t limit_bytes)
{
    struct log_mark mark = {.offset = offset,
        .stream = offset % 2 == 0 ? LOG_STREAM_STDOUT : LOG_STREAM_STDERR,
        .received_us = 1000 * incarnation + offset};
    struct log_extent extent = {.task = {.job = job, .incarnation = incarnation},
        .offset = offset,
        .end = offset + strlen(text),
        .marks = 1};
    struct log_io io = {.path = in_store != NULL ? after : before,
        .copies = in_store,
        .job = job,
        .limit_bytes = limit_bytes,
        .bytes = (uint8_t *)(uintptr_t)text,
        .marks = &mark,
        .running = &extent,
        .count = 1};
    log_files_do_io(&io);
    assert_int_equal(extent.lost_errno, 0);
    return extent.stored;
}

static void upload(void)
{
    struct cadre_error error = {0};
    assert_ok(log_upload(objects, job, 0, before, &error), &error);
}

static void fill(struct log_copies *of)
{
    struct cadre_error error = {0};
    struct log_copy *copy = log_copies_use(of, job, 0, after);
    assert_non_null(copy);
    assert_ok(log_copy_fill(copy, &error), &error);
    log_copies_done(of, copy);
}

static size_t marks_of(const char *path, uint64_t from, uint64_t to, struct log_mark *ret_marks)
{
    CADRE_FREE_AT_EXIT char *marks = log_marks_path(path);
    CADRE_CLOSE_AT_EXIT int fd = open(marks, O_RDONLY | O_CLOEXEC);
    uint64_t end = 0;
    size_t count = log_marks_read(fd, from, to, ret_marks, MARKS_MAX, &end);
    assert_int_equal(end, to);
    return count;
}

static void assert_same_marks(uint64_t from, uint64_t to)
{
    struct log_mark left[MARKS_MAX];
    struct log_mark right[MARKS_MAX];
    size_t count = marks_of(before, from, to, left);
    assert_int_equal(marks_of(after, from, to, right), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(right[i].offset, left[i].offset);
        assert_int_equal(right[i].stream, left[i].stream);
        assert_int_equal(right[i].received_us, left[i].received_us);
    }
}

/* A coordinator that begins now has the same bytes, marks and hole, and the same base if the newest
 * attempt wrote anything. */
static void assert_same(void)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *left = NULL;
    CADRE_FREE_AT_EXIT char *right = NULL;
    size_t left_size = 0;
    size_t right_size = 0;
    fill(copies);
    assert_ok(file_read(before, 1U << 26, &left, &left_size, &error), &error);
    assert_ok(file_read(after, 1U << 26, &right, &right_size, &error), &error);
    const struct log_hole hole = log_hole_read(before);
    const struct log_hole other = log_hole_read(after);
    assert_int_equal(right_size, left_size);
    assert_int_equal(other.from, hole.from);
    assert_int_equal(other.to, hole.to);
    if (log_hole_bytes(&hole) > 0) {
        assert_memory_equal(right, left, hole.from);
        assert_same_marks(0, hole.from);
    }
    assert_memory_equal(right + hole.to, left + hole.to, left_size - hole.to);
    assert_same_marks(hole.to, left_size);
}

static void attempts_and_streams(void **state)
{
    (void)state;
    uint64_t incarnation = 0;
    uint64_t base = 0;
    assert_int_equal(write_at(NULL, 1, 0, "abc", UINT64_MAX), 3);
    assert_int_equal(write_at(NULL, 4, 0, "defg", UINT64_MAX), 4);
    assert_int_equal(write_at(NULL, 6, 0, "hi", UINT64_MAX), 2);
    assert_int_equal(write_at(NULL, 6, 2, "jkl", UINT64_MAX), 5);
    upload();
    assert_same();
    assert_true(log_base_read(after, &incarnation, &base));
    assert_int_equal(incarnation, 6);
    assert_int_equal(base, 7);
    /* Its task goes on, an older one is over, a newer one begins. */
    assert_int_equal(write_at(copies, 6, 4, "lm", UINT64_MAX), 6);
    assert_int_equal(write_at(copies, 4, 4, "late", UINT64_MAX), 8);
    assert_int_equal(write_at(copies, 9, 0, "new", UINT64_MAX), 3);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    assert_ok(file_read(after, 1024, &text, &size, &error), &error);
    assert_string_equal(text, "abcdefghijklmnew");
}

static void a_long_one_with_a_hole(void **state)
{
    (void)state;
    char piece[100001];
    memset(piece, '.', 99999);
    piece[99999] = '\n';
    piece[100000] = '\0';
    for (uint64_t i = 0; i < 200; i++) {
        piece[0] = (char)('a' + i % 26);
        assert_int_equal(write_at(NULL, 1, 100000 * i, piece, 8 * 1000 * 1000), 100000 * (i + 1));
    }
    const struct log_hole hole = log_hole_read(before);
    assert_true(log_hole_bytes(&hole) > 0);
    upload();
    assert_same();
}

/* What an older upload left of the files as they were then, and one that was cut off. */
static void once_more_after_the_files_grew(void **state)
{
    (void)state;
    assert_int_equal(write_at(NULL, 1, 0, "abc", UINT64_MAX), 3);
    upload();
    assert_int_equal(write_at(NULL, 1, 3, "def", UINT64_MAX), 6);
    upload();
    assert_int_equal(write_at(NULL, 2, 0, "ghi", UINT64_MAX), 3);
    upload();
    upload();
    assert_same();
}

/* They were there before, and came back to the folder. */
static void what_newer_coordinators_put_goes(void **state)
{
    (void)state;
    assert_int_equal(write_at(copies, 1, 0, "something else", UINT64_MAX), 14);
    log_copies_forget(copies, job);
    assert_int_equal(write_at(NULL, 1, 0, "abc", UINT64_MAX), 3);
    upload();
    assert_same();
}

static void one_without_a_base(void **state)
{
    (void)state;
    CADRE_FREE_AT_EXIT char *base = NULL;
    assert_int_equal(write_at(NULL, 3, 0, "abc", UINT64_MAX), 3);
    assert_true(asprintf(&base, "%s.base", before) > 0);
    assert_int_equal(unlink(base), 0);
    upload();
    assert_same();
    assert_int_equal(write_at(copies, 3, 0, "def", UINT64_MAX), 3); /* as in the folder */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(attempts_and_streams), TEST(a_long_one_with_a_hole),
        TEST(once_more_after_the_files_grew), TEST(what_newer_coordinators_put_goes),
        TEST(one_without_a_base)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
