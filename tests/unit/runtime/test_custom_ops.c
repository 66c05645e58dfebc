/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations of the program's own: when its functions are called, with what, and what
 * they must leave. */
#include <stdlib.h>
#include <string.h>

#include "training.h"

#define HERE "/job:localhost/replica:0/task:0/device:"

/* What the functions below saw, and what they are to do wrong. */
enum fault { NONE, FAILS, NOTHING, SHAPE, TYPE, RELEASED, CALLS_BACK };
struct seen {
    uint32_t reduced;
    uint32_t batches;
    uint32_t batched; /* values in them */
    uint32_t broadcast;
    uint32_t devices; /* of the last value */
    bool named_right;
    enum fault fault;
    cadre_strategy *strategy;
};

/* The one that shows that it was not ours: the largest, at each place a copy of its own. */
static cadre_status largest(const cadre_cross_device_value *value, cadre_reduce_op op)
{
    float most = *(const float *)cadre_tensor_const_data(value->tensors[0]);
    for (uint32_t i = 1; i < value->tensor_count; i++) {
        const float *is = cadre_tensor_const_data(value->tensors[i]);
        most = *is > most ? *is : most;
    }
    most = op == CADRE_MEAN ? -most : most;
    const int64_t dims[1] = {1};
    for (uint32_t i = 0; i < value->device_count; i++) {
        CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, &most, &value->ret_tensors[i]));
    }
    return CADRE_OK;
}

static cadre_status go_wrong(const struct seen *seen, const cadre_cross_device_value *value)
{
    uint32_t last = value->device_count - 1;
    const int64_t two[1] = {2};
    cadre_per_replica *result;
    cadre_tensor *left = value->ret_tensors[last];
    switch (seen->fault) {
    case FAILS:
        return cadre_fail(CADRE_DATA_LOSS, "on purpose");
    case NOTHING:
        cadre_tensor_release(left);
        value->ret_tensors[last] = NULL;
        return CADRE_OK;
    case SHAPE:
        cadre_tensor_release(left);
        value->ret_tensors[last] = NULL;
        return cadre_tensor_create(CADRE_F32, 1, two, &value->ret_tensors[last]);
    case TYPE:
        cadre_tensor_release(left);
        value->ret_tensors[last] = NULL;
        return cadre_tensor_create(CADRE_I32, 1, (const int64_t[]){1}, &value->ret_tensors[last]);
    case RELEASED:
        cadre_tensor_release(left);
        return CADRE_OK;
    case CALLS_BACK:
        return cadre_broadcast_to(seen->strategy, value->tensors[0], NULL, &result);
    default:
        return CADRE_OK;
    }
}

static void note(struct seen *seen, const cadre_cross_device_value *value)
{
    seen->devices = value->device_count;
    seen->named_right = strncmp(value->devices[0], HERE, strlen(HERE)) == 0;
}

static cadre_status own_reduce(
    cadre_reduce_op op, const cadre_cross_device_value *value, void *user)
{
    struct seen *seen = user;
    seen->reduced++;
    note(seen, value);
    CADRE_TRY(largest(value, op));
    return go_wrong(seen, value);
}

static cadre_status own_batch(
    cadre_reduce_op op, const cadre_cross_device_value values[], uint32_t count, void *user)
{
    struct seen *seen = user;
    seen->batches++;
    seen->batched += count;
    for (uint32_t i = 0; i < count; i++) {
        note(seen, &values[i]);
        CADRE_TRY(largest(&values[i], op));
    }
    return go_wrong(seen, &values[count - 1]);
}

static cadre_status own_broadcast(const cadre_cross_device_value *value, void *user)
{
    struct seen *seen = user;
    seen->broadcast++;
    note(seen, value);
    for (uint32_t i = 0; i < value->device_count; i++) {
        CADRE_TRY(cadre_tensor_copy(value->tensors[0], &value->ret_tensors[i]));
    }
    return go_wrong(seen, value);
}

static void use_own(cadre_strategy *strategy, struct seen *seen, bool all)
{
    *seen = (struct seen){.strategy = strategy};
    assert_public_ok(cadre_strategy_set_cross_device_ops(
        strategy, &(cadre_cross_device_ops){.kind = CADRE_CROSS_DEVICE_OWN,
                      .own = {.reduce = own_reduce,
                          .batch_reduce = all ? own_batch : NULL,
                          .broadcast = all ? own_broadcast : NULL,
                          .user = seen}}));
}

