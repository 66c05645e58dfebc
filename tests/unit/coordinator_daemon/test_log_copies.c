/* SPDX-License-Identifier: Apache-2.0
 * Logs in an object store, which is a folder here, and coordinators with files of their own: what
 * was acknowledged is read back by any of them, in whatever order they wrote, and whatever
 * failed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/logs/log_files.h"
#include "coordinator/daemon/logs/log_head.h"
#include "coordinator/daemon/objects/object_names.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator_daemon/old_list.h"

#define LIMIT ((uint64_t)1 << 20)

/* log_files.c asks it. */
bool disk_is_full(int errnum);
bool disk_is_full(int errnum)
{
    return errnum == ENOSPC;
}

struct coordinator {
    struct objects *objects;
    struct leading leading;
    struct log_copies *copies;
    char path[TEST_PATH_BYTES];
};

static char folder[TEST_PATH_BYTES]; /* of stores, and of coordinators */
static char root[TEST_PATH_BYTES];
static struct coordinator first, second;
static uint64_t limit_bytes;

static void start(struct coordinator *coordinator, uint64_t term)
{
    struct cadre_error error = {0};
    const struct objects_options options = {.root = root, .deadline_us = CADRE_US_PER_S};
    char name[64];
    static unsigned number;
    *coordinator = (struct coordinator){0};
    snprintf(name, sizeof name, "coordinator-%u/jobs/1/logs/0", number++);
    test_path(coordinator->path, folder, name);
    assert_ok(objects_open(&options, &coordinator->objects, &error), &error);
    assert_ok(log_copies_open(coordinator->objects, &coordinator->leading, term, LIMIT,
                  &coordinator->copies, &error),
        &error);
}

static void stop(struct coordinator *coordinator)
{
    log_copies_close(coordinator->copies);
    objects_close(coordinator->objects);
}

static int set_up(void **state)
{
    (void)state;
    static unsigned number;
    char name[32];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", test_temp_dir());
    }
    snprintf(name, sizeof name, "store-%u", number++);
    test_path(root, folder, name);
    limit_bytes = LIMIT;
    start(&first, 1);
    start(&second, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lists_go_on();
    stop(&first);
    stop(&second);
    return 0;
}

/* A turn; the offset that is answered. */
static uint64_t write_at(
    struct coordinator *coordinator, uint64_t incarnation, uint64_t offset, const char *text)
{
    struct log_mark mark = {
        .offset = offset, .stream = LOG_STREAM_STDERR, .received_us = 100 + incarnation};
    struct log_extent extent = {.task = {.job = {1}, .incarnation = incarnation},
        .offset = offset,
        .end = offset + strlen(text),
        .marks = 1};
    struct log_io io = {.path = coordinator->path,
        .copies = coordinator->copies,
        .job = {1},
        .limit_bytes = limit_bytes,
        .bytes = (uint8_t *)(uintptr_t)text,
        .marks = &mark,
        .running = &extent,
        .count = 1};
    log_files_do_io(&io);
    assert_int_equal(extent.lost_errno, 0);
    return extent.stored;
}

/* What a reader of this coordinator finds; the caller frees it. */
static char *read_log(struct coordinator *coordinator, size_t *ret_size)
{
    struct cadre_error error = {0};
    char *text = NULL;
    struct log_copy *copy =
        log_copies_use(coordinator->copies, (struct job_id){1}, 0, coordinator->path);
    assert_non_null(copy);
    assert_ok(log_copy_fill(copy, &error), &error);
    if (access(coordinator->path, F_OK) == 0) {
        assert_ok(file_read(coordinator->path, 1U << 24, &text, ret_size, &error), &error);
    } else {
        text = calloc(1, 1);
    }
    log_copies_done(coordinator->copies, copy);
    return text;
}

static void assert_log(struct coordinator *coordinator, const char *wanted)
{
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *text = read_log(coordinator, &size);
    assert_string_equal(text, wanted);
}

/* What one that begins now finds. */
static void assert_stored(const char *wanted)
{
    struct coordinator third;
    start(&third, 3);
    assert_log(&third, wanted);
    stop(&third);
}

static bool count_entry(void *user, const struct storage_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return true;
}

