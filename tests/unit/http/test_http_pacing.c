/* SPDX-License-Identifier: Apache-2.0
 * What requests may take of a core, on a clock of the test's own. */
#include "common/http/pacing.h"
#include "common/base/clock.h"
#include "common/http/server.h"
#include "tests/lib/test.h"

#define START_US UINT64_C(1234567890)
#define RUN_MS   40 /* between two runs of a server that is not held */

/* CPU of `seconds` in which clients ask for so much in each run, which begins as soon as it may. */
static uint64_t used_in(uint64_t seconds, uint64_t run_us, uint64_t *ret_longest_us)
{
    struct pacing pacing = {0};
    uint64_t used_us = 0;
    uint64_t now_us = START_US;
    *ret_longest_us = 0;
    while (now_us < START_US + seconds * CADRE_US_PER_S) {
        uint64_t held_us = pacing_charge(&pacing, now_us, run_us);
        used_us += run_us;
        *ret_longest_us = held_us > *ret_longest_us ? held_us : *ret_longest_us;
        now_us += held_us > RUN_MS * CADRE_US_PER_MS ? held_us : RUN_MS * CADRE_US_PER_MS;
    }
    return used_us;
}

static void it_is_less_than_one_percent_of_a_core(void **state)
{
    (void)state;
    static const uint64_t runs_us[] = {1, 100, 300, 1000, 3000, 6000};
    uint64_t longest_us = 0;
    for (size_t i = 0; i < sizeof runs_us / sizeof runs_us[0]; i++) {
        assert_in_range(used_in(10, runs_us[i], &longest_us), 0, CADRE_US_PER_S / 10);
        assert_in_range(used_in(3600, runs_us[i], &longest_us), 0, 3600 * CADRE_US_PER_S / 140);
    }
}

/* Less than the share, and all of a burst, is never held. */
static void few_requests_are_not_held(void **state)
{
    (void)state;
    uint64_t longest_us = 0;
    (void)used_in(3600, RUN_MS * CADRE_US_PER_MS / HTTP_CPU_SHARE, &longest_us);
    assert_int_equal(longest_us, 0);
    struct pacing pacing = {0};
    assert_int_equal(pacing_charge(&pacing, START_US, HTTP_CPU_BURST_US), 0);
    assert_int_equal(pacing_charge(&pacing, START_US, 1), HTTP_CPU_SHARE);
    uint64_t rested_us = START_US + (HTTP_CPU_BURST_US + 1) * HTTP_CPU_SHARE;
    assert_int_equal(pacing_charge(&pacing, rested_us, HTTP_CPU_BURST_US), 0);
}

static void none_waits_longer_than_a_second(void **state)
{
    (void)state;
    struct pacing pacing = {0};
    for (int i = 0; i < 3; i++) {
        uint64_t held_us = pacing_charge(&pacing, START_US, 3600 * CADRE_US_PER_S);
        assert_in_range(held_us, HTTP_HELD_MAX_US * 99 / 100, HTTP_HELD_MAX_US);
    }
    assert_in_range(pacing_charge(&pacing, START_US + HTTP_HELD_MAX_US, 0), 0, HTTP_CPU_SHARE);
}

static void with_more_connections_browsers_ask_less_often(void **state)
{
    (void)state;
    assert_int_equal(pacing_poll_ms(0), HTTP_POLL_MS);
    assert_int_equal(pacing_poll_ms(100), HTTP_POLL_MS);
    assert_int_equal(pacing_poll_ms(200), 2 * HTTP_POLL_MS);
    assert_int_equal(pacing_poll_ms(HTTP_CONNECTIONS_MAX), 4 * HTTP_POLL_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_less_than_one_percent_of_a_core),
        cmocka_unit_test(few_requests_are_not_held),
        cmocka_unit_test(none_waits_longer_than_a_second),
        cmocka_unit_test(with_more_connections_browsers_ask_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
