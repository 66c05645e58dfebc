/* SPDX-License-Identifier: Apache-2.0
 * Steps that only some of the replicas have an element of: which replica gets what, where plain
 * iteration ends before them, and the warning. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "training.h"
#include "worker/library/runtime/strategy/strategy.h"

static int64_t number_of(const cadre_tensor *tensor, int64_t row)
{
    return ((const int64_t *)cadre_tensor_const_data(tensor))[row];
}

/* What one replica of a batch holds. */
static void assert_rows(
    const cadre_per_replica *batch, uint32_t replica, int64_t count, int64_t first)
{
    const cadre_tensor *rows = cadre_local_results(batch, 0)[replica];
    assert_int_equal(cadre_tensor_rows(rows), count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(number_of(rows, i), first + i);
    }
}

static cadre_status rows_of_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    if (user != NULL && cadre_replica_local_id(replica) == 0) {
        *(int64_t *)user = cadre_replica_global_rows(replica);
    }
    return CADRE_OK;
}

/* Batches of the numbers below `stop`; with a pipeline for each replica fewer in each. */
struct maker {
    int64_t stop;
    int64_t batch;
    bool drop_remainder;
};

static cadre_status make(const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    const struct maker *maker = user;
    int64_t stop = maker->stop >> context->input_pipeline_id;
    *ret_data =
        cadre_dataset_batch(cadre_dataset_range(0, stop, 1), maker->batch, maker->drop_remainder);
    return CADRE_OK;
}

static cadre_distributed_dataset *from(
    cadre_strategy *strategy, struct maker *maker, const cadre_input_options *options)
{
    cadre_distributed_dataset *data;
    assert_public_ok(
        cadre_distribute_datasets_from_function(strategy, make, maker, options, &data));
    return data;
}

/* Elements of one known shape for all replicas or none: those that only some replicas would have
 * are lost, unless such steps are set. (testMixedLeftover and its like.) */
static void a_partial_step_is_given_where_it_is_asked_for(void **state)
{
    (void)state;
    for (int partial = 0; partial < 2; partial++) {
        cadre_strategy *strategy = training_strategy(2);
        struct maker maker = {.stop = 6, .batch = 2, .drop_remainder = true};
        cadre_distributed_dataset *data =
            from(strategy, &maker, &(cadre_input_options){.partial_steps = partial == 1});
        cadre_element_spec spec;
        cadre_per_replica *batch;
        assert_public_ok(cadre_distributed_spec(data, &spec));
        assert_int_equal(spec.tensors[0].dims[0], partial == 1 ? CADRE_DIMENSION_ANY : 2);
        assert_true(cadre_next_epoch(data, 1, NULL));
        assert_public_ok(cadre_next(data, &batch));
        assert_rows(batch, 1, 2, 2);
        if (partial == 1) {
            assert_public_ok(cadre_next(data, &batch));
            assert_rows(batch, 0, 2, 4);
            assert_rows(batch, 1, 0, 0);
        }
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        assert_null(batch);
        cadre_strategy_release(strategy);
    }
}

/* What is written to stderr until it is put back. */
static int capture_stderr(void)
{
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "stderr");
    int before = dup(STDERR_FILENO);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(before >= 0 && file >= 0);
    fflush(stderr);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    close(file);
    return before;
}

static void receive(int before, char *printed, size_t bytes)
{
    fflush(stderr);
    ssize_t count = pread(STDERR_FILENO, printed, bytes - 1, 0);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    assert_true(count >= 0);
    printed[count] = '\0';
}

/* 20 rows in 5 batches of 4 for 3 replicas: TensorFlow's get_next ends before the second step. */
static void what_is_left_is_counted(void **state)
{
    (void)state;
    char printed[4096];
    cadre_strategy *strategy = training_strategy(3);
    struct maker maker = {.stop = 20, .batch = 4, .drop_remainder = true};
    cadre_distributed_dataset *data = from(strategy, &maker, NULL);
    cadre_per_replica *batch;
    int before = capture_stderr();
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        uint64_t steps = 0;
        assert_int_equal(cadre_distributed_steps(data), 1);
        assert_true(cadre_next_epoch(data, 2, NULL));
        assert_int_equal(cadre_distributed_steps(data), 1);
        for (; cadre_next(data, &batch) == CADRE_OK; steps++) {
            assert_public_ok(cadre_run(strategy, rows_of_all, NULL, batch, 0, NULL));
        }
        assert_int_equal(steps, 1);
        assert_int_equal(cadre_distributed_steps(data), 1);
    }
    receive(before, printed, sizeof printed);
    assert_non_null(strstr(printed,
        "warning: dataset 'dataset-1' ended after step 1 of epoch 0 with 2 elements left (8 rows), "
        "which cadre_next gives to none of the 3 replicas"));
    assert_null(strstr(strstr(printed, "elements left") + 1, "elements left"));
    cadre_strategy_release(strategy);
}

/* The same 20 rows where partial steps are set, and where shapes are not fixed: all of them are
 * consumed. */
static void partial_steps_hold_empty_tensors(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        char printed[4096];
        cadre_strategy *strategy = training_strategy(3);
        struct maker maker = {.stop = 20, .batch = 4, .drop_remainder = asked == 1};
        cadre_distributed_dataset *data =
            from(strategy, &maker, &(cadre_input_options){.partial_steps = asked == 1});
        cadre_per_replica *batch;
        int before = capture_stderr();
        assert_int_equal(cadre_distributed_steps(data), 2);
        assert_true(cadre_next_epoch(data, 1, NULL));
        for (int64_t step = 0; step < 2; step++) {
            int64_t rows = 0;
            assert_public_ok(cadre_next(data, &batch));
            assert_int_equal(cadre_distributed_steps(data), 2);
            assert_rows(batch, 0, 4, 12 * step);
            assert_rows(batch, 2, step == 0 ? 4 : 0, 8);
            assert_public_ok(cadre_run(strategy, rows_of_all, &rows, batch, 0, NULL));
            assert_int_equal(rows, step == 0 ? 12 : 8);
        }
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        assert_int_equal(cadre_distributed_steps(data), 2);
        receive(before, printed, sizeof printed);
        assert_null(strstr(printed, "warning"));
        cadre_strategy_release(strategy);
    }
}

/* 5, 2 and 1 batches: those behind the first of each are left. */
static void what_pipelines_of_replicas_have_left_is_counted(void **state)
{
    (void)state;
    char printed[4096];
    cadre_strategy *strategy = training_strategy(3);
    struct maker maker = {.stop = 20, .batch = 4, .drop_remainder = true};
    cadre_distributed_dataset *data =
        from(strategy, &maker, &(cadre_input_options){.replication_mode = CADRE_PER_REPLICA});
    cadre_per_replica *batch;
    int before = capture_stderr();
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_int_equal(cadre_distributed_steps(data), 1);
    assert_public_ok(cadre_next(data, &batch));
    assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
    receive(before, printed, sizeof printed);
    assert_non_null(
        strstr(printed, "ended after step 1 of epoch 0 with 5 elements left (20 rows)"));
    cadre_strategy_release(strategy);
}

/* One that failed leaves the others a process without a strategy. */
static int clean(void **state)
{
    (void)state;
    cadre_strategy_release(strategy_current());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_partial_step_is_given_where_it_is_asked_for, clean),
        cmocka_unit_test_teardown(what_is_left_is_counted, clean),
        cmocka_unit_test_teardown(what_pipelines_of_replicas_have_left_is_counted, clean),
        cmocka_unit_test_teardown(partial_steps_hold_empty_tensors, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
