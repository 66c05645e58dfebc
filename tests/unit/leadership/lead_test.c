/* SPDX-License-Identifier: Apache-2.0
 * A leader in time: HA4, HA4a, HA12, HA13, HA25; snapshots and trimming (HA19); leaving. */
#include "fixture.h"

#include <string.h>

#include "common/pure/assert.h"

#define SEND_US (LEASE_US - LEASE_US / 50 - 50000)

static void test_the_time_to_send_counts_from_the_first_sending(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    uint64_t sent_us = fixture.now_us;
    assert_int_equal(leadership_may_send_until_us(fixture.core), sent_us + SEND_US);
    pass(&fixture, LEASE_US / 6);
    sent_us = fixture.now_us;
    pass(&fixture, LEASE_US / 4);
    pass(&fixture, LEASE_US / 4);
    expect(&fixture, "beat\nbeat, again\nbeat, again\n");
    answer(&fixture);
    assert_int_equal(leadership_may_send_until_us(fixture.core), sent_us + SEND_US);
}

static void test_it_holds_for_every_drift_within_the_bound(void **state)
{
    (void)state;
    /* The longest real time of a leader whose clock is slow, and the shortest wait of a follower
     * whose clock is fast, in millionths. */
    for (uint64_t ppm = 0; ppm <= 400000; ppm += 1000) {
        uint64_t send_us = LEASE_US - LEASE_US * 2 * ppm / 1000000;
        uint64_t longest_us = send_us * 1000000 / (1000000 - ppm);
        uint64_t shortest_us = UINT64_C(1000000) * LEASE_US / (1000000 + ppm);
        assert_true(longest_us <= shortest_us);
    }
}

static void test_a_leader_without_answers_is_suspended_and_comes_back(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, "beat\n");
    pass(&fixture, LEASE_US);
    expect(&fixture, "beat, again\nsuspend\n");
    assert_int_equal(state_of(&fixture), LEADERSHIP_SUSPENDED);
    offer(&fixture, 1, LEADERSHIP_SYNC, 10); /* tickets are taken, and wait */
    /* The answer is of a sending so long ago that the time is over already: another follows. */
    answer(&fixture);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
    assert_int_equal(state_of(&fixture), LEADERSHIP_SUSPENDED);
    answer(&fixture);
    expect(&fixture, "logged up to 1: 1 entries to 5\nresume\n");
    assert_int_equal(state_of(&fixture), LEADERSHIP_LEADING);
}

static void test_a_beat_is_due_only_without_other_transactions(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    for (uint64_t ticket = 1; ticket < 20; ticket++) {
        pass(&fixture, LEASE_US / 7);
        offer(&fixture, ticket, LEADERSHIP_SYNC, 10);
        answer(&fixture);
        assert_int_equal(fixture.transaction.kind, LOG_APPEND);
    }
    assert_int_equal(leadership_wake_us(fixture.core), fixture.now_us + LEASE_US / 6);
}

static void test_no_space_keeps_the_transaction(void **state)
{
    (void)state;
    struct fixture fixture;
    struct leadership_view view;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 10);
    unanswered(&fixture, fixture.request, true);
    leadership_show(fixture.core, &view);
    assert_true(view.no_space);
    assert_int_equal(view.unanswered_us, fixture.now_us);
    pass(&fixture, LEASE_US / 20);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, "append tickets 1-1 as 5-5, again\n");
    answer(&fixture);
    leadership_show(fixture.core, &view);
    assert_false(view.no_space);
}

static void hello(struct fixture *fixture, uint64_t term, uint64_t index)
{
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_HELLO_AHEAD,
                      .hello = {.term = term, .index = index}});
}

static void test_a_worker_of_a_newer_term_ends_the_leader(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    hello(&fixture, 1, 1000);
    hello(&fixture, 2, 4);
    expect(&fixture, "");
    hello(&fixture, 3, 5);
    expect(&fixture, "read after 4, no entries\nsuspend\n");
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, ""); /* nothing is written any more */
    fixture.leader.term = fixture.head.term = 3;
    answer_read(&fixture);
    expect(&fixture, "step down\n");
}

static void test_a_worker_that_knows_more_of_this_term_shows_a_restore(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    pass(&fixture, LEASE_US / 6);
    hello(&fixture, 2, 5);
    expect(&fixture, "beat\nread after 4, no entries\nsuspend\n");
    answer(&fixture); /* what is in flight gives no time to send */
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    answer_read(&fixture);
    expect(&fixture, "refuse\n");
    assert_non_null(strstr(fixture.text, "leads in it with term 2 up to entry 4"));
}

static void held(struct fixture *fixture, uint64_t index, uint32_t holders, uint64_t trim_to)
{
    step(fixture,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_HELD,
            .snapshot = {
                .index = index, .hash = hash_at(index), .holders = holders, .trim_to = trim_to}});
}

static void test_the_log_is_trimmed_behind_a_snapshot_of_two(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    held(&fixture, 3, 1, 2);
    held(&fixture, 5, 2, 5); /* beyond the log */
    expect(&fixture, "");
    held(&fixture, 3, 2, 2);
    expect(&fixture, "snapshot at 3\n");
    offer(&fixture, 1, LEADERSHIP_SYNC, 10);
    answer(&fixture);
    expect(&fixture, "snapshot at 3 is stored\ntrim 1-2\n");
    answer(&fixture);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
    assert_int_equal(fixture.head.first, 3);
    answer(&fixture);
    held(&fixture, 4, 2, 2); /* all that may go is gone */
    answer(&fixture);
    expect(&fixture, "logged up to 1: 1 entries to 5\nsnapshot at 4\nsnapshot at 4 is stored\n");
}

static void leave(struct fixture *fixture)
{
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_LEAVE});
}

static void test_a_leader_leaves_when_its_tickets_are_logged(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 10);
    offer(&fixture, 2, LEADERSHIP_LAGGING, 10);
    leave(&fixture);
    answer(&fixture);
    expect(&fixture, "append tickets 1-1 as 5-5\nlogged up to 1: 1 entries to 5\n"
                     "append tickets 2-2 as 6-6\n");
    answer(&fixture);
    expect(&fixture, "logged up to 2: 1 entries to 6\nsuspend\nleave term 2\n");
    /* Nothing is sent from before LEAVE is sent. */
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    answer(&fixture);
    expect(&fixture, "step down\n");
    assert_true(fixture.leader.left);
}

static void test_leaving_waits_no_longer_than_the_lease(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 10);
    leave(&fixture);
    pass(&fixture, LEASE_US - 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_SUSPENDED);
    pass(&fixture, 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_STEPPING_DOWN);

    fixture_begin(&fixture, 3);
    fixture_start(&fixture);
    leave(&fixture);
    expect(&fixture, "read after 0, no entries\nstep down\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_time_to_send_counts_from_the_first_sending),
        cmocka_unit_test(test_it_holds_for_every_drift_within_the_bound),
        cmocka_unit_test(test_a_leader_without_answers_is_suspended_and_comes_back),
        cmocka_unit_test(test_a_beat_is_due_only_without_other_transactions),
        cmocka_unit_test(test_no_space_keeps_the_transaction),
        cmocka_unit_test(test_a_worker_of_a_newer_term_ends_the_leader),
        cmocka_unit_test(test_a_worker_that_knows_more_of_this_term_shows_a_restore),
        cmocka_unit_test(test_the_log_is_trimmed_behind_a_snapshot_of_two),
        cmocka_unit_test(test_a_leader_leaves_when_its_tickets_are_logged),
        cmocka_unit_test(test_leaving_waits_no_longer_than_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