/* 1, 2, ... and `more`, of as many replicas. */
static cadre_per_replica *numbers(cadre_strategy *strategy, float more)
{
    uint32_t count = cadre_strategy_local_replicas(strategy);
    cadre_tensor *tensors[8];
    cadre_per_replica *value;
    for (uint32_t i = 0; i < count; i++) {
        const float number = more + 1 + (float)i;
        tensors[i] = training_f32(1, &number);
    }
    assert_public_ok(cadre_values_from_tensors(strategy, tensors, count, &value));
    for (uint32_t i = 0; i < count; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return value;
}

static float number_at(const cadre_per_replica *value, uint32_t component, uint32_t place)
{
    return *(const float *)cadre_tensor_const_data(cadre_local_results(value, component)[place]);
}

/* --- when they are called --- */

static void one_value_is_reduced(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    struct seen seen;
    cadre_per_replica *value = numbers(strategy, 0);
    cadre_per_replica *result;
    cadre_tensor *total;
    use_own(strategy, &seen, true);
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
    assert_int_equal(seen.reduced, 1);
    assert_int_equal(seen.devices, 3);
    assert_true(seen.named_right);
    assert_int_equal(cadre_per_replica_count(result), 3);
    assert_true(number_at(result, 0, 0) == 3 && number_at(result, 0, 2) == 3);
    assert_ptr_not_equal(cadre_local_results(result, 0)[0], cadre_local_results(result, 0)[1]);
    cadre_per_replica_release(result);
    const char *many[20];
    for (int i = 0; i < 20; i++) {
        many[i] = i % 2 == 0 ? "CPU:2" : "/cpu:0";
    }
    assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value,
        &(cadre_destinations){.devices = many, .device_count = 20}, &result));
    assert_int_equal(seen.devices, 20);
    assert_true(number_at(result, 0, 19) == -3);
    cadre_per_replica_release(result);
    cadre_variable *variable = training_variable(strategy);
    assert_public_ok(cadre_reduce_to(
        strategy, CADRE_SUM, value, &(cadre_destinations){.variable = variable}, &result));
    assert_int_equal(seen.devices, 3);
    cadre_per_replica_release(result);
    /* The mesh's. */
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &total));
    assert_true(*(const float *)cadre_tensor_const_data(total) == 6);
    assert_int_equal(seen.reduced, 3);
    cadre_tensor_release(total);
    /* What was set is returned, and can be set again; and there are others again. */
    cadre_cross_device_ops ops;
    assert_public_ok(cadre_strategy_cross_device_ops(strategy, CADRE_F32, &ops));
    assert_int_equal(ops.kind, CADRE_CROSS_DEVICE_OWN);
    assert_true(ops.own.reduce == own_reduce && ops.own.user == &seen);
    assert_public_ok(cadre_strategy_set_cross_device_ops(strategy, &ops));
    assert_public_ok(cadre_strategy_set_cross_device_ops(strategy, NULL));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
    assert_true(number_at(result, 0, 0) == 6);
    assert_int_equal(seen.reduced, 3);
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

/* Several values, or components, at once; with and without a function for it; a mirrored value is
 * not combined. */
