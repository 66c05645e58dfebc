/* SPDX-License-Identifier: Apache-2.0
 * The values of a job in an object store, which is a folder here: what was acknowledged is read
 * back by the next coordinator, also when another one writes beside it, and whatever fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "coordinator/daemon/series/series_files.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator_daemon/old_list.h"

struct coordinator {
    struct objects *objects;
    struct leading leading;
    struct series_io io;
    char path[TEST_PATH_BYTES];
};

static char folder[TEST_PATH_BYTES];
static char root[TEST_PATH_BYTES];
static struct coordinator first, second;
static const char *const names[] = {"loss"};
static struct verify_generation generation = {.generation = {.number = 1}};
static struct wire_arena *arena;

static void start(struct coordinator *coordinator, uint64_t term)
{
    struct cadre_error error = {0};
    char name[64];
    static unsigned number;
    const struct objects_options options = {.root = root, .deadline_us = CADRE_US_PER_S};
    *coordinator = (struct coordinator){0};
    snprintf(name, sizeof name, "coordinator-%u/jobs/1/series", number++);
    test_path(coordinator->path, folder, name);
    assert_ok(objects_open(&options, &coordinator->objects, &error), &error);
    coordinator->io = (struct series_io){.path = coordinator->path,
        .chain = {.objects = coordinator->objects,
            .leading = &coordinator->leading,
            .term = term,
            .job = {1}}};
}

static void stop(struct coordinator *coordinator)
{
    free(coordinator->io.state);
    objects_close(coordinator->objects);
}

static int set_up(void **state)
{
    (void)state;
    char name[32];
    static unsigned number;
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s", test_temp_dir());
    }
    snprintf(name, sizeof name, "store-%u", number++);
    test_path(root, folder, name);
    arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    assert_non_null(arena);
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
    wire_arena_free(arena);
    return 0;
}

/* Steps from `begin` on; whether they are acknowledged. */
static bool append(struct coordinator *coordinator, uint64_t begin, size_t count)
{
    static struct reported_value values[LIMIT_REPORTED_VALUES];
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct reported_value){.step = begin + i, .value = (double)(begin + i)};
    }
    struct task_values message = {.generation = {.number = 1},
        .names = names,
        .name_count = 1,
        .values = values,
        .value_count = count,
        .end = count};
    struct series_item item = {
        .generations = &generation, .generation_count = 1, .values = &message};
    coordinator->io.items = &item;
    coordinator->io.lost_errno = 0;
    coordinator->io.lost_bytes = 0;
    series_files_do_io(&coordinator->io);
    return item.stored;
}

static void check_steps(struct coordinator *coordinator, uint64_t begin, uint64_t last)
{
    struct cadre_error error = {0};
    struct metrics_response response;
    struct metrics_request request = {.id = {1}};
    struct series_item item = {
        .generations = &generation, .generation_count = 1, .request = &request};
    coordinator->io.items = &item;
    series_files_do_io(&coordinator->io);
    assert_ok(item.error.code, &item.error);
    wire_arena_reset(arena);
    assert_ok(
        wire_unpack_metrics_response(item.answer.bytes, item.answer.size, arena, &response, &error),
        &error);
    wire_buffer_free(&item.answer);
    assert_int_equal(response.series_count, 1);
    const struct metric_series *series = &response.series[0];
    assert_int_equal(series->point_count, last - begin + 1);
    for (size_t i = 0; i < series->point_count; i++) {
        assert_int_equal(series->points[i].step, begin + i);
        assert_true(series->points[i].value == (double)(begin + i));
    }
    assert_int_equal(response.lost_bytes, 0);
}

/* What one that begins now finds. */
static void check_stored(uint64_t begin, uint64_t last)
{
    struct coordinator third;
    start(&third, 3);
    check_steps(&third, begin, last);
    stop(&third);
}