static size_t object_count(void)
{
    struct cadre_error error = {0};
    size_t count = 0;
    CADRE_FREE_AT_EXIT char *logs = objects_path(first.objects, "jobs/1/logs/0");
    assert_ok(objects_list(first.objects, logs, true, count_entry, &count, &error), &error);
    return count;
}

static void one_appends_and_another_reads(void **state)
{
    (void)state;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_equal(write_at(&first, 2, 0, "new "), 4);
    assert_int_equal(write_at(&first, 1, 6, "late"), 10); /* of an attempt that is over */
    assert_log(&first, "abcdefnew ");
    assert_stored("abcdefnew ");
}

/* Without its bytes, which are not fetched before someone reads. */
static void the_next_leader_goes_on_where_it_ended(void **state)
{
    (void)state;
    assert_int_equal(write_at(&first, 1, 0, "abcdef"), 6);
    assert_int_equal(write_at(&second, 1, 0, "abcdef"), 6); /* again */
    assert_int_equal(write_at(&second, 1, 4, "efgh"), 8);
    assert_int_equal(write_at(&second, 1, 9, "j"), 8); /* a gap: from there, please */
    assert_int_equal(write_at(&second, 2, 0, "new"), 3);
    assert_log(&second, "abcdefghnew");
    assert_stored("abcdefghnew");
    assert_int_equal(object_count(), 3);
}

static void marks_come_with_the_bytes(void **state)
{
    (void)state;
    struct log_mark marks[8];
    uint64_t end = 0;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&second, 2, 0, "def"), 3);
    assert_log(&second, "abcdef");
    CADRE_FREE_AT_EXIT char *path = log_marks_path(second.path);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(log_marks_read(fd, 0, 6, marks, 8, &end), 2);
    assert_int_equal(marks[0].received_us, 101);
    assert_int_equal(marks[1].offset, 3);
    assert_int_equal(marks[1].received_us, 102);
    assert_int_equal(marks[1].stream, LOG_STREAM_STDERR);
}

/* It was replaced: what it puts now was not acknowledged, and the other one did not see it. */
static void what_a_replaced_one_puts_is_not_acknowledged(void **state)
{
    (void)state;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&second, 1, 0, "abc"), 3);
    leading_set(&first.leading, 0);
    assert_int_equal(write_at(&first, 1, 3, "def"), 3);
    assert_int_equal(write_at(&second, 2, 0, "new "), 4);
    assert_int_equal(write_at(&first, 2, 0, "new "), 0);
    assert_int_equal(write_at(&second, 2, 4, "more"), 8);
    assert_stored("abcnew more");
}

/* The next leader goes on behind what was acknowledged, also where the list does not show it yet.
 */
static void what_is_not_listed_yet_counts(void **state)
{
    (void)state;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    lists_stop(first.objects, root);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_equal(write_at(&first, 2, 0, "new "), 4);
    assert_int_equal(write_at(&second, 2, 4, "more "), 9);
    assert_int_equal(write_at(&second, 3, 0, "last"), 4);
    assert_log(&second, "abcdefnew more last");
    assert_stored("abcdefnew more last");
    lists_go_on();
    assert_stored("abcdefnew more last");
}

static void a_new_attempt_begins_behind_what_is_not_listed_yet(void **state)
{
    (void)state;
    lists_stop(first.objects, root);
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&second, 2, 0, "def"), 3);
    lists_go_on();
    assert_stored("abcdef");
}

/* Objects that were joined are still listed, and the one that they became is not. */
static void what_was_joined_is_listed_still(void **state)
{
    (void)state;
    char wanted[8 * 40 + 5] = "";
    for (unsigned i = 0; i < 40; i++) {
        if (i == 14) {
            lists_stop(first.objects, root);
        }
        assert_int_equal(write_at(&first, 1, 8 * i, "a line.\n"), 8 * (i + 1));
        memcpy(wanted + (size_t)8 * i, "a line.\n", 9);
    }
    assert_stored(wanted);
    assert_int_equal(write_at(&second, 1, 8 * 40, "more"), 8 * 40 + 4);
    memcpy(wanted + (size_t)8 * 40, "more", 5);
    assert_stored(wanted);
}

