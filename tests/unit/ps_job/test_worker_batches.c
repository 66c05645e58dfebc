/* SPDX-License-Identifier: Apache-2.0
 * Workers' own datasets as batches of their replicas. */
#include <string.h>

#include "cadre/program.h"
#include "cadre/replica.h"
#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "tests/lib/test.h"
#include "tests/unit/ps_job/worker_calls.h"

static cadre_status make_numbers(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    if (context->num_replicas_in_sync != REPLICAS || context->num_input_pipelines != 1) {
        return cadre_fail(CADRE_INTERNAL, "the pipeline is for others");
    }
    *ret_data = cadre_dataset_batch(cadre_dataset_range(0, 7, 1), 2, false);
    return CADRE_OK;
}

/* Rows, their sum, and the rows of all. */
static cadre_status count_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)user;
    const int64_t *values = cadre_tensor_const_data(inputs[0]);
    float sums[3] = {(float)cadre_tensor_rows(inputs[0]), 0, 0};
    const int64_t dims[] = {3};
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        sums[1] += (float)values[i];
    }
    sums[2] = (float)cadre_replica_global_rows(replica);
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 1, dims, &outputs[0]));
    memcpy(cadre_tensor_data(outputs[0]), sums, sizeof sums);
    return CADRE_OK;
}

/* All steps of a dataset: for each {rows, sum, rows of all} of each replica. */
static cadre_status read_all(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_strategy *strategy = cadre_strategy_current();
    const cadre_feed *consumption = user;
    cadre_per_replica *batch = NULL;
    cadre_per_replica *counts;
    float seen[6 * REPLICAS * 3];
    int64_t steps = 0;
    cadre_status status;
    while (
        (status = cadre_closure_batch(closure, 0, *consumption, &batch)) == CADRE_OK && steps < 6) {
        status = cadre_run(strategy, count_rows, NULL, batch, 1, &counts);
        cadre_per_replica_release(batch);
        CADRE_TRY(status);
        for (uint32_t i = 0; i < REPLICAS; i++) {
            memcpy(seen + (steps * REPLICAS + i) * 3,
                cadre_tensor_const_data(cadre_local_results(counts, 0)[i]), 3 * sizeof(float));
        }
        steps++;
    }
    if (status != CADRE_OUT_OF_RANGE ||
        cadre_closure_batch(closure, 0, *consumption, &batch) != CADRE_OUT_OF_RANGE) {
        return cadre_fail(CADRE_INTERNAL, "it does not stay at its end: %s", cadre_error_message());
    }
    const int64_t dims[] = {steps, REPLICAS, 3};
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 3, dims, &outputs[0]));
    memcpy(cadre_tensor_data(outputs[0]), seen, (size_t)steps * REPLICAS * 3 * sizeof(float));
    return CADRE_OK;
}

static void check_read(const char *function, const float *wanted, int64_t steps)
{
    cadre_per_worker *numbers = NULL;
    cadre_tensor *output = NULL;
    assert_int_equal(cadre_create_per_worker_dataset(chief, "numbers", &numbers), CADRE_OK);
    const cadre_closure_argument argument = {.per_worker = numbers};
    if (call(function, &argument, 1, &output) != CADRE_OK) {
        fail_msg("%s: %s", function, cadre_error_message());
    }
    assert_int_equal(cadre_tensor_dims(output)[0], steps);
    assert_memory_equal(
        cadre_tensor_const_data(output), wanted, (size_t)steps * REPLICAS * 3 * sizeof(float));
    cadre_tensor_release(output);
}

static void each_replica_gets_an_element(void **state)
{
    (void)state;
    static const float wanted[] = {2, 1, 6, 2, 5, 6, 2, 9, 6, /**/ 1, 6, 1, 0, 0, 1, 0, 0, 1};
    check_read("read_elements", wanted, 2);
}

static void each_replica_gets_its_part_of_an_element(void **state)
{
    (void)state;
    static const float wanted[] = {1, 0, 2, 1, 1, 2, 0, 0, 2, /**/ 1, 2, 2, 1, 3, 2, 0, 0, 2,
        /**/ 1, 4, 2, 1, 5, 2, 0, 0, 2, /**/ 1, 6, 1, 0, 0, 1, 0, 0, 1};
    check_read("read_parts", wanted, 4);
}

