/* SPDX-License-Identifier: Apache-2.0
 * Values that are gone or not the program's, and variables of another strategy: errors, no crashes.
 */
#include <string.h>

#include "training.h"

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static cadre_variable *vector(cadre_strategy *strategy)
{
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, "v", CADRE_F32, 1, (int64_t[]){2}, NULL, &variable));
    return variable;
}

static cadre_status make_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)user;
    return cadre_tensor_from_i64(1, &outputs[0]);
}

/* Of a step before the last, which made room for others meanwhile: far back, too. */
static void a_batch_of_an_older_step_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *old[25];
    cadre_per_replica *output = NULL;
    cadre_tensor *sum = NULL;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 50, 1), 2, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    for (int i = 0; i < 25; i++) {
        assert_public_ok(cadre_next(data, &old[i]));
        for (int at = 0; at < i; at++) {
            assert_ptr_not_equal(old[at], old[i]);
        }
        if (i >= 2) {
            assert_public_error(cadre_run(strategy, nothing, old[i - 2], 0, NULL, NULL),
                CADRE_INVALID_ARGUMENT, "lives until the next cadre_next of its dataset");
            assert_public_error(cadre_run(strategy, nothing, old[0], 0, NULL, NULL),
                CADRE_INVALID_ARGUMENT, "cadre_run was given a value as 'input' that is gone");
        }
        assert_public_ok(cadre_run(strategy, make_one, old[i], 1, NULL, &output));
    }
    assert_int_equal(cadre_strategy_position(strategy), 25);
    assert_int_equal(cadre_per_replica_count(old[3]), 0);
    assert_null(cadre_local_results(old[3], 0));
    assert_null(cadre_per_replica_retain(old[3]));
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, old[3], CADRE_AXIS_NONE, &sum),
        CADRE_INVALID_ARGUMENT, "'value' that is gone");
    /* One that is kept may be run again. */
    assert_non_null(cadre_per_replica_retain(output));
    assert_public_ok(cadre_run(strategy, nothing, output, 0, NULL, NULL));
    assert_public_ok(cadre_run(strategy, nothing, output, 0, NULL, NULL));
    cadre_per_replica_release(output);
    cadre_strategy_release(strategy);
}

static void assert_not_released(cadre_per_replica *value)
{
    assert_public_ok(cadre_scope_enter(cadre_strategy_current()));
    assert_public_ok(cadre_scope_leave(cadre_strategy_current()));
    cadre_per_replica_release(value);
    assert_non_null(strstr(cadre_error_message(), "the program holds no reference"));
}

static void what_is_not_the_programs_is_not_released(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *output;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 2, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_not_released(batch);
    assert_public_ok(cadre_run(strategy, make_one, batch, 1, NULL, &output));
    assert_not_released(output);
    assert_not_released(output);
    assert_ptr_equal(cadre_per_replica_retain(output), output);
    cadre_per_replica_release(output);
    assert_not_released(output);
    assert_int_equal(
        *(const int64_t *)cadre_tensor_const_data(cadre_local_results(output, 0)[1]), 1);
    assert_public_ok(cadre_run(strategy, nothing, NULL, 0, NULL, NULL));
    assert_not_released(output);
    assert_public_ok(cadre_next(data, &batch));
    assert_public_ok(cadre_run(strategy, make_one, batch, 1, NULL, &output));
    cadre_strategy_release(strategy);
}

struct foreign {
    cadre_variable *variable;
    bool writes;
    bool quietly; /* with the replica of the context */
};

static cadre_status touch_foreign(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct foreign *foreign = user;
    cadre_replica *as = foreign->quietly ? NULL : replica;
    if (foreign->writes) {
        assert_null(cadre_variable_write(replica, foreign->variable));
    } else {
        assert_null(cadre_variable_read(as, foreign->variable));
    }
    return CADRE_OK; /* it does not look */
}

static void a_variable_of_another_strategy_is_refused_in_a_step(void **state)
{
    (void)state;
    cadre_strategy *one = training_strategy(1);
    cadre_strategy *many = training_strategy(4);
    cadre_variable *of_one = vector(one);
    cadre_variable *of_many = vector(many);
    for (int i = 0; i < 3; i++) {
        struct foreign foreign = {.variable = of_one, .writes = i == 1, .quietly = i == 2};
        assert_public_error(cadre_run(many, touch_foreign, NULL, 0, &foreign, NULL),
            CADRE_FAILED_PRECONDITION, "variable 'v' is of another strategy");
        foreign.variable = of_many;
        assert_public_error(cadre_run(one, touch_foreign, NULL, 0, &foreign, NULL),
            CADRE_FAILED_PRECONDITION, "variable 'v' is of another strategy");
    }
    assert_non_null(cadre_variable_read(NULL, of_one));
    assert_int_equal(cadre_strategy_position(one), 0);
    cadre_strategy_release(many);
    cadre_strategy_release(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_of_an_older_step_is_refused),
        cmocka_unit_test(what_is_not_the_programs_is_not_released),
        cmocka_unit_test(a_variable_of_another_strategy_is_refused_in_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
