/* SPDX-License-Identifier: Apache-2.0
 * Making strategies, and their descriptions. */
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

static cadre_status count_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    if (status == CADRE_OK) {
        *(float *)cadre_variable_write(replica, user) += *(const float *)cadre_tensor_data(one);
    }
    cadre_tensor_release(one);
    return status;
}

/* Each is a job of its own: steps, variables, datasets and ends do not touch the other. */
static void several_live_at_a_time(void **state)
{
    (void)state;
    cadre_strategy *strategies[3];
    cadre_variable *counts[3];
    cadre_distributed_dataset *data[3];
    for (uint32_t i = 0; i < 3; i++) {
        strategies[i] = training_strategy(i + 1);
        assert_public_ok(
            cadre_variable_create(strategies[i], "count", CADRE_F32, 0, NULL, NULL, &counts[i]));
        assert_public_ok(cadre_distribute_dataset(strategies[i],
            cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false), NULL, &data[i]));
    }
    for (uint32_t step = 0; step < 6; step++) {
        uint32_t i = step % 3;
        assert_public_ok(cadre_run(strategies[i], count_up, counts[i], NULL, 0, NULL));
    }
    assert_public_error(cadre_barrier(), CADRE_FAILED_PRECONDITION, "several strategies");
    cadre_strategy_release(strategies[1]);
    assert_int_equal(cadre_strategy_local_replicas(strategies[1]), 0);
    cadre_per_replica *batch;
    assert_public_error(cadre_next(data[1], &batch), CADRE_FAILED_PRECONDITION, "has ended");
    for (uint32_t i = 0; i < 3; i += 2) {
        assert_int_equal(cadre_strategy_position(strategies[i]), 2);
        assert_int_equal(cadre_strategy_num_replicas_in_sync(strategies[i]), i + 1);
        assert_true(*(const float *)cadre_variable_read(NULL, counts[i]) == (float)(2 * (i + 1)));
        assert_true(cadre_next_epoch(data[i], 1, NULL));
        assert_public_ok(cadre_next(data[i], &batch));
        assert_public_ok(cadre_run(strategies[i], count_up, counts[i], batch, 0, NULL));
        cadre_strategy_release(strategies[i]);
    }
}

static void as_many_live_as_there_are_places(void **state)
{
    (void)state;
    cadre_strategy *strategies[65];
    for (int i = 0; i < 64; i++) {
        strategies[i] = training_strategy(1);
    }
    assert_public_error(cadre_strategy_mirrored(1, &strategies[64]), CADRE_RESOURCE_EXHAUSTED,
        "64 strategies are open");
    assert_null(strategies[64]);
    cadre_strategy_release(strategies[10]);
    strategies[10] = training_strategy(1);
    for (int i = 0; i < 64; i++) {
        cadre_strategy_release(strategies[i]);
    }
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
    char name[24];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "metric %d", i);
        assert_public_ok(cadre_report(strategy, name, 1));
    }
    assert_public_ok(cadre_report(strategy, "metric 3", 4));
    assert_public_error(cadre_report(strategy, "more", 1), CADRE_RESOURCE_EXHAUSTED, "at most 16");
    assert_public_error(cadre_report(strategy, "", 1), CADRE_INVALID_ARGUMENT, "empty");
    assert_public_error(cadre_report(strategy, "a\nb", 1), CADRE_INVALID_ARGUMENT, "0x0a");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_initialised_first_and_once),
        cmocka_unit_test(replicas_are_counted),
        cmocka_unit_test(several_live_at_a_time),
        cmocka_unit_test(as_many_live_as_there_are_places),
        cmocka_unit_test(too_many_replicas_are_refused),
        cmocka_unit_test(versions_agree),
        cmocka_unit_test(metrics_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
