/* SPDX-License-Identifier: Apache-2.0
 * Who leads: HA2, HA3, HA8, HA14 of creation, --resign. */
#include "fixture.h"

#include "common/pure/assert.h"

#define JITTER_US (LEASE_US / 10)

static void test_follower_applies_the_log_and_waits(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture_start(&fixture);
    expect(&fixture, "read after 0, no entries\n"); /* the cluster is not known yet */
    answer_read(&fixture);
    expect(&fixture, "known term 1\nread after 0\n");
    answer_read(&fixture);
    expect(&fixture, "apply 3 to 3\n");
    applied(&fixture);
    expect(&fixture, "");
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, "read after 3\n");
    step(&fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_CHANGED});
    expect(&fixture, ""); /* one read at a time */
    answer_read(&fixture);
    expect(&fixture, "read after 3\n");
    answer_read(&fixture);
    expect(&fixture, "");
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
}

static void test_a_head_that_moves_is_not_taken_over(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture_start(&fixture);
    follow(&fixture);
    for (int i = 0; i < 20; i++) {
        pass(&fixture, LEASE_US / 2);
        other_beats(&fixture);
        answer_read(&fixture);
    }
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
}

static void test_takeover_after_the_lease_as_received(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture_start(&fixture);
    follow(&fixture);
    fixture.transcript[0] = '\0';
    /* The change was received only now: the lease counts from here. */
    other_beats(&fixture);
    pass(&fixture, LEASE_US / 2);
    answer_read(&fixture);
    expect(&fixture, "read after 3\n");
    pass(&fixture, LEASE_US - 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    answer_read(&fixture);
    pass(&fixture, JITTER_US + 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_CANDIDATE);
    assert_int_equal(fixture.transaction.kind, LOG_TAKE_OVER);
    assert_int_equal(fixture.transaction.guard_leader.mod_revision, fixture.leader.mod_revision);
    assert_int_equal(fixture.transaction.guard_head_revision, fixture.head.mod_revision);
    assert_int_equal(fixture.transaction.leader.term, 2);
    assert_int_equal(fixture.transaction.head.index, 3);
}

static void test_who_left_is_taken_over_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture.leader.left = true;
    fixture_start(&fixture);
    answer_read(&fixture);
    expect(&fixture, "read after 0, no entries\nknown term 1\ntake over term 2 at 3\n");
    /* HA8: it reads to the end of the log before TERM, and keeps its term meanwhile. */
    answer(&fixture);
    expect(&fixture, "read after 0\n");
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, "beat\n");
    answer(&fixture);
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    answer_read(&fixture);
    expect(&fixture, "apply 3 to 3\n");
    applied(&fixture);
    expect(&fixture, "append TERM as 4\n");
    assert_int_equal(leadership_may_send_until_us(fixture.core), 0);
    answer(&fixture);
    expect(&fixture, "lead in term 2 from 4\n");
    assert_int_equal(state_of(&fixture), LEADERSHIP_LEADING);
}

static void no_room(struct fixture *fixture, uint64_t index)
{
    fixture->applying = (struct leadership_position){0};
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_NO_ROOM,
                      .position = {.index = index, .term = index > 0, .hash = hash_at(index)}});
}

static void test_a_follower_without_room_does_not_take_over(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture_start(&fixture);
    answer_read(&fixture);
    answer_read(&fixture);
    no_room(&fixture, 1);
    fixture.transcript[0] = '\0';
    fixture.leader.left = true;
    for (int i = 0; i < 5; i++) {
        pass(&fixture, LEASE_US / 6);
        expect(&fixture, "read after 1, no entries\n");
        answer_read(&fixture);
        expect(&fixture, "");
    }
    pass(&fixture, LEASE_US / 6);
    expect(&fixture, "read after 1\n");
    answer_read(&fixture);
    expect(&fixture, "apply 2 to 3\n");
    no_room(&fixture, 1);
    pass(&fixture, 2 * LEASE_US);
    answer_read(&fixture);
    expect(&fixture, "read after 1\napply 2 to 3\n");
    applied(&fixture);
    expect(&fixture, "take over term 2 at 3\n");
}

static void test_who_took_over_and_has_no_room_leaves(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture.leader.left = true;
    fixture_start(&fixture);
    answer_read(&fixture);
    answer(&fixture);
    answer_read(&fixture);
    fixture.transcript[0] = '\0';
    no_room(&fixture, 2);
    expect(&fixture, "leave term 2\n");
    answer(&fixture);
    expect(&fixture, "step down\n");
    assert_true(fixture.leader.left);
}

static struct fixture candidate(void)
{
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture.leader.left = true;
    fixture_start(&fixture);
    follow(&fixture);
    assert_int_equal(state_of(&fixture), LEADERSHIP_CANDIDATE);
    fixture.transcript[0] = '\0';
    return fixture;
}