/* What a request that came late made of it: others are listed. */
static void an_older_head_hides_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *head = NULL;
    CADRE_FREE_AT_EXIT char *path = object_name_of_log_head(first.objects, (struct job_id){1}, 0);
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_ok(objects_get(first.objects, path, LOG_HEAD_BYTES_MAX, &head, &size, &error), &error);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_equal(write_at(&second, 1, 6, "ghi"), 9);
    assert_ok(objects_put(first.objects, path, head, size, &error), &error);
    assert_stored("abcdefghi");
    test_write(path, "cadre-log-head 1 zzz");
    assert_stored("abcdefghi");
}

/* Both write the same attempt for a while. */
static void what_both_write_is_there_once(void **state)
{
    (void)state;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&second, 1, 3, "de"), 5);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_equal(write_at(&second, 1, 5, "fgh"), 8);
    assert_stored("abcdefgh");
}

static void small_objects_are_joined(void **state)
{
    (void)state;
    char wanted[8 * 200 + 1];
    size_t at = 0;
    size_t most = 0;
    for (unsigned i = 0; i < 200; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %02u\n", i % 100);
        assert_int_equal(write_at(&first, 1, at, line), at + 8);
        memcpy(wanted + at, line, 8);
        at += 8;
        size_t count = object_count();
        most = count > most ? count : most;
    }
    wanted[at] = '\0';
    assert_in_range(most, 2, 16);
    assert_stored(wanted);
    /* One that has not their bytes joins only what it wrote itself. */
    for (unsigned i = 0; i < 40; i++, at += 8) {
        assert_int_equal(write_at(&second, 1, at, "a line.\n"), at + 8);
    }
    struct coordinator third;
    size_t size = 0;
    start(&third, 3);
    CADRE_FREE_AT_EXIT char *text = read_log(&third, &size);
    stop(&third);
    assert_int_equal(size, at);
    assert_memory_equal(text, wanted, 8 * 200);
    assert_string_equal(text + at - 16, "a line.\na line.\n");
}

/* It is listed by one reader while its coordinator joins what was listed. */
static void what_was_joined_meanwhile_is_read(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char wanted[8 * 32 + 1] = "";
    for (unsigned i = 0; i < 32; i++) {
        if (i == 15) { /* it has its size, and no bytes yet */
            struct log_copy *copy =
                log_copies_use(second.copies, (struct job_id){1}, 0, second.path);
            assert_ok(log_copy_begin(copy, &error), &error);
            log_copy_end(copy);
            log_copies_done(second.copies, copy);
        }
        assert_int_equal(write_at(&first, 1, 8 * i, "a line.\n"), 8 * (i + 1));
        memcpy(wanted + (size_t)8 * i, "a line.\n", 9);
    }
    assert_log(&second, wanted);
}

/* An object that is gone for good leaves its bytes out. */
static void what_is_lost_is_left_out(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    size_t size = 0;
    const struct log_segment gone = {.term = 1, .incarnation = 1, .base = 0, .begin = 3, .end = 6};
    char name[LOG_SEGMENT_NAME_BYTES];
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_equal(write_at(&first, 1, 6, "ghi"), 9);
    log_segment_name(&gone, name);
    CADRE_FREE_AT_EXIT char *path = objects_path(first.objects, "jobs/1/logs/0/%s", name);
    test_write(path, "something else");
    CADRE_FREE_AT_EXIT char *text = read_log(&second, &size);
    assert_int_equal(size, 9);
    assert_memory_equal(text, "abc", 3);
    assert_memory_equal(text + 6, "ghi", 3);
    struct log_hole hole = log_hole_read(second.path);
    assert_int_equal(hole.from, 3);
    assert_int_equal(hole.to, 6);
    assert_ok(objects_remove(first.objects, path, &error), &error);
    assert_int_equal(write_at(&second, 1, 9, "jkl"), 12);
    struct coordinator third;
    start(&third, 3);
    CADRE_FREE_AT_EXIT char *rest = read_log(&third, &size);
    hole = log_hole_read(third.path);
    stop(&third);
    assert_int_equal(hole.from, 3);
    assert_int_equal(hole.to, 6);
    assert_int_equal(size, 12);
    assert_memory_equal(rest + 6, "ghijkl", 6);
}

