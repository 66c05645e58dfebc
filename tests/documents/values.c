/* SPDX-License-Identifier: Apache-2.0
 * Values of replicas, and what they come to: cadre/values.h, cadre/reduce.h. */
#include "documents.h"

static cadre_per_replica *value_of(
    cadre_strategy *strategy, cadre_tensor *first, cadre_tensor *second)
{
    cadre_tensor *tensors[] = {first, second};
    cadre_per_replica *value;
    OK(cadre_values_from_tensors(strategy, tensors, 2, &value));
    cadre_tensor_release(first);
    cadre_tensor_release(second);
    return value;
}

/* A value is made of a tensor for each replica; several are joined into one of several components,
 * as a batch has them. */
static void values_are_made_of_tensors(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *numbers = value_of(strategy, integers(1), integers(2));
    cadre_tensor *rate = floats(0.5);
    const cadre_argument arguments[] = {{.values = numbers}, {.tensor = rate}};
    cadre_per_replica *all;
    OK(cadre_values_join(strategy, arguments, 2, &all));
    assert_int_equal(cadre_per_replica_components(all), 2);
    assert_replicas(all, 0, "[1] [2]");
    assert_replicas(all, 1, "[0.5] [0.5]");
    assert_false(cadre_per_replica_is_plain(all, 0));
    assert_true(cadre_per_replica_is_plain(all, 1)); /* the very same tensor on all */
    cadre_per_replica_release(all);
    cadre_tensor_release(rate);
    cadre_per_replica_release(numbers);
    cadre_strategy_release(strategy);
}

/* Printed, it looks as TensorFlow's documents show it. */
static void values_are_printed(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *value = value_of(strategy, floats(0), floats(1));
    assert_printed(cadre_value_print(value, file),
        "PerReplica:{\n"
        "  0: cadre_tensor([0.], shape=(1,), dtype=float32),\n"
        "  1: cadre_tensor([1.], shape=(1,), dtype=float32)\n"
        "}\n");
    cadre_per_replica_release(value);
    cadre_strategy_release(strategy);
}

/* All components are reduced at once, and along several axes: here all numbers of each. */
static void all_components_are_reduced(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *few = value_of(strategy, rows(2, floats(1, 2)), rows(2, floats(3, 6)));
    cadre_per_replica *many =
        value_of(strategy, rows(2, floats(1, 1, 1, 1)), rows(2, floats(3, 3)));
    const cadre_argument arguments[] = {{.values = few}, {.values = many}};
    const int32_t axes[] = {0, 1};
    cadre_per_replica *both;
    cadre_tensor *results[2];
    OK(cadre_values_join(strategy, arguments, 2, &both));
    OK(cadre_reduce_values(strategy, CADRE_SUM, both, axes, 2, results));
    assert_given(results[0], "12");
    assert_given(results[1], "10");
    OK(cadre_reduce_values(strategy, CADRE_MEAN, both, axes, 2, results));
    assert_given(results[0], "3");
    assert_given(results[1], "1.66667"); /* 10 of 6 numbers, however they are spread */
    cadre_per_replica_release(both);
    cadre_per_replica_release(many);
    cadre_per_replica_release(few);
    cadre_strategy_release(strategy);
}

/* A tensor that is not of replicas is the same for all of them: its mean is itself, and to sum it
 * is a mistake. */
static void a_plain_tensor_is_reduced(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensor = floats(1, 3);
    cadre_tensor *result;
    const int32_t axis = 0;
    OK(cadre_reduce_tensor(strategy, CADRE_MEAN, tensor, NULL, 0, &result));
    assert_given(result, "[1 3]");
    OK(cadre_reduce_tensor(strategy, CADRE_MEAN, tensor, &axis, 1, &result));
    assert_given(result, "2");
    REFUSED(cadre_reduce_tensor(strategy, CADRE_SUM, tensor, NULL, 0, &result),
        CADRE_INVALID_ARGUMENT, "");
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

/* Nor is it gathered: in a job of one task it is what all replicas have, once. */
static void a_plain_tensor_is_gathered(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensor = floats(1, 3);
    cadre_tensor *result;
    OK(cadre_gather_tensor(strategy, tensor, 0, &result));
    assert_given(result, "[1 3]");
    REFUSED(cadre_gather_tensor(strategy, tensor, 1, &result), CADRE_INVALID_ARGUMENT, "axis 1");
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_made_of_tensors),
        cmocka_unit_test(values_are_printed),
        cmocka_unit_test(all_components_are_reduced),
        cmocka_unit_test(a_plain_tensor_is_reduced),
        cmocka_unit_test(a_plain_tensor_is_gathered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