static void test_an_unanswered_takeover_is_repeated_as_it_is(void **state)
{
    (void)state;
    struct fixture fixture = candidate();
    fixture.core = (struct leadership *)(void *)fixture.memory; /* it may be moved */
    uint64_t request = fixture.request;
    apply(&fixture);
    pass(&fixture, LEASE_US / 4);
    expect(&fixture, "take over term 2 at 3, again\n");
    assert_int_equal(fixture.request, request);
    answer_refused(&fixture); /* with the head that it wrote */
    assert_int_equal(state_of(&fixture), LEADERSHIP_CATCHING_UP);
}

static void test_a_takeover_that_came_second_follows(void **state)
{
    (void)state;
    struct fixture fixture = candidate();
    fixture.core = (struct leadership *)(void *)fixture.memory;
    fixture.leader = (struct log_leader){
        .term = 2, .nonce = {.high = 71, .low = 1}, .mod_revision = ++fixture.revision};
    fixture.head.term = 2;
    fixture.head.nonce = fixture.leader.nonce;
    fixture.head.mod_revision = fixture.revision;
    answer_refused(&fixture);
    expect(&fixture, "read after 0\n");
    answer_read(&fixture);
    expect(&fixture, "known term 2\napply 3 to 3\n");
    applied(&fixture);
    pass(&fixture, LEASE_US - 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
}

static void test_the_cluster_is_created_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 0);
    fixture.has_cluster = false;
    fixture_start(&fixture);
    answer_read(&fixture);
    expect(&fixture, "read after 0, no entries\ncreate\n");
    apply(&fixture); /* the answer is lost */
    pass(&fixture, LEASE_US / 4);
    expect(&fixture, "create, again\n");
    answer_refused(&fixture);
    expect(&fixture, "read after 0, no entries\n");
    answer_read(&fixture);
    expect(&fixture, "known term 0\ntake over term 1 at 0\n");
    answer(&fixture);
    expect(&fixture, "append TERM as 1\n");
}

static void test_who_is_far_behind_waits_longer(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 2000);
    fixture_start(&fixture);
    answer_read(&fixture);
    pass(&fixture, LEASE_US + JITTER_US + 1);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    pass(&fixture, LEASE_US / 2);
    assert_int_equal(state_of(&fixture), LEADERSHIP_CANDIDATE);
}

static void resign(struct fixture *fixture, uint64_t nonce)
{
    fixture_begin(fixture, 3);
    fixture->core = leadership_init(fixture->memory, &fixture->options);
    step(fixture, &(struct leadership_event){
                      .type = LEADERSHIP_EVENT_RESIGN, .nonce = {.high = nonce, .low = 1}});
    answer_read(fixture);
}

static void test_a_dead_process_is_resigned_by_its_nonce(void **state)
{
    (void)state;
    struct fixture fixture;
    resign(&fixture, 71);
    expect(&fixture, "read after 0, no entries\nstep down\n");
    resign(&fixture, 70);
    expect(&fixture, "read after 0, no entries\nleave term 1\n");
    /* A beat of the dead process came in between. */
    other_beats(&fixture);
    answer_refused(&fixture);
    expect(&fixture, "read after 0, no entries\n");
    answer_read(&fixture);
    answer(&fixture);
    expect(&fixture, "leave term 1\nstep down\n");
    assert_true(fixture.leader.left);
}

/* It reads the log as others do. */
static void test_one_that_waits_is_no_candidate(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture.leader.left = true;
    fixture.options.waits = true;
    fixture_start(&fixture);
    follow(&fixture);
    pass(&fixture, 2 * LEASE_US);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    fixture.transcript[0] = '\0';
    step(&fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_STAND});
    expect(&fixture, "take over term 2 at 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follower_applies_the_log_and_waits),
        cmocka_unit_test(test_a_head_that_moves_is_not_taken_over),
        cmocka_unit_test(test_takeover_after_the_lease_as_received),
        cmocka_unit_test(test_who_left_is_taken_over_at_once),
        cmocka_unit_test(test_a_follower_without_room_does_not_take_over),
        cmocka_unit_test(test_who_took_over_and_has_no_room_leaves),
        cmocka_unit_test(test_an_unanswered_takeover_is_repeated_as_it_is),
        cmocka_unit_test(test_a_takeover_that_came_second_follows),
        cmocka_unit_test(test_the_cluster_is_created_once),
        cmocka_unit_test(test_who_is_far_behind_waits_longer),
        cmocka_unit_test(test_a_dead_process_is_resigned_by_its_nonce),
        cmocka_unit_test(test_one_that_waits_is_no_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
