/* SPDX-License-Identifier: Apache-2.0
 * Updates of what belongs to no one variable: once for each device that variables are on. */
#include <stdlib.h>
#include <string.h>

#include "training.h"

static cadre_variable *one(cadre_strategy *strategy, const char *name)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1}};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &variable));
    return variable;
}

/* What belongs to no one variable: how often it was called is added to two of them, and the input
 * of the device to one; the output is its device's place in the strategy's list. */
struct non_slot {
    cadre_strategy *strategy;
    cadre_variable *count;
    cadre_variable *sum;
    cadre_status status; /* that it returns */
};

static cadre_status write_both(
    const char *device, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    const struct non_slot *own = user;
    const char *const *devices;
    uint32_t count;
    int64_t at = 0;
    CADRE_TRY(cadre_strategy_devices(own->strategy, CADRE_PARAMETER_DEVICES, &devices, &count));
    while ((uint32_t)at < count && strcmp(devices[at], device) != 0) {
        at++;
    }
    CADRE_TRY(cadre_variable_assign_literal(NULL, own->count, CADRE_ASSIGN_ADD, 1));
    CADRE_TRY(cadre_variable_assign(NULL, own->sum, CADRE_ASSIGN_ADD, inputs[0]));
    return own->status == CADRE_OK ? cadre_tensor_from_i64(at, ret_output)
                                   : cadre_fail(own->status, "on purpose");
}

static cadre_status one_and_id(const cadre_value_context *context, cadre_element *ret, void *user)
{
    (void)user;
    ret->count = 1;
    return cadre_tensor_from_f32(1 + (float)context->replica_id_in_sync_group, &ret->tensors[0]);
}

static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct non_slot *own = user;
    CADRE_TRY(cadre_tensor_from_data(
        CADRE_F32, 0, NULL, cadre_variable_read(replica, own->count), &outputs[0]));
    return cadre_tensor_from_data(
        CADRE_F32, 0, NULL, cadre_variable_read(replica, own->sum), &outputs[1]);
}

static float number_at(const cadre_per_replica *value, uint32_t replica)
{
    return *(const float *)cadre_tensor_const_data(cadre_local_results(value, 0)[replica]);
}

static cadre_status merge_non_slot(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)outputs;
    return cadre_update_non_slot(strategy, write_both, user, inputs[0], NULL);
}

static cadre_status call_merge(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    return cadre_merge_call(replica, merge_non_slot, user, inputs, 1, 0, NULL);
}

/* Before the first step, as a step, and inside a merge call. */
static void non_slot_updates_go_over_the_devices(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct non_slot own = {
        .strategy = strategy, .count = one(strategy, "count"), .sum = one(strategy, "sum")};
    cadre_per_replica *values;
    cadre_per_replica *outputs[2];
    assert_public_ok(cadre_values_from_function(strategy, one_and_id, NULL, &values));
    for (int calls = 1; calls <= 3; calls++) {
        if (calls < 3) {
            assert_public_ok(
                cadre_update_non_slot(strategy, write_both, &own, values, &outputs[0]));
            for (uint32_t i = 0; i < 2; i++) {
                const cadre_tensor *place = cadre_local_results(outputs[0], 0)[i];
                assert_int_equal(*(const int64_t *)cadre_tensor_const_data(place), i);
            }
            cadre_per_replica_release(outputs[0]);
        } else {
            assert_public_ok(cadre_run(strategy, call_merge, &own, values, 0, NULL));
        }
        uint64_t position = cadre_strategy_position(strategy);
        own.status = CADRE_DATA_LOSS; /* and then nothing is written */
        assert_public_error(cadre_update_non_slot(strategy, write_both, &own, values, NULL),
            CADRE_DATA_LOSS, "device:CPU:0: on purpose");
        own.status = CADRE_OK;
        assert_int_equal(cadre_strategy_position(strategy), position);
        assert_public_ok(cadre_run(strategy, read_own, &own, NULL, 2, outputs));
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(number_at(outputs[0], i) == 1 + (float)calls);
            assert_true(number_at(outputs[1], i) == 1 + (float)calls * (1 + (float)i));
        }
    }
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

static cadre_status non_slot_in_a_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_update_non_slot(cadre_replica_strategy(replica), write_both, user, NULL, NULL);
}

static cadre_status says_nothing(
    const char *device, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)device;
    (void)inputs;
    (void)ret_output;
    return user == NULL ? CADRE_OK : CADRE_INTERNAL;
}

static void non_slot_updates_are_checked(void **state)
{
    (void)state;
    static const char *const devices[] = {"CPU:0", "CPU:1"};
    cadre_strategy_release(training_strategy(1)); /* initialises */
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_central_storage(devices, 2, "CPU:0", &strategy));
    cadre_per_replica *values;
    cadre_per_replica *outputs = NULL;
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    assert_public_ok(cadre_values_from_function(strategy, one_and_id, NULL, &values));
    assert_public_error(
        cadre_update_non_slot(NULL, says_nothing, NULL, NULL, NULL), bad, "'strategy'");
    assert_public_error(cadre_update_non_slot(strategy, NULL, NULL, NULL, NULL), bad, "'function'");
    assert_public_error(cadre_update_non_slot(strategy, says_nothing, NULL, values, NULL), bad,
        "inputs of 2 replicas, and it is called for 1 device;");
    assert_public_error(
        cadre_update_non_slot(strategy, says_nothing, NULL, NULL, &outputs), bad, "left no output");
    assert_null(outputs);
    assert_public_error(cadre_update_non_slot(strategy, says_nothing, &outputs, NULL, NULL),
        CADRE_INTERNAL, "left no message");
    assert_public_error(cadre_run(strategy, non_slot_in_a_replica, NULL, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_merge_call");
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
    assert_public_error(cadre_update_non_slot(strategy, says_nothing, NULL, NULL, NULL),
        CADRE_FAILED_PRECONDITION, "had ended");
}

int main(void)
{
    setenv("CADRE_VERIFY_STATE", "off", 1); /* components are meant to differ here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(non_slot_updates_go_over_the_devices),
        cmocka_unit_test(non_slot_updates_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
