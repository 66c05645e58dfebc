/* SPDX-License-Identifier: Apache-2.0
 * The marks of a log: what was appended is found by offset and by time, also when the middle was
 * freed, marks of bytes that were never written are removed, and any bytes in the file are read. */
#include "common/base/log_marks.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"

#define MANY 20000

static int fd;

static int set_up(void **state)
{
    (void)state;
    fd = memfd_create("marks", MFD_CLOEXEC);
    return fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return close(fd);
}

static void append(uint64_t at, enum log_stream stream, uint64_t received_us)
{
    const struct log_mark mark = {.offset = at, .stream = stream, .received_us = received_us};
    assert_true(log_marks_append(fd, at, &mark, 1));
}

/* The mark that applies at the offset. */
static struct log_mark mark_at(uint64_t offset)
{
    struct log_mark mark[2];
    uint64_t end;
    size_t count = log_marks_read(fd, offset, offset + 1, mark, 2, &end);
    assert_int_equal(count, 1);
    assert_int_equal(mark[0].offset, offset);
    assert_int_equal(end, offset + 1);
    return mark[0];
}

static void without_marks_nothing_is_recorded(void **state)
{
    (void)state;
    struct log_mark marks[2];
    uint64_t end;
    assert_int_equal(log_marks_read(-1, 3, 9, marks, 2, &end), 1);
    assert_int_equal(marks[0].offset, 3);
    assert_int_equal(marks[0].stream, LOG_STREAM_ANY);
    assert_int_equal(end, 9);
    assert_int_equal(log_marks_read(fd, 3, 9, marks, 2, &end), 1);
    assert_int_equal(log_marks_since(fd, 1, 9), 9);
    append(5, LOG_STREAM_STDERR, 70); /* what is before was written by an earlier version */
    assert_int_equal(log_marks_read(fd, 3, 9, marks, 2, &end), 2);
    assert_int_equal(marks[0].stream, LOG_STREAM_ANY);
    assert_int_equal(marks[1].offset, 5);
    assert_int_equal(marks[1].stream, LOG_STREAM_STDERR);
    assert_int_equal(marks[1].received_us, 70);
}

static void marks_are_found_by_offset_and_time(void **state)
{
    (void)state;
    struct log_mark marks[4];
    uint64_t end;
    append(0, LOG_STREAM_STDOUT, 100);
    append(10, LOG_STREAM_STDERR, 200);
    append(20, LOG_STREAM_STDERR, 200); /* says the same: no mark */
    append(30, LOG_STREAM_STDOUT, 300);
    assert_int_equal(mark_at(9).received_us, 100);
    assert_int_equal(mark_at(10).stream, LOG_STREAM_STDERR);
    assert_int_equal(mark_at(29).received_us, 200);
    assert_int_equal(mark_at(99).received_us, 300);
    assert_int_equal(log_marks_read(fd, 5, 40, marks, 4, &end), 3);
    assert_int_equal(marks[0].offset, 5);
    assert_int_equal(marks[2].offset, 30);
    assert_int_equal(end, 40);
    assert_int_equal(log_marks_read(fd, 5, 40, marks, 2, &end), 2);
    assert_int_equal(end, 30); /* no room for more */
    assert_int_equal(log_marks_since(fd, 150, 50), 10);
    assert_int_equal(log_marks_since(fd, 301, 50), 50);
    assert_int_equal(log_marks_since(fd, 1, 50), 0);
}

/* The daemon was killed between the marks and the bytes. */
static void marks_without_bytes_are_removed(void **state)
{
    (void)state;
    append(0, LOG_STREAM_STDOUT, 100);
    append(10, LOG_STREAM_STDERR, 200);
    append(20, LOG_STREAM_STDOUT, 300);
    const struct log_mark mark = {.offset = 5, .stream = LOG_STREAM_STDERR, .received_us = 400};
    assert_true(log_marks_append(fd, 5, &mark, 1));
    assert_int_equal(mark_at(4).received_us, 100);
    assert_int_equal(mark_at(5).received_us, 400);
    assert_int_equal(mark_at(25).received_us, 400);
    fault_arm("logs.marks", 1);
    assert_false(log_marks_append(fd, 50, &mark, 1) &&
                 log_marks_append(fd, 60, &(struct log_mark){.offset = 60, .received_us = 1}, 1));
    assert_true(fault_disarm());
}

/* After a loss of power the end of the file may be zeros. */
static void zeros_at_the_end_are_removed(void **state)
{
    (void)state;
    append(0, LOG_STREAM_STDOUT, 100);
    append(10, LOG_STREAM_STDERR, 200);
    assert_int_equal(ftruncate(fd, 16 * 16 + 5), 0);
    append(20, LOG_STREAM_STDOUT, 300);
    assert_int_equal(mark_at(9).received_us, 100);
    assert_int_equal(mark_at(19).received_us, 200);
    assert_int_equal(mark_at(29).received_us, 300);
    assert_int_equal(lseek(fd, 0, SEEK_END), 3 * 16);
}

/* Of a long log the middle is freed, again and again. */
static void freed_marks_take_no_room(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        append(i * 3, i % 2 == 0 ? LOG_STREAM_STDOUT : LOG_STREAM_STDERR, 1000 + i);
    }
    for (uint64_t to = 9000; to <= 3 * 15000; to += 9000) {
        log_marks_punch(fd, 3000, to);
        for (uint64_t i = 0; i < MANY; i += i == 1000 ? to / 3 - 1000 : 1) {
            assert_int_equal(mark_at(i * 3 + 1).received_us, 1000 + i);
        }
    }
    assert_true(lseek(fd, 0, SEEK_HOLE) < MANY * 8);
    assert_int_equal(log_marks_since(fd, 1000 + 18000, MANY * 3), 3 * 18000);
    log_marks_punch(fd, 0, 3 * 18000); /* a worker frees the beginning */
    assert_int_equal(mark_at(3 * 18000).received_us, 1000 + 18000);
}

static void any_bytes_are_read(void **state)
{
    (void)state;
    struct prng prng = {7};
    for (int round = 0; round < 300; round++) {
        uint64_t words[64];
        struct log_mark marks[8];
        size_t size = prng_uniform(&prng, sizeof words);
        for (size_t i = 0; i < 64; i++) {
            words[i] = prng_chance(&prng, 1, 2) ? prng_uniform(&prng, 100) : prng_next(&prng);
        }
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, words, size, 0), size);
        uint64_t from = prng_uniform(&prng, 100);
        uint64_t end;
        size_t count = log_marks_read(fd, from, from + 50, marks, 8, &end);
        assert_in_range(count, 1, 8);
        assert_in_range(end, from + 1, from + 50);
        for (size_t i = 0; i < count; i++) {
            assert_true(i == 0 ? marks[0].offset == from : marks[i].offset > marks[i - 1].offset);
            assert_true(marks[i].offset < end && marks[i].stream <= LOG_STREAM_STDERR);
        }
        assert_true(log_marks_since(fd, from, 100) <= 100);
        log_marks_punch(fd, from, from + 50);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(without_marks_nothing_is_recorded),
        TEST(marks_are_found_by_offset_and_time), TEST(marks_without_bytes_are_removed),
        TEST(zeros_at_the_end_are_removed), TEST(freed_marks_take_no_room),
        TEST(any_bytes_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