static void the_middle_of_a_long_log_is_removed(void **state)
{
    (void)state;
    uint64_t at = 0;
    limit_bytes = 20000;
    char piece[1001];
    memset(piece, '.', 999);
    piece[999] = '\n';
    piece[1000] = '\0';
    for (unsigned i = 0; i < 200; i++, at += 1000) {
        assert_int_equal(write_at(&first, 1, at, piece), at + 1000);
    }
    struct coordinator third;
    size_t size = 0;
    start(&third, 3);
    CADRE_FREE_AT_EXIT char *text = read_log(&third, &size);
    struct log_hole hole = log_hole_read(third.path);
    assert_int_equal(size, at);
    assert_in_range(size - log_hole_bytes(&hole), 10000, 60000);
    assert_memory_equal(text, piece, 1000);
    assert_memory_equal(text + hole.to, piece, 1000);
    assert_memory_equal(text + size - 1000, piece, 1000);
    stop(&third);
    assert_in_range(object_count(), 2, 60);
}

/* Each call to the store, and each to a file, fails once: what was acknowledged is there. */
static void each_call_fails_once(void **state)
{
    (void)state;
    static const char *const points[] = {"file.", "logs."};
    uint64_t at = 0;
    char wanted[4096] = "";
    for (size_t i = 0; i < 2; i++) {
        bool met = true;
        for (uint64_t nth = 1; met && nth < 60; nth++) {
            struct log_mark mark = {.offset = at, .received_us = nth};
            struct log_extent extent = {
                .task = {.job = {1}, .incarnation = 1}, .offset = at, .end = at + 8, .marks = 1};
            struct log_io io = {.path = first.path,
                .copies = first.copies,
                .job = {1},
                .limit_bytes = limit_bytes,
                .bytes = (uint8_t *)(uintptr_t) "a line.\n",
                .marks = &mark,
                .running = &extent,
                .count = 1};
            fault_arm(points[i], nth);
            log_files_do_io(&io);
            met = fault_disarm();
            if (extent.lost_errno == 0 && extent.stored > at) {
                memcpy(wanted + at, "a line.\n", 9);
                at += 8;
            }
        }
        assert_false(met);
    }
    assert_true(at > 0);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct coordinator third;
    size_t size = 0;
    start(&third, 3);
    text = read_log(&third, &size);
    stop(&third);
    assert_true(size >= at);
    assert_memory_equal(text, wanted, at);
}

/* Files that are not in use go, and come back when they are asked for. */
static void files_that_are_too_much_go(void **state)
{
    (void)state;
    struct log_copies *few = NULL;
    struct cadre_error error = {0};
    struct stat facts;
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    log_copies_close(first.copies);
    assert_ok(log_copies_open(first.objects, &first.leading, 4, 2, &few, &error), &error);
    first.copies = few;
    assert_log(&first, "abc");
    assert_int_not_equal(stat(first.path, &facts), 0);
    assert_int_equal(write_at(&first, 1, 3, "def"), 6);
    assert_int_not_equal(stat(first.path, &facts), 0);
    assert_log(&first, "abcdef");
}

static void a_forgotten_log_is_made_again(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *job = objects_path(first.objects, "jobs/1");
    assert_int_equal(write_at(&first, 1, 0, "abc"), 3);
    log_copies_forget(first.copies, (struct job_id){1});
    assert_ok(tree_remove(job, &error), &error);
    assert_log(&second, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(one_appends_and_another_reads),
        TEST(the_next_leader_goes_on_where_it_ended), TEST(marks_come_with_the_bytes),
        TEST(what_a_replaced_one_puts_is_not_acknowledged), TEST(what_both_write_is_there_once),
        TEST(what_is_not_listed_yet_counts),
        TEST(a_new_attempt_begins_behind_what_is_not_listed_yet),
        TEST(what_was_joined_is_listed_still), TEST(an_older_head_hides_nothing),
        TEST(small_objects_are_joined), TEST(what_was_joined_meanwhile_is_read),
        TEST(what_is_lost_is_left_out), TEST(the_middle_of_a_long_log_is_removed),
        TEST(each_call_fails_once), TEST(files_that_are_too_much_go),
        TEST(a_forgotten_log_is_made_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
