/* SPDX-License-Identifier: Apache-2.0
 * How often replicas are compared. */
#include "tests/lib/test.h"
#include "worker/library/runtime/digests/interval.h"

static void a_comparison_costs_a_hundredth(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    assert_int_equal(interval_hashed(&interval, 0, false, 1000, 2000), 1); /* nothing is known */
    /* A step took 100 us, to hash 1000 us. */
    assert_int_equal(interval_hashed(&interval, 1, false, 2100, 3100), 1001);
    assert_int_equal(interval_hashed(&interval, 1001, false, 3100 + 100000, 104100), 1001);
    /* Of another generation nothing is known but what was. */
    interval_broken(&interval);
    assert_int_equal(interval_hashed(&interval, 1002, false, 900000000, 900001000), 1001);
    assert_int_equal(interval_hashed(&interval, 1003, false, 900001100, 900002100), 1001);
    /* Long steps are all compared, and a clock that stands does no harm. */
    assert_int_equal(interval_hashed(&interval, 1004, false, 901002100, 901002200), 1);
    assert_int_equal(interval_hashed(&interval, 1005, false, 901002200, 901002200), 1001);
}

/* What a comparison of all of the state costs is no measure of those in turns. */
static void whole_ones_do_not_count(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    assert_int_equal(interval_hashed(&interval, 0, true, 1000, 2000), 1);
    assert_int_equal(interval_hashed(&interval, 1, true, 2100, 3100), 1);
    /* A step took 100 us, to hash a share 20 us. */
    assert_int_equal(interval_hashed(&interval, 2, false, 3200, 3220), 21);
    assert_int_equal(interval_hashed(&interval, 10, true, 4020, 5020), 21);
    assert_int_equal(interval.hash_us, 20);
    assert_int_equal(interval_hashed(&interval, 31, false, 7120, 7160), 41);
}

static void what_the_user_says_goes_before(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 7};
    assert_int_equal(interval_hashed(&interval, 0, false, 1000, 2000), 7);
    assert_int_equal(interval_hashed(&interval, 7, false, 2100, 3100), 7);
    assert_false(interval_is_news(&interval, UINT32_MAX));
}

static void people_are_told_once(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    interval_hashed(&interval, 0, false, 1000, 2000);
    assert_false(interval_is_news(&interval, 2000000)); /* nothing is known */
    interval_hashed(&interval, 1, false, 2100, 3100);
    assert_false(interval_is_news(&interval, 500000)); /* many programs end sooner */
    assert_true(interval_is_news(&interval, 1500000));
    assert_false(interval_is_news(&interval, 1600000));
    interval.steps = 300;
    assert_false(interval_is_news(&interval, 100000000));
    interval.steps = 250;
    assert_false(interval_is_news(&interval, 61000000)); /* within a minute */
    assert_true(interval_is_news(&interval, 62000000));
    assert_false(interval_is_news(&interval, 300000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comparison_costs_a_hundredth),
        cmocka_unit_test(whole_ones_do_not_count),
        cmocka_unit_test(what_the_user_says_goes_before),
        cmocka_unit_test(people_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