static bool count_entry(void *user, const struct storage_entry *entry)
{
    *(size_t *)user += strstr(entry->path, "/newest") == NULL ? 1 : 0;
    return true;
}

static size_t object_count(void)
{
    struct cadre_error error = {0};
    size_t count = 0;
    char *values = objects_path(first.objects, "jobs/1/series");
    assert_ok(objects_list(first.objects, values, true, count_entry, &count, &error), &error);
    free(values);
    return count;
}

static void what_is_acknowledged_is_there_again(void **state)
{
    (void)state;
    assert_true(append(&first, 1, 10));
    assert_true(append(&first, 11, 10));
    assert_true(append(&first, 21, 1));
    assert_int_equal(object_count(), 3);
    check_steps(&first, 1, 21);
    check_stored(1, 21);
}

static void the_next_leader_begins_with_a_snapshot(void **state)
{
    (void)state;
    assert_true(append(&first, 1, 10));
    assert_true(append(&first, 11, 10));
    assert_true(append(&second, 21, 10));
    assert_int_equal(object_count(), 1); /* it took the place of what it was made of */
    assert_true(append(&second, 31, 10));
    check_stored(1, 40);
}

/* It does not know yet that it was replaced. */
static void what_a_replaced_one_puts_changes_nothing(void **state)
{
    (void)state;
    assert_true(append(&first, 1, 10));
    assert_true(append(&second, 11, 10));
    leading_set(&first.leading, 0);
    assert_false(append(&first, 100, 10));
    assert_true(append(&second, 21, 10));
    assert_false(append(&first, 200, 10));
    check_stored(1, 30);
}

static void a_long_chain_is_made_short(void **state)
{
    (void)state;
    size_t most = 0;
    for (uint64_t i = 0; i < 200; i++) {
        assert_true(append(&first, 1 + 10 * i, 10));
        size_t count = object_count();
        most = count > most ? count : most;
    }
    assert_in_range(most, 2, 70);
    check_stored(1, 2000);
}

/* The next leader has what was acknowledged, also where the list does not show it yet. */
static void what_is_not_listed_yet_counts(void **state)
{
    (void)state;
    assert_true(append(&first, 1, 10));
    lists_stop(first.objects, root);
    assert_true(append(&first, 11, 10));
    check_stored(1, 20);
    assert_true(append(&second, 21, 10)); /* a snapshot, and what it is made of goes */
    assert_true(append(&second, 31, 10));
    check_stored(1, 40);
    lists_go_on();
    check_stored(1, 40);
}

/* One that dropped its values from memory puts nothing over what it put before. */
static void numbers_go_on_behind_what_is_not_listed_yet(void **state)
{
    (void)state;
    lists_stop(first.objects, root);
    assert_true(append(&first, 1, 10));
    assert_true(append(&first, 11, 10));
    stop(&first);
    start(&first, 1);
    assert_true(append(&first, 21, 10));
    check_stored(1, 30);
    lists_go_on();
    check_stored(1, 30);
}

/* Each call to the store, and each to a file, fails once. */
static void each_call_fails_once(void **state)
{
    (void)state;
    static const char *const points[] = {"file.", "series."};
    uint64_t next = 1;
    for (size_t i = 0; i < 2; i++) {
        bool met = true;
        for (uint64_t nth = 1; met; nth++) {
            fault_arm(points[i], nth);
            (void)append(&first, next, 10);
            met = fault_disarm();
            assert_true(append(&first, next, 10)); /* the task sends it until it is there */
            next += 10;
            check_steps(&first, 1, next - 1);
            check_stored(1, next - 1);
        }
    }
    assert_true(next > 50);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_is_acknowledged_is_there_again),
        TEST(the_next_leader_begins_with_a_snapshot),
        TEST(what_a_replaced_one_puts_changes_nothing), TEST(a_long_chain_is_made_short),
        TEST(what_is_not_listed_yet_counts), TEST(numbers_go_on_behind_what_is_not_listed_yet),
        TEST(each_call_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