static void batches_go_at_once(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct seen seen;
    cadre_tensor *same = training_f32(1, (const float[]){7});
    cadre_per_replica *values[3] = {numbers(strategy, 0), NULL, numbers(strategy, 10)};
    cadre_per_replica *results[3];
    assert_public_ok(
        cadre_values_from_tensors(strategy, (cadre_tensor *const[]){same, same}, 2, &values[1]));
    for (int all = 0; all < 2; all++) {
        use_own(strategy, &seen, all == 1);
        assert_public_ok(cadre_batch_reduce_to(
            strategy, CADRE_MEAN, (const cadre_per_replica *const *)values, NULL, 3, results));
        assert_int_equal(seen.reduced, all == 1 ? 0 : 2);
        assert_int_equal(seen.batches, all);
        assert_int_equal(seen.batched, 2 * all);
        assert_true(number_at(results[0], 0, 1) == -2);
        assert_ptr_equal(cadre_local_results(results[1], 0)[1], same);
        assert_true(number_at(results[2], 0, 0) == -12);
        for (int i = 0; i < 3; i++) {
            cadre_per_replica_release(results[i]);
        }
        const cadre_argument arguments[] = {{.values = values[0]}, {.values = values[2]}};
        cadre_per_replica *joined;
        assert_public_ok(cadre_values_join(strategy, arguments, 2, &joined));
        assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, joined, NULL, &results[0]));
        assert_int_equal(seen.batched, 4 * all);
        assert_true(number_at(results[0], 0, 0) == 2 && number_at(results[0], 1, 1) == 12);
        cadre_per_replica_release(results[0]);
        cadre_per_replica_release(joined);
        assert_public_ok(cadre_broadcast_to(strategy, same, NULL, &results[0]));
        assert_int_equal(seen.broadcast, all);
        assert_int_equal(cadre_per_replica_is_plain(results[0], 0), all == 0);
        assert_true(number_at(results[0], 0, 1) == 7);
        cadre_per_replica_release(results[0]);
    }
    for (int i = 0; i < 3; i++) {
        cadre_per_replica_release(values[i]);
    }
    cadre_tensor_release(same);
    cadre_strategy_release(strategy);
}

static void one_replica_has_nothing_to_combine(void **state)
{
    (void)state;
    cadre_strategy_release(training_strategy(1)); /* initialises */
    cadre_strategy *strategy;
    struct seen seen;
    cadre_per_replica *result;
    const char *elsewhere = "CPU:0";
    assert_public_ok(cadre_strategy_one_device("CPU:1", &strategy));
    cadre_per_replica *value = numbers(strategy, 0);
    use_own(strategy, &seen, true);
    assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value, NULL, &result));
    assert_int_equal(seen.reduced, 0);
    assert_true(number_at(result, 0, 0) == 1);
    cadre_per_replica_release(result);
    assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value,
        &(cadre_destinations){.devices = &elsewhere, .device_count = 1}, &result));
    assert_int_equal(seen.reduced, 1);
    assert_true(number_at(result, 0, 0) == -1);
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

static cadre_status merged(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)user;
    return cadre_reduce_to(strategy, CADRE_SUM, inputs[0], NULL, &outputs[0]);
}

static cadre_status reduce_in_a_merge_call(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    return cadre_merge_call(replica, merged, user, inputs, 1, 1, outputs);
}

static void merge_calls_use_them_too(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct seen seen;
    cadre_per_replica *value = numbers(strategy, 0);
    cadre_per_replica *output;
    use_own(strategy, &seen, true);
    assert_public_ok(cadre_run(strategy, reduce_in_a_merge_call, NULL, value, 1, &output));
    assert_int_equal(seen.reduced, 1);
    assert_true(number_at(output, 0, 1) == 2);
    seen.fault = CALLS_BACK;
    assert_public_error(cadre_run(strategy, reduce_in_a_merge_call, NULL, value, 1, &output),
        CADRE_FAILED_PRECONDITION, "in a cross-device function of the program's own");
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

/* --- what they do wrong --- */

static const struct {
    enum fault fault;
    cadre_status status;
    const char *part;
} faults[] = {
    {FAILS, CADRE_DATA_LOSS, "on purpose"},
    {NOTHING, CADRE_INVALID_ARGUMENT, "left no tensor for place 1 of 2, " HERE "CPU:1"},
    {SHAPE, CADRE_INVALID_ARGUMENT, "left f32 [2] for " HERE "CPU:1, where f32 [1]"},
    {TYPE, CADRE_INVALID_ARGUMENT, "left i32 [1]"},
    {RELEASED, CADRE_INVALID_ARGUMENT, "released a result"},
    {CALLS_BACK, CADRE_FAILED_PRECONDITION, "had not returned"},
};

static void what_they_leave_is_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct seen seen;
    cadre_per_replica *values[2] = {numbers(strategy, 0), numbers(strategy, 1)};
    cadre_per_replica *results[2];
    use_own(strategy, &seen, true);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        seen.fault = faults[i].fault;
        assert_public_error(cadre_reduce_to(strategy, CADRE_SUM, values[0], NULL, &results[0]),
            faults[i].status, faults[i].part);
        assert_null(results[0]);
        assert_public_error(cadre_batch_reduce_to(strategy, CADRE_SUM,
                                (const cadre_per_replica *const *)values, NULL, 2, results),
            faults[i].status, faults[i].part);
        assert_null(results[0]);
        assert_null(results[1]);
        assert_public_error(
            cadre_broadcast_to(strategy, cadre_local_results(values[0], 0)[0], NULL, &results[0]),
            faults[i].status, faults[i].part);
        assert_null(results[0]);
    }
    seen.fault = NONE;
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, values[0], NULL, &results[0]));
    cadre_per_replica_release(results[0]);
    cadre_per_replica_release(values[0]);
    cadre_per_replica_release(values[1]);
    cadre_strategy_release(strategy);
}

