/* SPDX-License-Identifier: Apache-2.0
 * What follows from where the members of a generation stand. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/regroup/points.h"

#define LAYOUT 77

static struct point at(uint64_t position, uint64_t outside, uint64_t flags)
{
    return (struct point){
        .position = position, .outside = outside, .flags = flags, .layout = LAYOUT};
}

static struct points_decision decide(
    const struct point *points, uint32_t count, uint64_t resume, uint32_t source)
{
    struct points_decision decision;
    struct cadre_error error;
    assert_ok(points_decide(points, count, resume, source, &decision, &error), &error);
    return decision;
}

static void check(struct points_decision is, uint32_t source, bool state, bool step,
    uint64_t outside, uint32_t outside_source)
{
    assert_int_equal(is.source, source);
    assert_int_equal(is.state, state);
    assert_int_equal(is.step, step);
    assert_int_equal(is.outside, outside);
    assert_int_equal(is.outside_source, outside_source);
}

static void who_stands_there_needs_nothing(void **state)
{
    (void)state;
    const struct point fresh[] = {at(0, 0, 0), at(0, 0, 0)};
    check(decide(fresh, 2, 0, SOURCE_NONE), 0, false, false, 0, UINT32_MAX);
    const struct point equal[] = {at(9, 2, POINT_STEP | POINT_OUTSIDE), at(9, 2, POINT_OUTSIDE)};
    check(decide(equal, 2, 9, 1), 1, false, false, 2, UINT32_MAX);
    assert_false(point_lacks_state(&equal[0], 9, true));
}

static void joiners_get_the_state(void **state)
{
    (void)state;
    const struct point points[] = {at(0, 0, POINT_WARM), at(9, 3, POINT_STEP), at(9, 3, 0)};
    check(decide(points, 3, 9, 2), 2, true, false, 3, UINT32_MAX);
    check(decide(points, 3, 9, 0), 1, true, false, 3, UINT32_MAX); /* a source without the state */
    assert_true(point_lacks_state(&points[0], 9, true));
    assert_false(point_adopts(&points[0], 1));
}

static void who_was_frozen_in_a_step_gets_it(void **state)
{
    (void)state;
    struct point points[] = {at(8, 0, 0), at(9, 0, POINT_STEP)};
    points[0].collectives = 2;
    points[1].applied_collectives = 2;
    check(decide(points, 2, 9, 1), 1, true, true, 0, UINT32_MAX);
    assert_true(point_adopts(&points[0], 9));
    points[0].collectives = 3; /* it makes more than the others did */
    struct points_decision decision;
    struct cadre_error error;
    assert_error(points_decide(points, 2, 9, 1, &decision, &error), CADRE_INVALID_ARGUMENT, &error,
        "make at least 3 collective calls in step 8, those of rank 1 make 2");
    points[0].collectives = 1;
    points[1].flags = 0;
    assert_error(points_decide(points, 2, 9, 1, &decision, &error), CADRE_INTERNAL, &error,
        "nobody that is left knows what that step gave");
}

static void who_was_frozen_in_a_collective_gets_its_result(void **state)
{
    (void)state;
    struct point points[] = {at(9, 1, POINT_OUTSIDE), at(9, 2, 0), at(9, 2, POINT_OUTSIDE)};
    check(decide(points, 3, 9, 0), 0, false, false, 2, 2);
    struct points_decision decision;
    struct cadre_error error;
    points[2].flags = 0;
    assert_error(points_decide(points, 3, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "nobody that is left knows what the last one gave");
    points[2] = at(9, 3, POINT_OUTSIDE);
    assert_error(points_decide(points, 3, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "has made 1 collectives since step 9, another 3");
}

static void restored_tasks_wait_for_the_checkpoint(void **state)
{
    (void)state;
    struct point points[] = {at(0, 0, POINT_RESTORES), at(0, 0, POINT_RESTORES)};
    check(decide(points, 2, 40, SOURCE_NONE), UINT32_MAX, false, false, 0, UINT32_MAX);
    points[1] = at(40, 0, 0); /* it was loaded, and one was frozen meanwhile */
    points[0].position = 40;
    check(decide(points, 2, 40, 0), 1, true, false, 0, UINT32_MAX);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct point points[] = {at(9, 0, 0), at(0, 0, POINT_WARM)};
    struct points_decision decision;
    struct cadre_error error;
    points[1].layout++; /* they are looked at before all else is decided */
    assert_int_equal(points_misfit(points, 2, 9, 0), 0);
    points[1] = at(5, 0, 0);
    assert_error(points_decide(points, 2, 9, 0, &decision, &error), CADRE_INTERNAL, &error,
        "rank 1 stands at step 5");
}

static void cursors_travel(void **state)
{
    (void)state;
    struct point point = {0};
    const struct cursor cursor = {.stream = 3, .epoch = 4, .first = 5, .begin = 6, .steps = 7};
    const struct feed feed = {
        .steps = 1, .samples = 2, .fed = {3, 4}, .expected = {5, 6}, .provable = true};
    struct cursor cursor_is;
    struct feed feed_is;
    point_set_cursor(&point, &cursor, &feed);
    point_get_cursor(&point, &cursor_is, &feed_is);
    assert_true(cursor_is.stream == 3 && cursor_is.epoch == 4 && cursor_is.first == 5 &&
                cursor_is.begin == 6 && cursor_is.steps == 7);
    assert_true(feed_is.steps == 1 && feed_is.samples == 2 && feed_is.fed[0] == 3 &&
                feed_is.fed[1] == 4 && feed_is.expected[0] == 5 && feed_is.expected[1] == 6 &&
                feed_is.provable);
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
