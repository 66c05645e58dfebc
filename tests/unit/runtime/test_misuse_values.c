/* SPDX-License-Identifier: Apache-2.0
 * Values that were released or are not the program's, and variables of another strategy: errors, no
 * crashes. */
#include <string.h>

#include "training.h"

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
            assert_public_error(cadre_run(strategy, training_nothing, NULL, old[i - 2], 0, NULL),
                CADRE_INVALID_ARGUMENT, "stays until the next cadre_next of its dataset");
            assert_public_error(cadre_run(strategy, training_nothing, NULL, old[0], 0, NULL),
                CADRE_INVALID_ARGUMENT, "cadre_run was given a value as 'input' that has ended");
        }
        assert_public_ok(cadre_run(strategy, make_one, NULL, old[i], 1, &output));
    }
    assert_int_equal(cadre_strategy_position(strategy), 25);
    assert_int_equal(cadre_per_replica_count(old[3]), 0);
    assert_null(cadre_local_results(old[3], 0));
    assert_null(cadre_per_replica_retain(old[3]));
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, old[3], CADRE_AXIS_NONE, &sum),
        CADRE_INVALID_ARGUMENT, "'value' that has ended");
    /* One that is kept may be run again. */
    assert_non_null(cadre_per_replica_retain(output));
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, output, 0, NULL));
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, output, 0, NULL));
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
    assert_public_ok(cadre_run(strategy, make_one, NULL, batch, 1, &output));
    assert_not_released(output);
    assert_not_released(output);
    assert_ptr_equal(cadre_per_replica_retain(output), output);
    cadre_per_replica_release(output);
    assert_not_released(output);
    assert_int_equal(
        *(const int64_t *)cadre_tensor_const_data(cadre_local_results(output, 0)[1]), 1);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_not_released(output);
    assert_public_ok(cadre_next(data, &batch));
    assert_public_ok(cadre_run(strategy, make_one, NULL, batch, 1, &output));
    cadre_strategy_release(strategy);
}

/* --- tensors --- */

enum output_misuse {
    RELEASED,
    RELEASED_TWICE,
    RELEASED_AFTER_RETAINED,
    IN_TWO_PLACES,
    AN_INPUT,
    RELEASED_AND_FAILED, /* no misuse of its own */
    OUTPUT_MISUSES
};

static cadre_status misuse_output(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    const enum output_misuse misuse = *(const enum output_misuse *)user;
    float zeros[300] = {0};
    for (int i = 0; i < 2; i++) {
        assert_public_ok(
            cadre_tensor_from_data(CADRE_F32, 1, (int64_t[]){300}, zeros, &outputs[i]));
    }
    if (misuse == RELEASED_AFTER_RETAINED) {
        cadre_tensor_release(cadre_tensor_retain(outputs[1]));
    }
    if (misuse != IN_TWO_PLACES && misuse != AN_INPUT) {
        cadre_tensor_release(outputs[1]);
    }
    if (misuse == RELEASED_TWICE) {
        cadre_tensor_release(outputs[1]);
    }
    if (misuse == IN_TWO_PLACES || misuse == AN_INPUT) {
        cadre_tensor_release(outputs[1]);
        outputs[1] = misuse == AN_INPUT ? inputs[0] : outputs[0];
    }
    return misuse == RELEASED_AND_FAILED ? cadre_fail(CADRE_DATA_LOSS, "no loss") : CADRE_OK;
}

static void an_output_without_a_reference_fails_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *outputs[2];
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 4, 1), 2, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    for (enum output_misuse misuse = RELEASED; misuse < OUTPUT_MISUSES; misuse++) {
        cadre_status status = cadre_run(strategy, misuse_output, &misuse, batch, 2, outputs);
        if (misuse == RELEASED_AND_FAILED) {
            assert_public_error(status, CADRE_DATA_LOSS, "no loss");
        } else if (misuse < IN_TWO_PLACES) {
            assert_public_error(status, CADRE_INVALID_ARGUMENT, "its function released output 1");
        } else {
            assert_public_error(
                status, CADRE_INVALID_ARGUMENT, "gave output 1 without a reference");
        }
        assert_null(outputs[0]);
    }
    assert_int_equal(cadre_strategy_position(strategy), 0);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, batch, 0, NULL));
    cadre_strategy_release(strategy);
}

