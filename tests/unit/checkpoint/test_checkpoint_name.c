/* SPDX-License-Identifier: Apache-2.0
 * Names of a checkpoint's files: what is written is read, and nothing else is. */
#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/name.h"
#include "common/model/limits.h"
#include "tests/lib/test.h"

static void assert_name(uint64_t position, uint64_t writer, const char *kind, const char *wanted)
{
    char name[CHECKPOINT_NAME_BYTES];
    struct checkpoint_named named;
    checkpoint_name_write(position, writer, kind, name);
    assert_string_equal(name, wanted);
    assert_true(checkpoint_name_read(name, kind, 0, &named));
    assert_int_equal(named.position, position);
    assert_int_equal(named.writer, writer);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    assert_name(0, 0, CHECKPOINT_TEXT_NAME, "checkpoint-0.json");
    assert_name(120, 0, CHECKPOINT_TENSORS_NAME, "checkpoint-120.safetensors");
    assert_name(120, 7, CHECKPOINT_TENSORS_NAME, "checkpoint-120.7.safetensors");
    assert_name(LIMIT_POSITION - 1, UINT64_MAX, CHECKPOINT_TENSORS_NAME,
        "checkpoint-4611686018427387903.18446744073709551615.safetensors");
}

static void nothing_else_is_read(void **state)
{
    (void)state;
    static const char *const names[] = {"", "checkpoint-", "checkpoint-.json", "checkpoint-1",
        "checkpoint-1.safetensors", "checkpoint-01.json", "checkpoint-1.json.bak",
        "checkpoint-1..json", "checkpoint-1.0.json", "checkpoint-1.07.json", "checkpoint-1.a.json",
        "checkpoint-1.2.3.json", "checkpoint--1.json", "checkpoint-+1.json", "checkpoint- 1.json",
        "checkpoint-1. 2.json", "checkpoint-1-2.json", "checkpoint-18446744073709551616.json",
        "checkpoint-1.18446744073709551616.json", "checkpoint-4611686018427387904.json",
        "mine-1.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct checkpoint_named named;
        assert_false(checkpoint_name_read(names[i], CHECKPOINT_TEXT_NAME, 0, &named));
    }
}

static void all_of_a_position_begin_alike(void **state)
{
    (void)state;
    char start[CHECKPOINT_NAME_BYTES];
    checkpoint_name_start(1, start);
    assert_string_equal(start, "checkpoint-1.");
}

static void more_may_follow(void **state)
{
    (void)state;
    struct checkpoint_named named;
    assert_true(checkpoint_name_read("checkpoint-12.3.json.abc", "json", 4, &named));
    assert_int_equal(named.position, 12);
    assert_int_equal(named.writer, 3);
    assert_false(checkpoint_name_read("checkpoint-12.3.json.abc", "json", 3, &named));
}

static void the_first_writer_of_a_job_is_in_no_name(void **state)
{
    (void)state;
    assert_int_equal(checkpoint_name_writer(0), 0);
    assert_int_equal(checkpoint_name_writer(1), 0);
    assert_int_equal(checkpoint_name_writer(2), 2);
}

static void the_newest_comes_first(void **state)
{
    (void)state;
    struct checkpoint_named all[] = {{3, 0}, {4, 2}, {4, 5}, {4, 0}, {10, 0}};
    static const struct checkpoint_named wanted[] = {{10, 0}, {4, 5}, {4, 2}, {4, 0}, {3, 0}};
    qsort(all, sizeof all / sizeof all[0], sizeof all[0], checkpoint_newest_first);
    assert_memory_equal(all, wanted, sizeof all);
    assert_int_equal(checkpoint_newest_first(&all[0], &wanted[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(nothing_else_is_read), cmocka_unit_test(all_of_a_position_begin_alike),
        cmocka_unit_test(more_may_follow),
        cmocka_unit_test(the_first_writer_of_a_job_is_in_no_name),
        cmocka_unit_test(the_newest_comes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
