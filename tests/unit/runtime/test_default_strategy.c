/* SPDX-License-Identifier: Apache-2.0
 * The strategy that is current outside of all scopes. */
#include <pthread.h>
#include <string.h>

#include "training.h"

static const cadre_status refused = CADRE_FAILED_PRECONDITION;

/* Before anything is initialised: this runs first. */
static void there_is_none_before_cadre_init(void **state)
{
    (void)state;
    assert_null(cadre_strategy_current());
    assert_non_null(strstr(cadre_error_message(), "cadre_init"));
    assert_null(cadre_replica_current());
    assert_false(cadre_has_strategy());
}

static void it_is_one_replica(void **state)
{
    (void)state;
    const char *const *devices;
    uint32_t count = 0;
    cadre_strategy_release(training_strategy(2)); /* initialises */
    cadre_strategy *it = cadre_strategy_current();
    assert_non_null(it);
    assert_ptr_equal(cadre_strategy_current(), it);
    assert_false(cadre_has_strategy());
    assert_false(cadre_in_cross_replica_context());
    assert_int_equal(cadre_strategy_num_replicas_in_sync(it), 1);
    assert_int_equal(cadre_strategy_local_replicas(it), 1);
    assert_true(cadre_strategy_is_chief(it));
    assert_public_ok(cadre_strategy_devices(it, CADRE_WORKER_DEVICES, &devices, &count));
    assert_int_equal(count, 1);
    assert_non_null(strstr(devices[0], "device:CPU:0"));
}

static void its_replica_context_is_that_of_replica_0(void **state)
{
    (void)state;
    cadre_replica *replica = cadre_replica_current();
    assert_non_null(replica);
    assert_int_equal(cadre_replica_id(replica), 0);
    assert_int_equal(cadre_replica_count(replica), 1);
    assert_int_equal(cadre_replica_local_id(replica), 0);
    assert_ptr_equal(cadre_replica_strategy(replica), cadre_strategy_current());
    cadre_tensor *one = NULL;
    assert_public_ok(cadre_tensor_from_f32(1, &one));
    assert_public_error(cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL), refused, "");
    cadre_tensor_release(one);
}

/* ---- run, reduce, gather ---- */

struct seen {
    cadre_variable *variable;
    uint32_t calls;
    bool right;
};

static cadre_status twice(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct seen *seen = user;
    const float *rows = cadre_tensor_const_data(inputs[0]);
    float sum = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        sum += rows[i];
    }
    seen->calls++;
    seen->right = cadre_replica_id(replica) == 0 && cadre_replica_count(replica) == 1 &&
                  cadre_replica_current() == replica && !cadre_has_strategy() &&
                  cadre_strategy_current() == cadre_replica_strategy(replica) &&
                  !cadre_in_cross_replica_context();
    CADRE_TRY(cadre_tensor_from_f32(2 * sum, &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

static void it_runs_distributes_and_reduces(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3, 4, 5};
    static const float wanted[] = {6, 14, 10}; /* batches of two, and what is left */
    cadre_strategy *it = cadre_strategy_current();
    cadre_tensor *tensor = training_f32(5, values);
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_tensor_slices(&tensor, 1), 2, false);
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch;
    struct seen seen = {0};
    cadre_tensor_release(tensor);
    assert_public_ok(cadre_distribute_dataset(it, data, NULL, &distributed));
    if (!cadre_next_epoch(distributed, 1, NULL)) {
        fail_msg("%s", cadre_error_message());
    }
    while (cadre_next(distributed, &batch) == CADRE_OK) {
        cadre_per_replica *output;
        cadre_tensor *sum = NULL;
        uint32_t step = seen.calls;
        assert_public_ok(cadre_run(it, twice, &seen, batch, 1, &output));
        assert_true(seen.right);
        assert_int_equal(seen.calls, step + 1);
        assert_true(step < 3);
        assert_public_ok(cadre_reduce(it, CADRE_SUM, output, CADRE_AXIS_NONE, &sum));
        training_assert_f32(sum, 1, &wanted[step]);
        cadre_tensor_release(sum);
        assert_public_ok(cadre_reduce(it, CADRE_MEAN, output, CADRE_AXIS_NONE, &sum));
        training_assert_f32(sum, 1, &wanted[step]);
        cadre_tensor_release(sum);
    }
    assert_int_equal(seen.calls, 3);
}

