/* SPDX-License-Identifier: Apache-2.0
 * Inside of a step: cadre/replica.h. The step itself: deploy/examples/tour/train_epoch.c. */
#include "documents.h"

static cadre_status ask(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    if (cadre_replica_current() != replica || cadre_replica_strategy(replica) != user) {
        return cadre_fail(CADRE_INTERNAL, "a replica function does not know where it is");
    }
    return cadre_replica_input_count(replica) == 2
               ? CADRE_OK
               : cadre_fail(CADRE_INTERNAL, "%u inputs", cadre_replica_input_count(replica));
}

static cadre_status two_numbers(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)context;
    (void)user;
    ret_value->count = 2;
    CADRE_TRY(cadre_tensor_from_i64(1, &ret_value->tensors[0]));
    return cadre_tensor_from_i64(2, &ret_value->tensors[1]);
}

/* A function that a replica function calls finds the replica, and its strategy, by itself. Outside
 * of a step there is none in a strategy's scope. */
static void who_is_asked_for_by_functions(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *values;
    OK(cadre_values_from_function(strategy, two_numbers, NULL, &values));
    OK(cadre_run(strategy, ask, strategy, values, 0, NULL));
    OK(cadre_scope_enter(strategy));
    assert_null(cadre_replica_current());
    OK(cadre_scope_leave(strategy));
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

/* --- merge calls --- */

/* Called once, with what all replicas gave. */
static cadre_status larger(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    cadre_tensor *const *given = cadre_local_results(inputs[0], 0);
    const int64_t *first = cadre_tensor_const_data(given[0]);
    const int64_t *second = cadre_tensor_const_data(given[1]);
    ++*(int *)user;
    cadre_tensor *both[] = {given[*second > *first ? 1 : 0], given[*second > *first ? 1 : 0]};
    return cadre_values_from_tensors(strategy, both, 2, &outputs[0]);
}

static cadre_status meet(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *mine;
    (void)inputs;
    CADRE_TRY(cadre_tensor_from_i64(10 + cadre_replica_id(replica), &mine));
    cadre_status status = cadre_merge_call(replica, larger, user, &mine, 1, 1, outputs);
    cadre_tensor_release(mine);
    return status;
}

/* In the middle of a step the replicas of a task meet: one function sees what all of them gave, in
 * cross-replica context, and each goes on with its result. */
static void replicas_meet_in_a_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *output;
    int calls = 0;
    OK(cadre_run(strategy, meet, &calls, NULL, 1, &output));
    assert_int_equal(calls, 1);
    assert_replicas(output, 0, "11 11");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_asked_for_by_functions),
        cmocka_unit_test(replicas_meet_in_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
