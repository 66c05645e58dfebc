/* SPDX-License-Identifier: Apache-2.0
 * Steps in closures: cadre/cluster_coordinator.h. By hand all tasks are threads of this process:
 * here one server and one worker with two replicas. */
#include <stdlib.h>

#include "cadre/cluster_coordinator.h"
#include "documents.h"

static cadre_strategy *strategy; /* the chief's */

/* On each replica of a worker: its part of the sum of all rows, and the mean of all replicas'. */
static cadre_status average(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t *numbers = cadre_tensor_const_data(inputs[0]);
    float sum = 0;
    (void)user;
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        sum += (float)numbers[i];
    }
    CADRE_TRY(cadre_tensor_from_f32(sum / (float)cadre_replica_global_rows(replica), &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

/* On a worker: a step of its replicas on the next batch of its own dataset. */
static cadre_status step(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    const cadre_feed *consumption = user;
    cadre_strategy *own = cadre_strategy_current(); /* whose replicas are this worker's */
    cadre_per_replica *batch;
    cadre_per_replica *means;
    CADRE_TRY(cadre_closure_batch(closure, 0, *consumption, &batch));
    cadre_status status = cadre_run(own, average, NULL, batch, 1, &means);
    cadre_per_replica_release(batch);
    CADRE_TRY(status);
    outputs[0] = cadre_tensor_retain(cadre_local_results(means, 0)[0]);
    return CADRE_OK;
}

/* Batches for one replica each: the global batch is that of all of them. */
static cadre_status make_numbers(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    int64_t each = 0;
    (void)user;
    CADRE_TRY(cadre_per_replica_batch_size(context, 4, &each));
    *ret_data = cadre_dataset_batch(cadre_dataset_range(0, 8, 1), each, false);
    return CADRE_OK;
}

static void assert_steps(const char *function, const char *const wanted[], int steps)
{
    cadre_per_worker *numbers;
    OK(cadre_create_per_worker_dataset(strategy, "numbers", &numbers));
    const cadre_closure_argument argument = {.per_worker = numbers};
    for (int i = 0; i < steps; i++) {
        cadre_remote_value *value;
        cadre_tensor *mean;
        OK(cadre_schedule(strategy, function, &argument, 1, &value));
        OK(cadre_fetch(value, &mean, 1, NULL));
        assert_given(mean, wanted[i]);
        cadre_remote_value_release(value);
    }
    OK(cadre_schedule(strategy, function, &argument, 1, NULL));
    REFUSED(cadre_join(strategy), CADRE_OUT_OF_RANGE, "has no step"); /* unless the closure looks */
}

/* [0 1] and [2 3], then [4 5] and [6 7]. */
static void each_replica_takes_an_element(void **state)
{
    (void)state;
    static const char *const means[] = {"1.5", "5.5"};
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 2);
    assert_steps("step", means, 2);
}

/* [0] and [1], then [2] and [3], and so on. */
static void each_replica_takes_its_part_of_an_element(void **state)
{
    (void)state;
    static const char *const means[] = {"0.5", "2.5", "4.5", "6.5"};
    assert_steps("step_of_parts", means, 4);
}

/* What fails on a replica is the closure's error, and the worker goes on. */
static cadre_status fail_on_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_replica_id(replica) == 1 ? cadre_fail(CADRE_DATA_LOSS, "no") : CADRE_OK;
}

static cadre_status step_that_fails(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    return cadre_run(cadre_strategy_current(), fail_on_one, NULL, NULL, 0, NULL);
}

static void an_error_is_the_closures(void **state)
{
    (void)state;
    OK(cadre_schedule(strategy, "step_that_fails", NULL, 0, NULL));
    REFUSED(cadre_join(strategy), CADRE_DATA_LOSS, "replica 1: no");
    each_replica_takes_an_element(state);
}

static int begin(void **state)
{
    (void)state;
    return cadre_strategy_parameter_server(NULL, &strategy) == CADRE_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    cadre_strategy_release(strategy);
    return 0;
}

int main(void)
{
    static cadre_feed elements = CADRE_FEED_ELEMENTS;
    static cadre_feed parts = CADRE_FEED_PARTS;
    setenv("CADRE_WORKERS", "1", 1);
    setenv("CADRE_REPLICAS", "2", 1); /* as `cadre submit --replicas 2` does */
    unsetenv("TF_CONFIG");
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_function_register("step", step, &elements));
    CADRE_CHECK(cadre_function_register("step_of_parts", step, &parts));
    CADRE_CHECK(cadre_function_register("step_that_fails", step_that_fails, NULL));
    CADRE_CHECK(cadre_dataset_register("numbers", make_numbers, NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_replica_takes_an_element),
        cmocka_unit_test(each_replica_takes_its_part_of_an_element),
        cmocka_unit_test(an_error_is_the_closures),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