/* The same tensor everywhere, with one reference or none of its own. */
static cadre_status give_the_first(
    cadre_reduce_op op, const cadre_cross_device_value *value, void *user)
{
    (void)op;
    (void)user;
    for (uint32_t i = 0; i < value->device_count; i++) {
        value->ret_tensors[i] = value->tensors[0];
    }
    return CADRE_OK;
}

static void references_that_were_forgotten_are_added(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *value = numbers(strategy, 0);
    cadre_per_replica *result;
    assert_public_ok(cadre_strategy_set_cross_device_ops(
        strategy, &(cadre_cross_device_ops){
                      .kind = CADRE_CROSS_DEVICE_OWN, .own = {.reduce = give_the_first}}));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, NULL, &result));
    assert_true(number_at(result, 0, 1) == 1);
    cadre_per_replica_release(result);
    assert_true(number_at(value, 0, 0) == 1);
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

/* The type that a mean of integers has. */
static cadre_status mean_of_integers(
    cadre_reduce_op op, const cadre_cross_device_value *value, void *user)
{
    (void)op;
    return cadre_tensor_create(
        *(const cadre_dtype *)user, 1, (const int64_t[]){1}, &value->ret_tensors[0]);
}

static void means_of_integers_are_f64(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_dtype dtype = CADRE_I32;
    cadre_tensor *tensors[2] = {
        training_i32(1, (const int32_t[]){1}), training_i32(1, (const int32_t[]){2})};
    cadre_per_replica *value;
    cadre_per_replica *result;
    const char *one = "CPU:0";
    const cadre_destinations to = {.devices = &one, .device_count = 1};
    assert_public_ok(cadre_values_from_tensors(strategy, tensors, 2, &value));
    assert_public_ok(cadre_strategy_set_cross_device_ops(
        strategy, &(cadre_cross_device_ops){.kind = CADRE_CROSS_DEVICE_OWN,
                      .own = {.reduce = mean_of_integers, .user = &dtype}}));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, value, &to, &result));
    cadre_per_replica_release(result);
    assert_public_error(cadre_reduce_to(strategy, CADRE_MEAN, value, &to, &result),
        CADRE_INVALID_ARGUMENT, "where f64 [1] was to come of it");
    dtype = CADRE_F64;
    assert_public_ok(cadre_reduce_to(strategy, CADRE_MEAN, value, &to, &result));
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    cadre_strategy_release(strategy);
}

static void tables_are_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    cadre_cross_device_ops ops = {.kind = CADRE_CROSS_DEVICE_OWN};
    assert_public_error(
        cadre_strategy_set_cross_device_ops(strategy, &ops), bad, "without a function");
    ops.own.broadcast = own_broadcast;
    assert_public_error(
        cadre_strategy_set_cross_device_ops(strategy, &ops), bad, "without a function");
    ops.kind = CADRE_CROSS_DEVICE_ONE_DEVICE;
    assert_public_error(cadre_strategy_set_cross_device_ops(strategy, &ops), bad,
        "functions were given with kind 1");
    ops.kind = (cadre_cross_device_kind)(CADRE_CROSS_DEVICE_OWN + 1);
    assert_public_error(
        cadre_strategy_set_cross_device_ops(strategy, &ops), bad, "5 is not a kind");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_is_reduced),
        cmocka_unit_test(batches_go_at_once),
        cmocka_unit_test(one_replica_has_nothing_to_combine),
        cmocka_unit_test(merge_calls_use_them_too),
        cmocka_unit_test(what_they_leave_is_checked),
        cmocka_unit_test(references_that_were_forgotten_are_added),
        cmocka_unit_test(means_of_integers_are_f64),
        cmocka_unit_test(tables_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