/* In one way or the other, and never by one of the replicas. */
static cadre_status take_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_per_replica *batch;
    (void)replica;
    (void)inputs;
    (void)outputs;
    return cadre_closure_batch(user, 0, CADRE_FEED_ELEMENTS, &batch);
}

static cadre_status read_wrongly(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_strategy *strategy = cadre_strategy_current();
    cadre_per_replica *first = NULL;
    cadre_per_replica *batch = NULL;
    cadre_tensor *component = NULL;
    (void)outputs;
    (void)user;
    bool right = expected_text(cadre_closure_batch(closure, 0, (cadre_feed)7, &batch),
                     CADRE_INVALID_ARGUMENT, "7") &&
                 expected_text(cadre_closure_batch(closure, 0, CADRE_FEED_PARTS, NULL),
                     CADRE_INVALID_ARGUMENT, "ret_batch") &&
                 expected_text(cadre_closure_batch(closure, 5, CADRE_FEED_PARTS, &batch),
                     CADRE_INVALID_ARGUMENT, "argument 5") &&
                 expected_text(cadre_run(strategy, take_one, closure, NULL, 0, NULL),
                     CADRE_FAILED_PRECONDITION, "inside a replica function") &&
                 cadre_closure_batch(closure, 0, CADRE_FEED_ELEMENTS, &first) == CADRE_OK &&
                 expected_text(cadre_closure_batch(closure, 0, CADRE_FEED_PARTS, &batch),
                     CADRE_INVALID_ARGUMENT, "in one way") &&
                 expected_text(cadre_closure_next(closure, 0, &component, 1, NULL),
                     CADRE_FAILED_PRECONDITION, "cadre_closure_batch") &&
                 cadre_closure_next(closure, 1, &component, 1, NULL) == CADRE_OK &&
                 expected_text(cadre_closure_batch(closure, 1, CADRE_FEED_PARTS, &batch),
                     CADRE_FAILED_PRECONDITION, "cadre_closure_next") &&
                 batch == NULL;
    cadre_tensor_release(component);
    cadre_per_replica_release(first);
    return right ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "a mistake was not refused");
}

static cadre_status read_well(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_per_replica *batch = NULL;
    (void)outputs;
    (void)user;
    (void)closure;
    CADRE_TRY(cadre_closure_batch(closure, 0, CADRE_FEED_ELEMENTS, &batch));
    cadre_per_replica_release(batch);
    return CADRE_OK;
}

static void datasets_are_read_in_one_way(void **state)
{
    (void)state;
    cadre_per_worker *two[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cadre_create_per_worker_dataset(chief, "numbers", &two[i]), CADRE_OK);
    }
    const cadre_closure_argument arguments[] = {{.per_worker = two[0]}, {.per_worker = two[1]}};
    cadre_status status = call("read_wrongly", arguments, 2, NULL);
    if (status != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_int_equal(cadre_create_per_worker_dataset(chief, "numbers", &two[0]), CADRE_OK);
    const cadre_closure_argument fresh = {.per_worker = two[0]};
    assert_int_equal(call("read_well", &fresh, 1, NULL), CADRE_OK);
}

int main(void)
{
    static cadre_feed elements = CADRE_FEED_ELEMENTS;
    static cadre_feed parts = CADRE_FEED_PARTS;
    if (!worker_calls_init()) {
        return 1;
    }
    CADRE_CHECK(cadre_function_register("read_elements", read_all, &elements));
    CADRE_CHECK(cadre_function_register("read_parts", read_all, &parts));
    CADRE_CHECK(cadre_function_register("read_wrongly", read_wrongly, NULL));
    CADRE_CHECK(cadre_function_register("read_well", read_well, NULL));
    CADRE_CHECK(cadre_dataset_register("numbers", make_numbers, NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_replica_gets_an_element),
        cmocka_unit_test(each_replica_gets_its_part_of_an_element),
        cmocka_unit_test(datasets_are_read_in_one_way),
    };
    return cmocka_run_group_tests(tests, worker_calls_begin, worker_calls_end);
}
