/* SPDX-License-Identifier: Apache-2.0
 * Two coordinators that write the output of one slot: the leader, and one that was replaced and
 * does not know it yet. In each order of their writes the log is as one would leave it. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_files.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

#define LINE       10 /* bytes: "line 0017\n" */
#define LINES      20000
#define TURN_LINES 7
#define TRIES_MAX  10000000
#define LIMIT      4000 /* so many bytes are kept */

static struct engine engine;
static struct daemon stand;
static char *path;

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    path = path_of_log(&stand, (struct job_id){1}, 0);
    return path != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(path);
    daemon_close(&stand);
    return 0;
}

/* A turn of some coordinator: one keeps nothing from turn to turn. The offset that is answered. */
static uint64_t write_at(uint64_t incarnation, uint64_t offset, const char *text)
{
    struct log_mark mark = {.offset = offset, .received_us = incarnation};
    struct log_extent extent = {.task = {.job = {1}, .incarnation = incarnation},
        .offset = offset,
        .end = offset + strlen(text),
        .marks = 1};
    struct log_io io = {.path = path,
        .limit_bytes = LIMIT,
        .bytes = (uint8_t *)(uintptr_t)text,
        .marks = &mark,
        .running = &extent,
        .count = 1};
    log_files_do_io(&io);
    assert_int_equal(extent.lost_errno, 0);
    return extent.stored;
}

static void assert_log(const char *wanted)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    assert_ok(file_read(path, 1U << 20, &text, &size, &error), &error);
    assert_string_equal(text, wanted);
}

/* The worker's stream went from one to the other, with what the first had in hand still to be
 * written. */
static void what_both_write_is_there_once(void **state)
{
    (void)state;
    assert_int_equal(write_at(1, 0, "abc"), 3);
    assert_int_equal(write_at(1, 0, "abcdef"), 6);
    assert_int_equal(write_at(1, 3, "def"), 6);
    assert_int_equal(write_at(1, 3, "defgh"), 8);
    assert_log("abcdefgh");
}

/* The newer one started the task again, which writes; then the older one writes the end of the
 * attempt before, or the same in the other order. */
static void a_newer_attempt_is_not_overwritten(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        assert_int_equal(write_at(1, 0, "abc"), 3);
        if (late == 0) {
            assert_int_equal(write_at(1, 3, "def"), 6);
        }
        assert_int_equal(write_at(2, 0, "new "), 4);
        if (late == 1) {
            assert_int_equal(write_at(1, 3, "def"), 6);
        }
        assert_int_equal(write_at(2, 4, "more"), 8);
        assert_log(late == 0 ? "abcdefnew more" : "abcnew more");
        paths_remove_job(&stand, (struct job_id){1});
        settle(&stand);
    }
}

/* One is stopped in the middle of a turn: the other asks for the bytes again, and writes none. */
static void a_log_that_is_being_written_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(write_at(1, 0, "abc"), 3);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(write_at(1, 3, "def"), 3);
    assert_int_equal(write_at(2, 0, "new"), 0);
    assert_log("abc");
    close(fd);
    assert_int_equal(write_at(1, 3, "def"), 6);
    assert_log("abcdef");
}

static void put_line(unsigned line, char ret_text[LINE + 1])
{
    snprintf(ret_text, LINE + 1, "line %04u\n", line % 10000);
}

static struct log_mark mark_of_line(unsigned line)
{
    return (struct log_mark){.offset = (uint64_t)line * LINE,
        .stream = line % 2 == 0 ? LOG_STREAM_STDOUT : LOG_STREAM_STDERR,
        .received_us = 1000 + line};
}

/* Sends all lines, some in each turn, from where the answer to the turn before said. */
static bool write_all_lines(void)
{
    unsigned next = 0;
    for (unsigned tries = 0; next < LINES && tries < TRIES_MAX; tries++) {
        char text[TURN_LINES * LINE + 1];
        struct log_mark marks[TURN_LINES];
        unsigned count = LINES - next < TURN_LINES ? LINES - next : TURN_LINES;
        for (unsigned i = 0; i < count; i++) {
            put_line(next + i, text + (size_t)i * LINE);
            marks[i] = mark_of_line(next + i);
        }
        struct log_extent extent = {.task = {.job = {1}, .incarnation = 1},
            .offset = (uint64_t)next * LINE,
            .end = (uint64_t)(next + count) * LINE,
            .marks = count};
        struct log_io io = {.path = path,
            .limit_bytes = LIMIT,
            .bytes = (uint8_t *)text,
            .marks = marks,
            .running = &extent,
            .count = 1};
        log_files_do_io(&io);
        if (extent.lost_errno != 0 || extent.stored % LINE != 0) {
            return false;
        }
        next = (unsigned)(extent.stored / LINE);
        sched_yield();
    }
    return next == LINES;
}

static void check_marks(uint64_t from, uint64_t to)
{
    struct log_mark got[LIMIT / LINE + 1];
    uint64_t end = 0;
    CADRE_FREE_AT_EXIT char *marks_path = log_marks_path(path);
    CADRE_CLOSE_AT_EXIT int fd = open(marks_path, O_RDONLY | O_CLOEXEC);
    size_t count = log_marks_read(fd, from, to, got, LIMIT / LINE + 1, &end);
    assert_int_equal(end, to);
    assert_int_equal(count, (to - from) / LINE);
    for (size_t i = 0; i < count; i++) {
        struct log_mark wanted = mark_of_line((unsigned)(from / LINE + i));
        assert_int_equal(got[i].offset, wanted.offset);
        assert_int_equal(got[i].stream, wanted.stream);
        assert_int_equal(got[i].received_us, wanted.received_us);
    }
}

static void two_at_once_leave_what_one_would(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    int status = 0;
    int begin[2];
    char none;
    assert_int_equal(pipe(begin), 0);
    pid_t other = fork();
    if (other == 0) {
        close(begin[1]);
        _exit(read(begin[0], &none, 1) == 0 && write_all_lines() ? 0 : 1);
    }
    assert_true(other > 0);
    close(begin[0]);
    close(begin[1]);
    bool written = write_all_lines();
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_true(written && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    assert_ok(file_read(path, 1U << 20, &text, &size, &error), &error);
    assert_int_equal(size, LINES * LINE);
    struct log_hole hole = log_hole_read(path);
    assert_in_range(size - log_hole_bytes(&hole), LIMIT / 2, LIMIT);
    for (unsigned i = 0; i < LINES; i++) {
        char line[LINE + 1] = {0};
        uint64_t at = (uint64_t)i * LINE;
        if (at < hole.from || at >= hole.to) {
            put_line(i, line);
        }
        assert_memory_equal(text + at, line, LINE);
    }
    check_marks(0, hole.from);
    check_marks(hole.to, size);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_both_write_is_there_once),
        TEST(a_newer_attempt_is_not_overwritten), TEST(a_log_that_is_being_written_is_left_alone),
        TEST(two_at_once_leave_what_one_would)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
