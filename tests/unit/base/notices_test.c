/* SPDX-License-Identifier: Apache-2.0
 * A task that does the same wrong thing again and again does not fill the log. */
#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "common/base/notices.h"

#define MINUTE_US (60 * CADRE_US_PER_S)

static uint64_t left_out;

static void the_first_are_told(void **state)
{
    (void)state;
    struct notices notices = {0};
    for (unsigned i = 0; i < NOTICES_FIRST; i++) {
        assert_true(notices_take(&notices, 5, &left_out));
        assert_int_equal(left_out, 0);
    }
    assert_false(notices_take(&notices, 5, &left_out));
}

static void then_one_a_minute(void **state)
{
    (void)state;
    struct notices notices = {0};
    unsigned told = 0;
    uint64_t all_left_out = 0;
    for (uint64_t now_us = 7; now_us < 7 + 10 * MINUTE_US; now_us += 1000) {
        if (notices_take(&notices, now_us, &left_out)) {
            told++;
            all_left_out += left_out;
        }
    }
    assert_int_equal(told, NOTICES_FIRST + 9);
    assert_int_equal(told + all_left_out + notices.left_out, 10 * MINUTE_US / 1000);
}

static void the_minute_begins_with_what_is_told(void **state)
{
    (void)state;
    struct notices notices = {0};
    for (unsigned i = 0; i < NOTICES_FIRST + 3; i++) {
        (void)notices_take(&notices, MINUTE_US, &left_out);
    }
    assert_false(notices_take(&notices, 2 * MINUTE_US - 1, &left_out));
    assert_true(notices_take(&notices, 2 * MINUTE_US, &left_out));
    assert_int_equal(left_out, 4);
    assert_false(notices_take(&notices, 3 * MINUTE_US - 1, &left_out));
    assert_true(notices_take(&notices, 9 * MINUTE_US, &left_out));
    assert_int_equal(left_out, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_are_told),
        cmocka_unit_test(then_one_a_minute), cmocka_unit_test(the_minute_begins_with_what_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
