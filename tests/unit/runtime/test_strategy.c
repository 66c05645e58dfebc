/* SPDX-License-Identifier: Apache-2.0
 * Making strategies, one at a time, and what they say of themselves. */
#include <stdio.h>

#include "training.h"

static void the_library_is_initialised_first_and_once(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    assert_int_equal(cadre_rank(), 0);
    assert_int_equal(cadre_world_size(), 1);
    assert_public_error(
        cadre_strategy_default(&strategy), CADRE_FAILED_PRECONDITION, "before cadre_init");
    assert_null(strategy);
    assert_public_error(cadre_barrier(), CADRE_FAILED_PRECONDITION, "make a strategy");
    cadre_strategy_release(training_strategy(1));
    assert_public_error(cadre_init(NULL, NULL), CADRE_FAILED_PRECONDITION, "second time");
}

static void replicas_are_counted(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 5; n++) {
        cadre_strategy *strategy = training_strategy(n);
        assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), n);
        assert_int_equal(cadre_strategy_local_replicas(strategy), n);
        assert_true(cadre_strategy_is_chief(strategy));
        assert_int_equal(cadre_strategy_position(strategy), 0);
        assert_int_equal(cadre_rank(), 0);
        assert_int_equal(cadre_world_size(), 1);
        assert_public_ok(cadre_barrier());
        cadre_strategy_release(strategy);
    }
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_default(&strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 1);
    cadre_strategy_release(strategy);
    assert_public_ok(cadre_strategy_multi_worker_mirrored(2, &strategy));
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 2);
    cadre_strategy_release(strategy);
    cadre_strategy_release(NULL);
}

static void one_lives_at_a_time(void **state)
{
    (void)state;
    cadre_strategy *first = training_strategy(1);
    cadre_strategy *second;
    assert_public_error(
        cadre_strategy_default(&second), CADRE_FAILED_PRECONDITION, "another strategy lives");
    cadre_strategy_release(first);
}

static void too_many_replicas_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    assert_public_error(
        cadre_strategy_mirrored(257, &strategy), CADRE_INVALID_ARGUMENT, "at most 256");
}

static void versions_agree(void **state)
{
    (void)state;
    assert_string_equal(cadre_version(), CADRE_VERSION_TEXT);
}

static void metrics_are_limited(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_tensor *pair = training_f32(2, (const float[]){1, 2});
    cadre_tensor *one = training_f32(1, (const float[]){1});
    char name[16];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "metric %d", i);
        assert_public_ok(cadre_report(strategy, name, one));
    }
    assert_public_ok(cadre_report_f64(strategy, "metric 3", 4));
    assert_public_error(
        cadre_report_f64(strategy, "more", 1), CADRE_RESOURCE_EXHAUSTED, "at most 16");
    assert_public_error(cadre_report(strategy, "metric 1", pair), CADRE_INVALID_ARGUMENT, "reduce");
    assert_public_error(cadre_report_f64(strategy, "", 1), CADRE_INVALID_ARGUMENT, "empty");
    assert_public_error(cadre_report_f64(strategy, "a\nb", 1), CADRE_INVALID_ARGUMENT, "0x0a");
    cadre_tensor_release(pair);
    cadre_tensor_release(one);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_initialised_first_and_once),
        cmocka_unit_test(replicas_are_counted),
        cmocka_unit_test(one_lives_at_a_time),
        cmocka_unit_test(too_many_replicas_are_refused),
        cmocka_unit_test(versions_agree),
        cmocka_unit_test(metrics_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
