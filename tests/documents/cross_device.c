/* SPDX-License-Identifier: Apache-2.0
 * How values of several devices become one, and how one comes to several: cadre/cross_device.h. */
#include "documents.h"

static cadre_per_replica *value_of(cadre_strategy *strategy, float first, float second)
{
    cadre_tensor *tensors[] = {floats(first), floats(second)};
    cadre_per_replica *value;
    OK(cadre_values_from_tensors(strategy, tensors, 2, &value));
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return value;
}

/* A value is reduced to where it is needed: to all replicas' devices, or to those that are named.
 */
static void a_value_is_reduced_to_devices(void **state)
{
    (void)state;
    static const char *const second[] = {"CPU:1"};
    const cadre_destinations everywhere = {.variable = NULL};
    const cadre_destinations there = {.devices = second, .device_count = 1};
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *value = value_of(strategy, 1, 2);
    cadre_per_replica *result;
    OK(cadre_reduce_to(strategy, CADRE_SUM, value, &everywhere, &result));
    assert_replicas(result, 0, "[3] [3]");
    cadre_per_replica_release(result);
    OK(cadre_reduce_to(strategy, CADRE_SUM, value, &there, &result));
    assert_replicas(result, 0, "[3]"); /* once for each destination */
    cadre_per_replica_release(result);
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

/* Several at once, as an optimizer does with its gradients. */
static void several_values_are_reduced(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *given[] = {value_of(strategy, 1, 2), value_of(strategy, 4, 8)};
    const cadre_per_replica *values[] = {given[0], given[1]};
    cadre_per_replica *results[2];
    OK(cadre_batch_reduce_to(strategy, CADRE_MEAN, values, NULL, 2, results));
    assert_replicas(results[0], 0, "[1.5] [1.5]");
    assert_replicas(results[1], 0, "[6] [6]");
    for (int i = 0; i < 2; i++) {
        cadre_per_replica_release(results[i]);
        cadre_per_replica_release(given[i]);
    }
    cadre_strategy_release(strategy);
}

/* One tensor to all: where a variable has its components. */
static void a_tensor_is_brought_to_all(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const cadre_destinations there = {.variable = training_variable(strategy)};
    cadre_tensor *tensor = floats(7);
    cadre_per_replica *result;
    OK(cadre_broadcast_to(strategy, tensor, &there, &result));
    assert_replicas(result, 0, "[7] [7]");
    cadre_per_replica_release(result);
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

/* How it is done follows from the devices; a program may choose another way. */
static void the_way_is_chosen(void **state)
{
    (void)state;
    const cadre_cross_device_ops one = {.kind = CADRE_CROSS_DEVICE_ONE_DEVICE};
    cadre_cross_device_ops ops;
    cadre_strategy *strategy = training_strategy(2);
    OK(cadre_strategy_cross_device_ops(strategy, CADRE_F32, &ops));
    assert_int_equal(ops.kind, CADRE_CROSS_DEVICE_COLLECTIVE);
    OK(cadre_strategy_set_cross_device_ops(strategy, &one));
    OK(cadre_strategy_cross_device_ops(strategy, CADRE_F32, &ops));
    assert_int_equal(ops.kind, CADRE_CROSS_DEVICE_ONE_DEVICE);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_reduced_to_devices),
        cmocka_unit_test(several_values_are_reduced),
        cmocka_unit_test(a_tensor_is_brought_to_all),
        cmocka_unit_test(the_way_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
