/* SPDX-License-Identifier: Apache-2.0
 * When failed requests are repeated, and which reads are asked for twice: on a clock of the test.
 */
#include "common/storage/transport/latency.h"
#include "common/storage/transport/retry.h"
#include "tests/lib/test.h"

#define MS UINT64_C(1000)

static void pauses_grow_to_the_longest_one(void **state)
{
    (void)state;
    struct retry retry = retry_begin(5 * MS, UINT64_MAX, 1);
    uint64_t now_us = 5 * MS;
    uint64_t most_us = RETRY_FIRST_US;
    for (unsigned i = 0; i < 40; i++) {
        uint64_t at_us = 0;
        assert_true(retry_again(&retry, now_us, false, &at_us));
        assert_true(at_us - now_us >= most_us / 2 && at_us - now_us <= most_us);
        now_us = at_us;
        most_us = most_us * 2 < RETRY_MOST_US ? most_us * 2 : RETRY_MOST_US;
    }
    assert_int_equal(retry.failures, 40);
}

static void none_is_due_after_the_deadline(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct retry retry = retry_begin(0, 60000 * MS, seed);
        uint64_t now_us = 0;
        uint64_t at_us = 0;
        while (retry_again(&retry, now_us, false, &at_us)) {
            assert_true(at_us > now_us);
            assert_true(at_us < 60000 * MS);
            now_us = at_us + 3 * MS; /* what the attempt takes */
        }
        /* A second attempt is never long in coming, and few are wasted in a minute. */
        assert_in_range(retry.failures, 9, 20);
        assert_true(now_us > 45000 * MS);
        assert_false(retry_again(&retry, 60000 * MS, false, &at_us));
    }
}

static void clients_do_not_return_together(void **state)
{
    (void)state;
    unsigned at_ms[50] = {0};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct retry retry = retry_begin(0, UINT64_MAX, seed);
        uint64_t at_us = 0;
        assert_true(retry_again(&retry, 0, false, &at_us));
        uint64_t slot = (at_us - RETRY_FIRST_US / 2) / MS;
        at_ms[slot < 50 ? slot : 49]++;
    }
    for (size_t i = 0; i < 50; i++) {
        assert_in_range(at_ms[i], 5, 45); /* 20 of 1,000 in each of 50 ms */
    }
}

static void a_store_that_is_busy_gets_longer_pauses(void **state)
{
    (void)state;
    struct retry retry = retry_begin(0, UINT64_MAX, 3);
    uint64_t at_us = 0;
    assert_true(retry_again(&retry, 0, true, &at_us));
    assert_in_range(at_us, RETRY_FIRST_US * 2, RETRY_FIRST_US * 4);
}

static void a_deadline_that_is_over_at_once(void **state)
{
    (void)state;
    uint64_t at_us = 0;
    struct retry retry = retry_begin(UINT64_MAX - 5, 10, 3);
    assert_int_equal(retry.deadline_us, UINT64_MAX);
    retry = retry_begin(100, 0, 3);
    assert_false(retry_again(&retry, 100, false, &at_us));
}

/* --- which reads take long --- */

static void few_reads_say_nothing(void **state)
{
    (void)state;
    struct latency latency = {.saved = 0};
    for (unsigned i = 0; i + 1 < LATENCY_ENOUGH; i++) {
        latency_took(&latency, 100, MS);
    }
    assert_true(latency_hedge_us(&latency, 100) == UINT64_MAX);
    latency_took(&latency, 100, 9 * MS);
    assert_int_equal(latency_hedge_us(&latency, 100), 9 * MS);
    /* Another size is another matter, a similar one is not. */
    assert_true(latency_hedge_us(&latency, 1 << 20) == UINT64_MAX);
    assert_int_equal(latency_hedge_us(&latency, 4096), 9 * MS);
}

static void of_hundred_reads_the_slowest_one_is_left_out(void **state)
{
    (void)state;
    struct latency latency = {.saved = 0};
    for (unsigned i = 0; i < LATENCY_SAMPLES; i++) {
        latency_took(&latency, 5000, i == 17 ? 900 * MS : i % 10 * MS);
    }
    assert_int_equal(latency_hedge_us(&latency, 8000), 9 * MS);
    /* It is forgotten after a while. */
    for (unsigned i = 0; i < LATENCY_SAMPLES; i++) {
        latency_took(&latency, 5000, 2 * MS);
    }
    assert_int_equal(latency_hedge_us(&latency, 8000), 2 * MS);
}

static void one_in_twenty_is_asked_for_twice(void **state)
{
    (void)state;
    struct latency latency = {.saved = 0};
    unsigned hedges = 0;
    for (unsigned i = 0; i < 10000; i++) {
        latency_asked(&latency);
        hedges += latency_hedge(&latency) ? 1 : 0;
    }
    assert_int_equal(hedges, 500);
    /* What is saved up is little. */
    for (unsigned i = 0; i < 10000; i++) {
        latency_asked(&latency);
    }
    for (hedges = 0; latency_hedge(&latency); hedges++) {
    }
    assert_int_equal(hedges, HEDGE_SAVED_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_to_the_longest_one),
        cmocka_unit_test(none_is_due_after_the_deadline),
        cmocka_unit_test(clients_do_not_return_together),
        cmocka_unit_test(a_store_that_is_busy_gets_longer_pauses),
        cmocka_unit_test(a_deadline_that_is_over_at_once),
        cmocka_unit_test(few_reads_say_nothing),
        cmocka_unit_test(of_hundred_reads_the_slowest_one_is_left_out),
        cmocka_unit_test(one_in_twenty_is_asked_for_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
