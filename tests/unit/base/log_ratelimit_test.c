/* SPDX-License-Identifier: Apache-2.0
 * A task that does the same wrong thing again and again does not fill the log. */
#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "common/base/log.h"

#define MINUTE_US (60 * CADRE_US_PER_S)

static uint64_t suppressed;

static void the_first_are_reported(void **state)
{
    (void)state;
    struct log_ratelimit log_ratelimit = {0};
    for (unsigned i = 0; i < LOG_RATELIMIT_BURST; i++) {
        assert_true(log_ratelimit_allow(&log_ratelimit, 5, &suppressed));
        assert_int_equal(suppressed, 0);
    }
    assert_false(log_ratelimit_allow(&log_ratelimit, 5, &suppressed));
}

static void then_one_a_minute(void **state)
{
    (void)state;
    struct log_ratelimit log_ratelimit = {0};
    unsigned logged = 0;
    uint64_t all_left_out = 0;
    for (uint64_t now_us = 7; now_us < 7 + 10 * MINUTE_US; now_us += 1000) {
        if (log_ratelimit_allow(&log_ratelimit, now_us, &suppressed)) {
            logged++;
            all_left_out += suppressed;
        }
    }
    assert_int_equal(logged, LOG_RATELIMIT_BURST + 9);
    assert_int_equal(logged + all_left_out + log_ratelimit.suppressed, 10 * MINUTE_US / 1000);
}

static void the_minute_begins_with_what_is_reported(void **state)
{
    (void)state;
    struct log_ratelimit log_ratelimit = {0};
    for (unsigned i = 0; i < LOG_RATELIMIT_BURST + 3; i++) {
        (void)log_ratelimit_allow(&log_ratelimit, MINUTE_US, &suppressed);
    }
    assert_false(log_ratelimit_allow(&log_ratelimit, 2 * MINUTE_US - 1, &suppressed));
    assert_true(log_ratelimit_allow(&log_ratelimit, 2 * MINUTE_US, &suppressed));
    assert_int_equal(suppressed, 4);
    assert_false(log_ratelimit_allow(&log_ratelimit, 3 * MINUTE_US - 1, &suppressed));
    assert_true(log_ratelimit_allow(&log_ratelimit, 9 * MINUTE_US, &suppressed));
    assert_int_equal(suppressed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_are_reported),
        cmocka_unit_test(then_one_a_minute),
        cmocka_unit_test(the_minute_begins_with_what_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