/* It puts others into the places of those that it releases. */
static cadre_status replace_outputs(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)user;
    for (int64_t i = 0; i < 5; i++) {
        assert_public_ok(cadre_tensor_from_i64(i, &outputs[0]));
        if (i < 4) {
            cadre_tensor_release(outputs[0]);
        }
    }
    assert_public_ok(cadre_tensor_from_i64(9, &outputs[2]));
    cadre_tensor_release(outputs[2]);
    outputs[2] = NULL;
    outputs[1] = cadre_tensor_retain(outputs[0]);
    return CADRE_OK;
}

static void an_output_that_is_replaced_may_be_released(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *outputs[2];
    assert_public_ok(cadre_run(strategy, replace_outputs, NULL, NULL, 2, outputs));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            *(const int64_t *)cadre_tensor_const_data(cadre_local_results(outputs[i], 0)[1]), 4);
    }
    cadre_strategy_release(strategy);
}

static void assert_tensor_not_released(cadre_tensor *tensor)
{
    (void)cadre_fail(CADRE_UNKNOWN, "nothing was refused");
    cadre_tensor_release(tensor);
    assert_non_null(strstr(cadre_error_message(), "the program holds no reference"));
}

/* Borrowed ones: of a batch, an output, values and a step's input; and the tensor of a view. */
static cadre_status release_input(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)user;
    assert_tensor_not_released(inputs[0]);
    assert_tensor_not_released(inputs[0]);
    return cadre_tensor_from_i64((int64_t)cadre_replica_id(replica), &outputs[0]);
}

static void a_tensor_that_is_not_the_programs_is_not_released(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *output;
    cadre_per_replica *values;
    cadre_tensor *view;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 2, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    for (int i = 0; i < 3; i++) {
        assert_public_ok(cadre_next(data, &batch));
        assert_tensor_not_released(cadre_local_results(batch, 0)[1]);
        assert_public_ok(cadre_run(strategy, release_input, NULL, batch, 1, &output));
        cadre_tensor *const *results = cadre_local_results(output, 0);
        assert_tensor_not_released(results[1]);
        assert_tensor_not_released(results[1]);
        assert_ptr_equal(cadre_tensor_retain(results[1]), results[1]);
        cadre_tensor_release(results[1]);
        assert_tensor_not_released(results[1]);
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(results[1]), 1);
        assert_public_ok(cadre_values_from_tensors(strategy, results, 2, &values));
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
        assert_tensor_not_released(cadre_local_results(values, 0)[0]);
        assert_int_equal(
            *(const int64_t *)cadre_tensor_const_data(cadre_local_results(values, 0)[1]), 1);
        cadre_per_replica_release(values);
    }
    cadre_tensor *whole;
    assert_public_ok(cadre_tensor_create(CADRE_F32, 1, (int64_t[]){4}, &whole));
    assert_public_ok(cadre_tensor_view_rows(whole, 1, 2, &view));
    cadre_tensor_release(whole);
    assert_tensor_not_released(whole);
    assert_true(((const float *)cadre_tensor_const_data(view))[1] == 0.0F);
    cadre_tensor_release(view);
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
    cadre_variable *of_one = training_variable(one);
    cadre_variable *of_many = training_variable(many);
    for (int i = 0; i < 3; i++) {
        struct foreign foreign = {.variable = of_one, .writes = i == 1, .quietly = i == 2};
        assert_public_error(cadre_run(many, touch_foreign, &foreign, NULL, 0, NULL),
            CADRE_FAILED_PRECONDITION, "variable 'v' is of another strategy");
        foreign.variable = of_many;
        assert_public_error(cadre_run(one, touch_foreign, &foreign, NULL, 0, NULL),
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
        cmocka_unit_test(an_output_without_a_reference_fails_the_step),
        cmocka_unit_test(an_output_that_is_replaced_may_be_released),
        cmocka_unit_test(a_tensor_that_is_not_the_programs_is_not_released),
        cmocka_unit_test(a_variable_of_another_strategy_is_refused_in_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
