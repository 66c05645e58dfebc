/* SPDX-License-Identifier: Apache-2.0
 * What a task has reported and not delivered: sent in order, again until it is stored, taken over
 * by the next chief, and bounded while the coordinator is away. */
#include <stdio.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "worker/library/runtime/task/reported_values.h"
#include "worker/library/runtime/task/task.h"

static struct reported_values values;
static struct reported_value items[LIMIT_REPORTED_VALUES];
static const char *names[LIMIT_METRICS];
static struct task_values message;

static const struct generation first = {.number = 1, .nonce = 1};
static const struct generation second = {.number = 2, .nonce = 2};

static int set_up(void **state)
{
    (void)state;
    values = (struct reported_values){0};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reported_values_free(&values);
    return 0;
}

static void add_steps(uint64_t from, uint64_t to)
{
    for (uint64_t step = from; step <= to; step++) {
        assert_true(reported_values_add(&values, "loss", step, false, (double)step));
    }
}

static bool next(void)
{
    return reported_values_next(&values, CADRE_US_PER_S, items, names, &message);
}

static void expect_message(uint64_t from, uint64_t to)
{
    assert_true(next());
    assert_int_equal(message.value_count, to - from + 1);
    assert_int_equal(message.values[0].step, from);
    assert_int_equal(message.values[message.value_count - 1].step, to);
    assert_string_equal(message.names[message.values[0].name], "loss");
}

static void test_the_chief_sends_until_it_is_stored(void **state)
{
    (void)state;
    add_steps(1, 10);
    assert_false(next()); /* it is in no generation */
    reported_values_begin(&values, first, 10, true);
    expect_message(1, 10);
    assert_int_equal(message.end, 10);
    assert_false(message.numbered);
    assert_int_equal(message.lap, 0);
    add_steps(11, 12);
    assert_false(next()); /* or a coordinator that lost the first had the later ones only */
    reported_values_again(&values);
    expect_message(1, 12);
    reported_values_stored(&values, 10);
    assert_false(next());
    reported_values_again(&values);
    expect_message(11, 12);
    assert_true(reported_values_are_left(&values));
    reported_values_stored(&values, 12);
    assert_false(reported_values_are_left(&values));
    reported_values_again(&values);
    assert_false(next());
    assert_int_equal(values.count, 0);
}

static void test_it_is_sent_again_when_no_answer_comes(void **state)
{
    (void)state;
    reported_values_begin(&values, first, 0, true);
    add_steps(1, 1);
    assert_true(reported_values_are_due(&values, CADRE_US_PER_S, false));
    assert_true(next());
    assert_false(reported_values_are_overdue(&values, CADRE_US_PER_S + 1));
    assert_true(reported_values_are_overdue(&values, 2 * CADRE_US_PER_S));
    reported_values_stored(&values, 1);
    add_steps(2, 2);
    assert_false(reported_values_are_due(&values, CADRE_US_PER_S + 1, false)); /* batched */
    assert_true(reported_values_are_due(&values, CADRE_US_PER_S + 1, true));
    add_steps(3, 600);
    assert_true(reported_values_are_due(&values, CADRE_US_PER_S + 1, false)); /* enough */
}

/* The steps that the next generation does again have no values, and the others belong to it. */
static void test_the_next_chief_has_what_counts(void **state)
{
    (void)state;
    reported_values_begin(&values, first, 0, false);
    add_steps(1, 20);
    assert_false(next());
    reported_values_begin(&values, second, 15, true);
    expect_message(1, 15);
    assert_int_equal(message.generation.number, 2);
    reported_values_stored(&values, message.end);
    add_steps(16, 17);
    expect_message(16, 17);
    reported_values_stored(&values, message.end);
    reported_values_begin(&values, (struct generation){.number = 3}, 17, false);
    assert_false(next());
}

static void test_own_numbers_go_back_in_laps(void **state)
{
    (void)state;
    reported_values_begin(&values, first, 0, true);
    const uint64_t steps[] = {100, 200, 50, 60, 60};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_true(reported_values_add(&values, "loss", steps[i], true, 1));
    }
    assert_true(next());
    assert_int_equal(message.value_count, 2);
    assert_int_equal(message.values[1].step, 200);
    assert_int_equal(message.lap, 1);
    reported_values_stored(&values, message.end);
    assert_true(next());
    assert_int_equal(message.value_count, 3);
    assert_int_equal(message.values[0].step, 50);
    assert_int_equal(message.lap, 2);
    assert_false(next());
}

static void test_steps_are_counted(void **state)
{
    (void)state;
    reported_values_begin(&values, first, 0, true);
    const char *const reported[] = {"a", "b", "a", "a", "b", "a"};
    const uint64_t steps[] = {1, 1, 2, 3, 3, 4};
    for (size_t i = 0; i < 6; i++) {
        assert_true(reported_values_add(&values, reported[i], STEP_COUNTED, true, 1));
    }
    assert_true(next());
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(message.values[i].step, steps[i]);
    }
    assert_true(message.numbered);
    assert_int_equal(message.lap, 1);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    reported_values_begin(&values, first, 0, true);
    for (uint64_t step = 1; step <= 300000; step++) {
        assert_true(reported_values_add(&values, "loss", step, false, 1));
    }
    assert_true(values.count <= 65536);
    uint64_t before = 0;
    while (next()) { /* what is left is in order, and goes to the end */
        for (size_t i = 0; i < message.value_count; i++) {
            assert_true(message.values[i].step > before);
            before = message.values[i].step;
        }
        reported_values_stored(&values, message.end);
    }
    assert_int_equal(before, 300000);
    reported_values_begin(&values, second, 300000, false);
    add_steps(300001, 310000);
    assert_true(values.count <= 2048);
}

static void test_names_are_bounded(void **state)
{
    (void)state;
    char name[16];
    for (int i = 0; i <= LIMIT_METRICS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(reported_values_add(&values, name, 1, false, 1), i < LIMIT_METRICS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_chief_sends_until_it_is_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_it_is_sent_again_when_no_answer_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_next_chief_has_what_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_numbers_go_back_in_laps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
