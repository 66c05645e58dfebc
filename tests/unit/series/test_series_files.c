/* SPDX-License-Identifier: Apache-2.0
 * The file of a job's values as a thread works on it: what was acknowledged is there whatever call
 * fails, a file that has grown becomes a snapshot, and a query gets what it asks for. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "coordinator/daemon/series/series_files.h"
#include "tests/lib/test.h"
#include "tests/unit/series/version_1.h"

static struct series_io io;
static char path[TEST_PATH_BYTES];
static const char *const names[] = {"loss"};
static struct verify_generation generations[] = {
    {.generation = {.number = 1}}, {.generation = {.number = 2}, .resume = 5}};
static size_t generation_count;
static struct wire_arena *arena;

static int set_up(void **state)
{
    (void)state;
    char name[32];
    static int count;
    snprintf(name, sizeof name, "job-%d/series", count++);
    test_path(path, test_temp_dir(), name);
    io = (struct series_io){.path = path};
    generation_count = 1;
    arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    assert_non_null(arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(io.state);
    wire_arena_free(arena);
    return 0;
}

/* As after a start of the coordinator. */
static void reopen(void)
{
    free(io.state);
    io = (struct series_io){.path = path};
}

/* Steps from `first` on; whether they are stored. */
static bool append(uint64_t first, size_t count)
{
    static struct reported_value values[LIMIT_REPORTED_VALUES];
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct reported_value){.step = first + i, .value = (double)(first + i)};
    }
    struct task_values message = {.generation = {.number = 1},
        .names = names,
        .name_count = 1,
        .values = values,
        .value_count = count,
        .end = count};
    struct series_item item = {
        .generations = generations, .generation_count = generation_count, .values = &message};
    io.items = &item;
    io.change_bytes = 0;
    io.lost_errno = 0;
    io.lost_bytes = 0;
    series_files_do_io(&io);
    assert_true(!item.stored || io.lost_errno == 0);
    return item.stored;
}

/* The answer to a query; valid until the next one. */
static struct metrics_response query(const struct metrics_request *request)
{
    struct cadre_error error = {0};
    struct metrics_response response;
    struct metrics_request copy = *request;
    struct series_item item = {
        .generations = generations, .generation_count = generation_count, .request = &copy};
    io.items = &item;
    io.lost_errno = 0;
    io.lost_bytes = 0;
    series_files_do_io(&io);
    assert_int_equal(item.error.code, CADRE_OK);
    wire_arena_reset(arena);
    assert_ok(
        wire_unpack_metrics_response(item.answer.bytes, item.answer.size, arena, &response, &error),
        &error);
    wire_buffer_free(&item.answer);
    return response;
}

static uint64_t size_of_file(void)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void check_steps(uint64_t first, uint64_t last)
{
    struct metrics_response response = query(&(struct metrics_request){.id = {1}});
    assert_int_equal(response.series_count, 1);
    const struct metric_series *series = &response.series[0];
    assert_int_equal(series->point_count, last - first + 1);
    for (size_t i = 0; i < series->point_count; i++) {
        assert_int_equal(series->points[i].step, first + i);
        assert_true(series->points[i].value == (double)(first + i));
    }
}

static void test_what_is_stored_is_there_again(void **state)
{
    (void)state;
    struct metrics_response response = query(&(struct metrics_request){.id = {1}});
    assert_int_equal(response.series_count, 0);
    assert_int_equal(size_of_file(), 0); /* a query makes no file */
    assert_true(append(1, 100));
    assert_true(append(101, 50));
    check_steps(1, 150);
    reopen();
    check_steps(1, 150);
    assert_true(append(151, 1));
    reopen();
    check_steps(1, 151);
    response = query(&(struct metrics_request){.id = {1}, .first_step = 10, .last_step = 12});
    assert_int_equal(response.series[0].point_count, 3);
    assert_int_equal(response.generation_count, 1);
    const char *const others[] = {"accuracy"};
    response = query(&(struct metrics_request){.id = {1}, .names = others, .name_count = 1});
    assert_int_equal(response.series_count, 0);
}

static void test_each_call_fails_once(void **state)
{
    (void)state;
    uint64_t nth = 1;
    uint64_t next = 1;
    for (bool met = true; met; nth++) {
        fault_arm("series.", nth);
        bool stored = append(next, 10);
        reopen();
        bool again = append(next, 10); /* the task sends it until it is stored */
        met = fault_disarm();
        assert_true(stored || again || met);
        assert_true(append(next, 10));
        next += 10;
        check_steps(1, next - 1);
        reopen();
        check_steps(1, next - 1);
    }
    assert_true(nth > 4);
}

static void test_a_long_file_becomes_a_snapshot(void **state)
{
    (void)state;
    uint64_t next = 1;
    uint64_t highest = 0;
    bool shrank = false;
    for (int turn = 0; turn < 1200; turn++) {
        uint64_t before = size_of_file();
        assert_true(append(next, LIMIT_REPORTED_VALUES));
        assert_int_equal((int64_t)size_of_file() - (int64_t)before, io.change_bytes);
        assert_int_equal(size_of_file(), io.file_bytes);
        next += LIMIT_REPORTED_VALUES;
        highest = size_of_file() > highest ? size_of_file() : highest;
        shrank = shrank || io.change_bytes < 0;
    }
    assert_true(shrank && highest < 2 * 1024 * 1024);
    check_steps(next - LIMIT_SERIES_POINTS, next - 1);
    reopen();
    check_steps(next - LIMIT_SERIES_POINTS, next - 1);
}

