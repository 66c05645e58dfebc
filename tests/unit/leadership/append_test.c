/* SPDX-License-Identifier: Apache-2.0
 * Tickets and what a transaction carries: HA5, HA6, HA7a, HA7b; limits; pieces. */
#include "fixture.h"

#include <string.h>

#include "common/pure/assert.h"

static void test_a_sync_ticket_goes_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 100);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
    assert_int_equal(fixture.transaction.guard_head_revision, fixture.head.mod_revision);
    assert_int_equal(fixture.transaction.guard_leader.term, 2);
    /* One in flight: the next ones go together. */
    offer(&fixture, 2, LEADERSHIP_SYNC, 100);
    offer(&fixture, 3, LEADERSHIP_SYNC, 100);
    expect(&fixture, "");
    answer(&fixture);
    expect(&fixture, "logged up to 1: 1 entries to 5\nappend tickets 2-3 as 6-7\n");
    answer(&fixture);
    expect(&fixture, "logged up to 3: 2 entries to 7\n");
}

static void test_lagging_tickets_go_with_the_next_sync_one(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_LAGGING, 100);
    offer(&fixture, 2, LEADERSHIP_LAGGING, 100);
    expect(&fixture, "");
    offer(&fixture, 3, LEADERSHIP_SYNC, 100);
    expect(&fixture, "append tickets 1-3 as 5-7\n");
}

static void test_lagging_tickets_go_after_the_lag(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_LAGGING, 100);
    assert_int_equal(leadership_wake_us(fixture.core), fixture.now_us + 500000);
    pass(&fixture, 499999);
    offer(&fixture, 1, LEADERSHIP_LAGGING, 200); /* the same one, with more bytes */
    expect(&fixture, "");
    pass(&fixture, 1);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
}

static void test_a_confirm_waits_for_a_guard_sent_behind_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_CONFIRM, 0);
    expect(&fixture, "beat for tickets 1-1\n");
    offer(&fixture, 2, LEADERSHIP_CONFIRM, 0); /* decided after that was sent */
    answer(&fixture);
    expect(&fixture, "logged up to 1: 0 entries to 4\nbeat for tickets 2-2\n");
    offer(&fixture, 3, LEADERSHIP_SYNC, 10);
    offer(&fixture, 4, LEADERSHIP_CONFIRM, 0);
    answer(&fixture);
    expect(&fixture, "logged up to 2: 0 entries to 4\nappend tickets 3-4 as 5-5\n");
    answer(&fixture);
    expect(&fixture, "logged up to 4: 1 entries to 5\n");
}

static void test_an_unanswered_append_is_repeated_as_it_is(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 100);
    struct log_transaction first = fixture.transaction;
    offer(&fixture, 2, LEADERSHIP_SYNC, 100);
    apply(&fixture);
    unanswered(&fixture, fixture.request, false);
    expect(&fixture, "append tickets 1-1 as 5-5\n"); /* not within the same moment */
    pass(&fixture, LEASE_US / 20);
    expect(&fixture, "append tickets 1-1 as 5-5, again\n");
    assert_memory_equal(&first, &fixture.transaction, sizeof(first));
    answer_refused(&fixture); /* the head is the one that it wrote */
    expect(&fixture, "logged up to 1: 1 entries to 5\nappend tickets 2-2 as 6-6\n");
    /* This one was never applied, and neither was it by the second attempt. */
    unanswered(&fixture, fixture.request, false);
    pass(&fixture, LEASE_US / 20);
    answer(&fixture);
    expect(&fixture, "append tickets 2-2 as 6-6, again\nlogged up to 2: 1 entries to 6\n");
}

static void test_an_answer_of_an_earlier_attempt_counts_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 100);
    unanswered(&fixture, fixture.request, false);
    pass(&fixture, LEASE_US / 20);
    answer(&fixture);
    expect(&fixture, "append tickets 1-1 as 5-5\nappend tickets 1-1 as 5-5, again\n"
                     "logged up to 1: 1 entries to 5\n");
    answer_refused(&fixture); /* of the other attempt */
    expect(&fixture, "");
    assert_int_equal(state_of(&fixture), LEADERSHIP_LEADING);
}

