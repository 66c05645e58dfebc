/* SPDX-License-Identifier: Apache-2.0
 * The times of `cadre logs --since`. */
#include "coordinator/cli/since.h"

#include "tests/lib/test.h"

#define NOW_US UINT64_C(1795934404000000) /* 2026-11-29T06:40:04Z */

static void assert_time(const char *text, uint64_t wanted_us)
{
    uint64_t us = 0;
    if (!since_parse(text, NOW_US, &us)) {
        fail_msg("%s is refused", text);
    }
    assert_int_equal(us, wanted_us);
}

static void durations_are_before_now(void **state)
{
    (void)state;
    assert_time("250ms", NOW_US - 250000);
    assert_time("90s", NOW_US - 90000000);
    assert_time("10m", NOW_US - 600000000);
    assert_time("2h", NOW_US - 7200000000);
    assert_time("3d", NOW_US - UINT64_C(259200000000));
    assert_time("9999999d", 1); /* before 1970: all that has a time */
}

static void times_have_a_zone(void **state)
{
    (void)state;
    assert_time("2026-11-29T06:40:04Z", NOW_US);
    assert_time("2026-11-29 06:40:04z", NOW_US);
    assert_time("2026-11-29T08:10:04+01:30", NOW_US);
    assert_time("2026-11-28T22:40:04-08:00", NOW_US);
    assert_time("2026-11-29T06:40:04.5Z", NOW_US + 500000);
    assert_time("2026-11-29T06:40:04.123456789Z", NOW_US + 123456);
    assert_time("1970-01-01T00:00:00+01:00", 1);
}

static void all_else_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "10", "m", "10 m", "-5m", "10m5s", "123456789s", "now",
        "2026-11-29", "2026-11-29T06:40:04", "2026-11-29T06:40Z", "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T06:40:04+1:00",
        "2026-11-29T06:40:04+01:60", "2026-11-29T06:40:04Zulu", "1969-12-31T00:00:00Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t us;
        if (since_parse(wrong[i], NOW_US, &us)) {
            fail_msg("\"%s\" is accepted", wrong[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(durations_are_before_now),
        cmocka_unit_test(times_have_a_zone), cmocka_unit_test(all_else_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