static void test_a_snapshot_that_fails_changes_nothing(void **state)
{
    (void)state;
    uint64_t next = 1;
    for (int turn = 0; turn < 120; turn++) {
        fault_arm("file.", 1);
        assert_true(append(next, LIMIT_REPORTED_VALUES));
        (void)fault_disarm();
        next += LIMIT_REPORTED_VALUES;
    }
    reopen();
    check_steps(next - LIMIT_SERIES_POINTS, next - 1);
}

/* Its task does not know yet that the generation is over: then it sends what still counts again. */
static void test_values_of_an_older_generation_are_not_acknowledged(void **state)
{
    (void)state;
    assert_true(append(1, 3));
    generation_count = 2;
    assert_false(append(4, 2));
    check_steps(1, 3);
    assert_int_equal(io.lost_errno, 0);
}

/* It becomes a file of the newest version before anything is appended, and not where that fails. */
static void test_a_file_of_version_1_goes_on(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct wire_buffer file = {0};
    struct wire_buffer old = {0};
    char *bytes = NULL;
    size_t size = 0;
    assert_true(append(1, 100));
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &error), &error);
    assert_true(wire_buffer_reserve(&file, size));
    memcpy(file.bytes, bytes, size);
    file.size = size;
    free(bytes);
    version_1_of(&file, &old);
    assert_ok(file_write_atomic(path, old.bytes, old.size, 0600, &error), &error);
    reopen();
    check_steps(1, 100);
    assert_int_equal(size_of_file(), old.size); /* a query writes nothing */
    fault_arm("file.", 1);
    assert_false(append(101, 10));
    assert_true(fault_disarm());
    check_steps(1, 100);
    assert_true(append(101, 10));
    assert_true(append(111, 10));
    check_steps(1, 120);
    reopen();
    check_steps(1, 120);
    assert_false(io.state->outdated);
    wire_buffer_free(&file);
    wire_buffer_free(&old);
}

static void test_a_torn_end_is_cut(void **state)
{
    (void)state;
    assert_true(append(1, 100));
    assert_true(append(101, 100));
    assert_int_equal(truncate(path, (off_t)size_of_file() - 7), 0);
    reopen();
    assert_true(append(101, 100)); /* it was not acknowledged, so it comes again */
    reopen();
    struct metrics_response response = query(&(struct metrics_request){.id = {1}});
    assert_int_equal(response.lost_bytes, 0);
    check_steps(1, 200);
}

static void test_damage_is_reported_until_the_end(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_true(append(1, 100));
    uint64_t before = size_of_file();
    assert_true(append(101, 100));
    assert_true(append(201, 100));
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &error), &error);
    bytes[before + 40] ^= 1;
    assert_ok(file_write_atomic(path, bytes, size, 0600, &error), &error);
    free(bytes);
    for (int turn = 0; turn < 3; turn++) {
        reopen();
        struct metrics_response response = query(&(struct metrics_request){.id = {1}});
        assert_int_equal(io.lost_bytes, turn == 0 ? size - before : 0);
        assert_int_equal(response.lost_bytes, size - before);
        check_steps(1, 100 + (uint64_t)turn);
        assert_true(append(101 + (uint64_t)turn, 1));
    }
}

/* Another coordinator on the same folder, which was replaced or is the next leader. */
static struct series_io other;

static bool append_as_other(uint64_t first, size_t count)
{
    struct series_io own = io;
    io = other;
    bool stored = append(first, count);
    other = io;
    io = own;
    return stored;
}

static void test_two_coordinators_keep_what_both_acknowledged(void **state)
{
    (void)state;
    other = (struct series_io){.path = path};
    assert_true(append(1, 100));
    assert_true(append_as_other(101, 50));
    assert_true(append(151, 10)); /* it reads first what the other wrote */
    assert_true(append_as_other(161, 10));
    check_steps(1, 170);
    reopen();
    check_steps(1, 170);
    uint64_t next = 171;
    for (int turn = 0; turn < 300; turn++, next += LIMIT_REPORTED_VALUES) { /* with a snapshot */
        assert_true(append(next, LIMIT_REPORTED_VALUES));
    }
    for (int turn = 0; turn < 3; turn++, next += 20) {
        assert_true(append_as_other(next, 10));
        assert_true(append(next + 10, 10));
    }
    check_steps(next - LIMIT_SERIES_POINTS, next - 1);
    free(other.state);
}

/* It is in the middle of a turn: the values are not acknowledged, and come again. */
static void test_a_file_that_another_writes_is_left_alone(void **state)
{
    (void)state;
    assert_true(append(1, 100));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    uint64_t size = size_of_file();
    assert_false(append(101, 10));
    assert_int_equal(size_of_file(), size);
    check_steps(1, 100);
    close(fd);
    assert_true(append(101, 10));
    check_steps(1, 110);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_stored_is_there_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_call_fails_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_file_becomes_a_snapshot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_snapshot_that_fails_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_values_of_an_older_generation_are_not_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_of_version_1_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_torn_end_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damage_is_reported_until_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_two_coordinators_keep_what_both_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_file_that_another_writes_is_left_alone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