static void it_reduces_and_gathers_a_plain_tensor(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3};
    static const float sum = 6;
    static const int32_t axis = 0;
    cadre_strategy *it = cadre_strategy_current();
    cadre_tensor *tensor = training_f32(3, values);
    cadre_tensor *result = NULL;
    assert_public_ok(cadre_reduce_tensor(it, CADRE_SUM, tensor, NULL, 0, &result));
    training_assert_f32(result, 3, values);
    cadre_tensor_release(result);
    assert_public_ok(cadre_reduce_tensor(it, CADRE_SUM, tensor, &axis, 1, &result));
    training_assert_f32(result, 1, &sum);
    cadre_tensor_release(result);
    assert_public_ok(cadre_gather_tensor(it, tensor, 0, &result));
    training_assert_f32(result, 3, values);
    cadre_tensor_release(result);
    cadre_tensor_release(tensor);
}

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_assign_literal(replica, user, CADRE_ASSIGN_ADD, 1);
}

static void its_variables_are_regular(void **state)
{
    (void)state;
    cadre_strategy *it = cadre_strategy_current();
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(it, "v", CADRE_F32, 0, NULL, NULL, &variable));
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_REGULAR);
    assert_public_ok(cadre_run(it, add_one, variable, NULL, 0, NULL));
    assert_true(*(const float *)cadre_variable_read(NULL, variable) == 1);
    cadre_variable_release(variable);
}

/* ---- beside other strategies ---- */

static void it_is_not_the_only_one_that_attempts(void **state)
{
    (void)state;
    cadre_strategy *it = cadre_strategy_current();
    assert_public_error(cadre_barrier(), refused, ""); /* of no strategy */
    cadre_strategy *s = training_strategy(2);
    assert_public_ok(cadre_barrier()); /* of s */
    assert_ptr_equal(cadre_strategy_current(), it);
    assert_int_equal(cadre_world_size(), 1);
    assert_public_ok(cadre_scope_enter(s));
    assert_ptr_equal(cadre_strategy_current(), s);
    assert_null(cadre_replica_current());
    assert_public_error(cadre_scope_enter(it), refused, "mixing");
    assert_public_error(cadre_run(it, training_nothing, NULL, NULL, 0, NULL), refused, "mixing");
    cadre_variable *variable;
    assert_public_error(
        cadre_variable_create(it, "w", CADRE_F32, 0, NULL, NULL, &variable), refused, "mixing");
    assert_public_ok(cadre_scope_leave(s));
    assert_public_ok(cadre_scope_enter(it));
    assert_false(cadre_has_strategy());
    assert_public_ok(cadre_run(it, training_nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_run(s, training_nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_scope_leave(NULL)); /* which is the same */
    assert_public_ok(cadre_strategy_set(s));
    assert_null(cadre_replica_current());
    assert_public_ok(cadre_strategy_set(it));
    assert_false(cadre_has_strategy());
    cadre_strategy_release(s);
}

static void none_ends_it(void **state)
{
    (void)state;
    cadre_strategy *it = cadre_strategy_current();
    cadre_strategy_release(it);
    assert_non_null(strstr(cadre_error_message(), "ends with the process"));
    assert_int_equal(cadre_finish(it), 1);
    assert_ptr_equal(cadre_strategy_current(), it);
    assert_public_ok(cadre_run(it, training_nothing, NULL, NULL, 0, NULL));
}

static void *ask(void *user)
{
    cadre_strategy **seen = user;
    *seen = cadre_strategy_current();
    return NULL;
}

static void all_threads_see_one(void **state)
{
    (void)state;
    pthread_t threads[4];
    cadre_strategy *seen[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &seen[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_ptr_equal(seen[i], cadre_strategy_current());
    }
}

/* As many others as there may be beside it. */
static void it_takes_nobodys_place(void **state)
{
    (void)state;
    cadre_strategy *all[64];
    cadre_strategy *more;
    for (int i = 0; i < 64; i++) {
        all[i] = training_strategy(1);
    }
    assert_public_error(cadre_strategy_mirrored(1, &more), CADRE_RESOURCE_EXHAUSTED, "64");
    for (int i = 0; i < 64; i++) {
        cadre_strategy_release(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_none_before_cadre_init),
        cmocka_unit_test(it_is_one_replica),
        cmocka_unit_test(its_replica_context_is_that_of_replica_0),
        cmocka_unit_test(it_runs_distributes_and_reduces),
        cmocka_unit_test(it_reduces_and_gathers_a_plain_tensor),
        cmocka_unit_test(its_variables_are_regular),
        cmocka_unit_test(it_is_not_the_only_one_that_attempts),
        cmocka_unit_test(none_ends_it),
        cmocka_unit_test(all_threads_see_one),
        cmocka_unit_test(it_takes_nobodys_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
