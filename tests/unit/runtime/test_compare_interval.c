/* SPDX-License-Identifier: Apache-2.0
 * How often replicas are compared. */
#include "tests/lib/test.h"
#include "worker/library/runtime/digests/compare_interval.h"

static void a_comparison_costs_its_share(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    assert_int_equal(
        compare_interval_hashed(&interval, 0, false, 1000, 2000), 1); /* nothing is measured */
    /* A step took 100 us, to hash 1000 us, which are eight thousandths of 1250 steps. */
    assert_int_equal(compare_interval_hashed(&interval, 1, false, 2100, 3100), 1251);
    assert_int_equal(compare_interval_hashed(&interval, 1252, false, 3100 + 125100, 129200), 1251);
    /* Of another generation nothing is measured yet. */
    compare_interval_reset(&interval);
    assert_int_equal(compare_interval_hashed(&interval, 1253, false, 900000000, 900001000), 1251);
    /* Long steps are all compared, and a clock that does not move does no harm. */
    interval = (struct compare_interval){.steps = 7};
    assert_int_equal(compare_interval_hashed(&interval, 4, false, 2000, 2100), 7);
    assert_int_equal(compare_interval_hashed(&interval, 5, false, 1002100, 1002200), 1);
    assert_int_equal(compare_interval_hashed(&interval, 6, false, 1002200, 1002200), 2502);
}

/* What took longer than its share is paid by the steps behind it, not all at once. */
static void what_is_owed_is_paid(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    compare_interval_hashed(&interval, 0, true, 0, 1000);
    /* The program's first step is slow, so it seems that much can be hashed. */
    assert_int_equal(compare_interval_hashed(&interval, 1, false, 101000, 102600), 3);
    /* Steps take 1 ms: 1600 us are owed, of which these three pay 24. */
    assert_int_equal(compare_interval_hashed(&interval, 4, false, 105600, 106400), 202);
    assert_int_equal(interval.owed_us, 1600 - 24 + 800);
    /* Put off to twice the distance, until all is paid. */
    assert_int_equal(compare_interval_hashed(&interval, 206, false, 106400 + 202000, 309200), 196);
}

/* Whatever the times are: no job spends more than a hundredth, from its first seconds on. */
static void the_account_holds(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    uint64_t position = 0;
    uint64_t now_us = 1000;
    uint64_t next = compare_interval_hashed(&interval, 0, true, now_us, now_us + 50000);
    for (uint32_t i = 0; i < 2000; i++) {
        /* Steps of 20 to 60 ms, and hashes that take up to five times as long as they may. */
        now_us += 50000 + next * (20000 + i * 7919 % 40000);
        position += next;
        uint64_t took_us = (2000 + i * 104729 % 3000) * (i % 10 == 3 ? 5 : 1);
        next = compare_interval_hashed(&interval, position, i % 50 == 7, now_us, now_us + took_us);
        now_us += took_us;
        assert_true(next >= 1 && next <= 300);
        assert_true(position < 1000 || compare_interval_cost(&interval) <= 0.01);
    }
    assert_true(compare_interval_cost(&interval) > 0.005); /* and it is spent */
    assert_int_equal(interval.comparisons, 2000 - 40);
}

/* What a comparison of all of the state costs is no measure of those in turns. */
static void whole_ones_do_not_count(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    assert_int_equal(compare_interval_hashed(&interval, 0, true, 1000, 2000), 1);
    assert_int_equal(compare_interval_hashed(&interval, 1, true, 2100, 3100), 1);
    /* A step took 100 us, to hash a share 20 us. */
    assert_int_equal(compare_interval_hashed(&interval, 2, false, 3200, 3220), 26);
    assert_int_equal(compare_interval_hashed(&interval, 10, true, 4020, 5020), 26);
    assert_int_equal(interval.hash_us, 20);
    assert_int_equal(compare_interval_hashed(&interval, 36, false, 7620, 7660), 51);
    assert_int_equal(interval.comparisons, 2);
    assert_int_equal(interval.training_us, 100 + 100 + 800 + 2600);
}

static void what_the_user_says_goes_before(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 7};
    assert_int_equal(compare_interval_hashed(&interval, 0, false, 1000, 2000), 7);
    assert_int_equal(compare_interval_hashed(&interval, 7, false, 2100, 3100), 7);
    assert_false(compare_interval_should_log(&interval, UINT32_MAX));
}

static void people_are_reported_once(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    compare_interval_hashed(&interval, 0, false, 1000, 2000);
    assert_false(compare_interval_should_log(&interval, 2000000)); /* nothing is measured */
    compare_interval_hashed(&interval, 1, false, 2100, 3100);
    assert_false(compare_interval_should_log(&interval, 500000)); /* many programs end sooner */
    assert_true(compare_interval_should_log(&interval, 1500000));
    assert_false(compare_interval_should_log(&interval, 1600000));
    interval.steps = 400;
    assert_false(compare_interval_should_log(&interval, 100000000));
    interval.steps = 300;
    assert_false(compare_interval_should_log(&interval, 61000000)); /* within a minute */
    assert_true(compare_interval_should_log(&interval, 62000000));
    assert_false(compare_interval_should_log(&interval, 300000000));
}

static void small_states_are_not_reported(void **state)
{
    (void)state;
    struct compare_interval interval = {.fixed = 0};
    compare_interval_hashed(&interval, 0, false, 1000, 1020);
    compare_interval_hashed(&interval, 1, false, 2100, 2120);
    assert_false(compare_interval_should_log(&interval, 100000000));
    compare_interval_hashed(&interval, 2, false, 3000, 4000); /* it has grown */
    assert_true(compare_interval_should_log(&interval, 100000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_comparison_costs_its_share),
        cmocka_unit_test(what_is_owed_is_paid),
        cmocka_unit_test(the_account_holds),
        cmocka_unit_test(whole_ones_do_not_count),
        cmocka_unit_test(what_the_user_says_goes_before),
        cmocka_unit_test(people_are_reported_once),
        cmocka_unit_test(small_states_are_not_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
