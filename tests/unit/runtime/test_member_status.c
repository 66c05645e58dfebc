/* SPDX-License-Identifier: Apache-2.0
 * What follows from the statuses of the members of a generation. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/regroup/member_status.h"

#define LAYOUT 77

static struct member_status at(uint64_t position, uint64_t between_steps, uint64_t flags)
{
    return (struct member_status){
        .position = position, .between_steps = between_steps, .flags = flags, .layout = LAYOUT};
}

static struct sync_decision decide(
    const struct member_status *statuses, uint32_t count, uint64_t resume, uint32_t source)
{
    struct sync_decision decision;
    struct cadre_error error;
    assert_ok(sync_decide(statuses, count, resume, source, &decision, &error), &error);
    return decision;
}

static void check(struct sync_decision is, uint32_t source, bool state, bool step,
    uint64_t between_steps, uint32_t between_steps_source)
{
    assert_int_equal(is.source, source);
    assert_int_equal(is.state, state);
    assert_int_equal(is.step, step);
    assert_int_equal(is.between_steps, between_steps);
    assert_int_equal(is.between_steps_source, between_steps_source);
}

static void who_stands_there_needs_nothing(void **state)
{
    (void)state;
    const struct member_status fresh[] = {at(0, 0, 0), at(0, 0, 0)};
    check(decide(fresh, 2, 0, SOURCE_NONE), 0, false, false, 0, UINT32_MAX);
    const struct member_status equal[] = {
        at(9, 2, MEMBER_STATUS_STEP | MEMBER_STATUS_BETWEEN_STEPS),
        at(9, 2, MEMBER_STATUS_BETWEEN_STEPS)};
    check(decide(equal, 2, 9, 1), 1, false, false, 2, UINT32_MAX);
    assert_false(member_status_lacks_state(&equal[0], 9, true));
}

static void joiners_get_the_state(void **state)
{
    (void)state;
    const struct member_status statuses[] = {
        at(0, 0, MEMBER_STATUS_WARM), at(9, 3, MEMBER_STATUS_STEP), at(9, 3, 0)};
    check(decide(statuses, 3, 9, 2), 2, true, false, 3, UINT32_MAX);
    check(
        decide(statuses, 3, 9, 0), 1, true, false, 3, UINT32_MAX); /* a source without the state */
    assert_true(member_status_lacks_state(&statuses[0], 9, true));
    assert_false(member_status_adopts(&statuses[0], 1));
}

static void who_was_frozen_in_a_step_gets_it(void **state)
{
    (void)state;
    struct member_status statuses[] = {at(8, 0, 0), at(9, 0, MEMBER_STATUS_STEP)};
    statuses[0].collectives = 2;
    statuses[1].applied_collectives = 2;
    check(decide(statuses, 2, 9, 1), 1, true, true, 0, UINT32_MAX);
    assert_true(member_status_adopts(&statuses[0], 9));
    statuses[0].collectives = 3; /* it makes more than the others did */
    struct sync_decision decision;
    struct cadre_error error;
    assert_error(sync_decide(statuses, 2, 9, 1, &decision, &error), CADRE_INVALID_ARGUMENT, &error,
        "make at least 3 collective calls in step 8, those of rank 1 make 2");
    statuses[0].collectives = 1;
    statuses[1].flags = 0;
    assert_error(sync_decide(statuses, 2, 9, 1, &decision, &error), CADRE_INTERNAL, &error,
        "no task that is left has the outputs of that step");
}

static void who_was_frozen_in_a_collective_gets_its_result(void **state)
{
    (void)state;
    struct member_status statuses[] = {
        at(9, 1, MEMBER_STATUS_BETWEEN_STEPS), at(9, 2, 0), at(9, 2, MEMBER_STATUS_BETWEEN_STEPS)};
    check(decide(statuses, 3, 9, 0), 0, false, false, 2, 2);
    struct sync_decision decision;
    struct cadre_error error;
    statuses[2].flags = 0;
    assert_error(sync_decide(statuses, 3, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "no task that is left has the results of the last one");
    statuses[2] = at(9, 3, MEMBER_STATUS_BETWEEN_STEPS);
    assert_error(sync_decide(statuses, 3, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "has made 1 collectives since step 9, another 3");
}

static void restored_tasks_wait_for_the_checkpoint(void **state)
{
    (void)state;
    struct member_status statuses[] = {
        at(0, 0, MEMBER_STATUS_RESTORES), at(0, 0, MEMBER_STATUS_RESTORES)};
    check(decide(statuses, 2, 40, SOURCE_NONE), UINT32_MAX, false, false, 0, UINT32_MAX);
    statuses[1] = at(40, 0, 0); /* it was loaded, and one was frozen meanwhile */
    statuses[0].position = 40;
    check(decide(statuses, 2, 40, 0), 1, true, false, 0, UINT32_MAX);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct member_status statuses[] = {at(9, 0, 0), at(0, 0, MEMBER_STATUS_WARM)};
    struct sync_decision decision;
    struct cadre_error error;
    statuses[1].layout++; /* they are looked at before all else is decided */
    assert_int_equal(sync_layout_mismatch(statuses, 2, 9, 0), 0);
    statuses[1] = at(5, 0, 0);
    assert_error(sync_decide(statuses, 2, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "rank 1 is at step 5");
}

static void cursors_travel(void **state)
{
    (void)state;
    struct member_status member_status = {0};
    const struct cursor cursor = {.stream = 3, .epoch = 4, .first = 5, .begin = 6, .steps = 7};
    const struct consumption consumption = {
        .steps = 1, .samples = 2, .consumed = {3, 4}, .expected = {5, 6}, .provable = true};
    struct cursor cursor_is;
    struct consumption consumption_is;
    member_status_set_cursor(&member_status, &cursor, &consumption);
    member_status_get_cursor(&member_status, &cursor_is, &consumption_is);
    assert_true(cursor_is.stream == 3 && cursor_is.epoch == 4 && cursor_is.first == 5 &&
                cursor_is.begin == 6 && cursor_is.steps == 7);
    assert_true(consumption_is.steps == 1 && consumption_is.samples == 2 &&
                consumption_is.consumed[0] == 3 && consumption_is.consumed[1] == 4 &&
                consumption_is.expected[0] == 5 && consumption_is.expected[1] == 6 &&
                consumption_is.provable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_stands_there_needs_nothing),
        cmocka_unit_test(joiners_get_the_state),
        cmocka_unit_test(who_was_frozen_in_a_step_gets_it),
        cmocka_unit_test(who_was_frozen_in_a_collective_gets_its_result),
        cmocka_unit_test(restored_tasks_wait_for_the_checkpoint),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(cursors_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