static void test_a_guard_that_failed_ends_the_term(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 100);
    fixture.leader.term = fixture.head.term = 3;
    fixture.leader.nonce = fixture.head.nonce = (struct log_nonce){.high = 72};
    other_beats(&fixture);
    answer_refused(&fixture);
    expect(&fixture, "append tickets 1-1 as 5-5\nstep down\n");
    assert_string_equal(fixture.text, "another coordinator leads now");
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    pass(&fixture, 10 * LEASE_US);
    expect(&fixture, ""); /* nothing of it goes on in this process */
    assert_true(leadership_wake_us(fixture.core) == UINT64_MAX);
}

static void test_the_number_of_entries_is_limited(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    for (uint64_t ticket = 1; ticket <= 150; ticket++) {
        offer(&fixture, ticket, LEADERSHIP_LAGGING, 10);
    }
    assert_int_equal(leadership_tickets_free(fixture.core), TICKETS - 150);
    offer(&fixture, 151, LEADERSHIP_CONFIRM, 0);
    expect(&fixture, "append tickets 1-120 as 5-124\n");
    answer(&fixture);
    expect(&fixture, "logged up to 120: 120 entries to 124\nappend tickets 121-151 as 125-154\n");
}

static void test_the_bytes_are_limited(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_LAGGING, 500 * 1024);
    offer(&fixture, 2, LEADERSHIP_LAGGING, 500 * 1024);
    offer(&fixture, 3, LEADERSHIP_SYNC, 100 * 1024);
    expect(&fixture, "append tickets 1-2 as 5-6\n");
    answer(&fixture);
    expect(&fixture, "logged up to 2: 2 entries to 6\nappend tickets 3-3 as 7-7\n");
}

static void test_a_big_entry_is_written_in_pieces(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_LAGGING, 10);
    offer(&fixture, 2, LEADERSHIP_SYNC, 3 * LOG_PIECE_BYTES - 1);
    offer(&fixture, 3, LEADERSHIP_SYNC, 10);
    expect(&fixture, "append tickets 1-1 as 5-5\n");
    answer(&fixture);
    expect(&fixture, "logged up to 1: 1 entries to 5\npieces 0-2 of 3 of ticket 2 as 6\n");
    pass(&fixture, LEASE_US / 4);
    answer_refused(&fixture); /* the head before: it was not applied, so something else was */
    expect(&fixture, "pieces 0-2 of 3 of ticket 2 as 6, again\nstep down\n");

    fixture_lead(&fixture);
    offer(&fixture, 1, LEADERSHIP_SYNC, 3 * LOG_PIECE_BYTES - 1);
    offer(&fixture, 2, LEADERSHIP_SYNC, 10);
    answer(&fixture);
    answer(&fixture);
    answer(&fixture);
    expect(&fixture, "pieces 0-2 of 3 of ticket 1 as 5\npieces 2-3 of 3 of ticket 1 as 5\n"
                     "append tickets 1-2 as 5-6\nlogged up to 2: 2 entries to 6\n");
}

static void test_a_raised_format_is_written_with_its_entry(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_lead(&fixture);
    step(&fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_OFFER,
                       .ticket = {.ticket = 1, .kind = LEADERSHIP_SYNC, .bytes = 10, .format = 2}});
    assert_int_equal(fixture.transaction.cluster.format, 2);
    answer(&fixture);
    offer(&fixture, 2, LEADERSHIP_SYNC, 10);
    assert_int_equal(fixture.transaction.cluster.format, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sync_ticket_goes_at_once),
        cmocka_unit_test(test_lagging_tickets_go_with_the_next_sync_one),
        cmocka_unit_test(test_lagging_tickets_go_after_the_lag),
        cmocka_unit_test(test_a_confirm_waits_for_a_guard_sent_behind_it),
        cmocka_unit_test(test_an_unanswered_append_is_repeated_as_it_is),
        cmocka_unit_test(test_an_answer_of_an_earlier_attempt_counts_once),
        cmocka_unit_test(test_a_guard_that_failed_ends_the_term),
        cmocka_unit_test(test_the_number_of_entries_is_limited),
        cmocka_unit_test(test_the_bytes_are_limited),
        cmocka_unit_test(test_a_big_entry_is_written_in_pieces),
        cmocka_unit_test(test_a_raised_format_is_written_with_its_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
