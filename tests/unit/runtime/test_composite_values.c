/* SPDX-License-Identifier: Apache-2.0
 * Ragged and sparse values of replicas: batches of unequal rows in steps, joined, printed and not
 * reduced, in this process and as jobs of several tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"

#define ROWS 11

static const char *self;

/* tf.range(x). */
static cadre_status count_up(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t x = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &x, &ret_out->tensors[0]));
    ret_out->count = 1;
    for (int64_t i = 0; i < x; i++) {
        ((int64_t *)cadre_tensor_data(ret_out->tensors[0]))[i] = i;
    }
    return CADRE_OK;
}

static cadre_dataset *rows(bool ragged, int64_t size)
{
    const cadre_tensor_spec most = {.rank = 1, .dims = {ROWS}};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(0, ROWS, 1), count_up, NULL, NULL);
    return ragged ? cadre_dataset_ragged_batch(data, size, false)
                  : cadre_dataset_sparse_batch(data, size, &most, false);
}

/* The numbers of a replica's rows, each times its length and one more. */
static cadre_status add_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    int64_t sum = 0;
    int64_t count = cadre_tensor_rows(inputs[1]) - 1;
    for (int64_t i = 0; i < count; i++) {
        cadre_tensor *row = NULL;
        CADRE_TRY(cadre_ragged_row(inputs[0], inputs[1], i, &row));
        const int64_t length = cadre_tensor_rows(row);
        for (int64_t k = 0; k < length; k++) {
            sum += ((const int64_t *)cadre_tensor_const_data(row))[k] * (length + 1);
        }
        cadre_tensor_release(row);
    }
    CADRE_TRY(cadre_tensor_from_i64(sum, &outputs[0]));
    return cadre_tensor_from_i64(count, &outputs[1]);
}

static int64_t sum_of(cadre_strategy *strategy, const cadre_per_replica *value)
{
    cadre_tensor *sum = NULL;
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum));
    int64_t number = *(const int64_t *)cadre_tensor_const_data(sum);
    cadre_tensor_release(sum);
    return number;
}

/* Each row of an epoch is read once, by any replica. */
static void epoch_of(cadre_strategy *strategy, int64_t size)
{
    cadre_distributed_dataset *data = NULL;
    cadre_per_replica *batch = NULL;
    cadre_per_replica *outputs[2];
    int64_t sum = 0;
    int64_t met = 0;
    int64_t expected = 0;
    assert_public_ok(cadre_distribute_dataset(strategy, rows(true, size), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    while (cadre_next(data, &batch) == CADRE_OK) {
        assert_int_equal(cadre_per_replica_components(batch), 2);
        assert_public_ok(cadre_run(strategy, add_up, NULL, batch, 2, outputs));
        sum += sum_of(strategy, outputs[0]);
        met += sum_of(strategy, outputs[1]);
    }
    assert_public_ok(cadre_distributed_status(data));
    for (int64_t x = 0; x < ROWS; x++) {
        expected += x * (x - 1) / 2 * (x + 1);
    }
    assert_int_equal(met, ROWS);
    assert_int_equal(sum, expected);
}

/* All rows in their order: those of as many replicas as this. */
static void gathered_of(cadre_strategy *strategy, bool ragged)
{
    cadre_distributed_dataset *data = NULL;
    cadre_per_replica *batch = NULL;
    assert_public_ok(cadre_distribute_dataset(strategy, rows(ragged, ROWS), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    cadre_tensor *parts[3] = {NULL};
    cadre_tensor *dense = NULL;
    assert_public_ok(cadre_gather(strategy, batch, 0, parts));
    assert_public_ok(ragged ? cadre_ragged_to_dense(parts[0], parts[1], ROWS, NULL, &dense)
                            : cadre_sparse_to_dense(parts[0], parts[1], parts[2], NULL, &dense));
    assert_int_equal(cadre_tensor_dim(dense, 0), ROWS);
    assert_int_equal(cadre_tensor_dim(dense, 1), ROWS);
    const int64_t *cell = cadre_tensor_const_data(dense);
    for (int64_t x = 0; x < ROWS; x++) {
        for (int64_t i = 0; i < ROWS; i++) {
            assert_int_equal(*cell++, i < x ? i : 0);
        }
    }
    cadre_tensor_release(dense);
    for (int i = 0; i < 3; i++) {
        cadre_tensor_release(parts[i]);
    }
}

static void steps_have_each_row_once(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 4; replicas++) {
        cadre_strategy *strategy = training_strategy(replicas);
        epoch_of(strategy, 4);
        gathered_of(strategy, true);
        gathered_of(strategy, false);
        cadre_strategy_release(strategy);
    }
}

static void tasks_have_each_row_once(void **state)
{
    (void)state;
    job_must_succeed(self, "epoch", 2, 2);
    job_must_succeed(self, "gather", 3, 1);
}

static void expect_text(const cadre_per_replica *value, const char *wanted)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_public_ok(cadre_value_print(value, to));
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static void batches_are_printed(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_dataset *const both[] = {
        cadre_dataset_unbatch(rows(true, 5)), cadre_dataset_range(0, ROWS, 1)};
    const char *const names[] = {"words", "number"};
    cadre_dataset *zipped = cadre_dataset_zip(both, 2);
    cadre_dataset *called = cadre_dataset_named(cadre_dataset_retain(zipped), names, 2);
    called = cadre_dataset_ragged_batch(called, 4, false);
    zipped = cadre_dataset_ragged_batch(zipped, 4, false);
    cadre_distributed_dataset *data = NULL;
    cadre_distributed_dataset *dicts = NULL;
    cadre_distributed_dataset *pairs = NULL;
    cadre_per_replica *batch = NULL;
    assert_public_ok(cadre_distribute_dataset(strategy, rows(true, 4), NULL, &data));
    assert_public_ok(cadre_distribute_dataset(strategy, zipped, NULL, &pairs));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    expect_text(batch, "PerReplica:{\n"
                       "  0: <RaggedTensor [[], [0]]>,\n"
                       "  1: <RaggedTensor [[0, 1], [0, 1, 2]]>\n"
                       "}\n");
    assert_true(cadre_next_epoch(pairs, 1, NULL));
    assert_public_ok(cadre_next(pairs, &batch));
    expect_text(batch, "(PerReplica:{\n"
                       "  0: <RaggedTensor [[], [0]]>,\n"
                       "  1: <RaggedTensor [[0, 1], [0, 1, 2]]>\n"
                       "}, PerReplica:{\n"
                       "  0: <cadre_tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>,\n"
                       "  1: <cadre_tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>\n"
                       "})\n");
    assert_public_ok(cadre_distribute_dataset(strategy, called, NULL, &dicts));
    assert_true(cadre_next_epoch(dicts, 1, NULL));
    assert_public_ok(cadre_next(dicts, &batch));
    expect_text(batch, "{'words': PerReplica:{\n"
                       "  0: <RaggedTensor [[], [0]]>,\n"
                       "  1: <RaggedTensor [[0, 1], [0, 1, 2]]>\n"
                       "}, 'number': PerReplica:{\n"
                       "  0: <cadre_tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>,\n"
                       "  1: <cadre_tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>\n"
                       "}}\n");
    cadre_element_spec spec;
    assert_public_ok(cadre_distributed_spec(data, &spec));
    assert_int_equal(spec.count, 2);
    assert_int_equal(spec.tensors[1].composite, CADRE_COMPOSITE_RAGGED);
    cadre_strategy_release(strategy);
}

static cadre_status pass_on(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return cadre_tensor_copy(inputs[1], &outputs[1]);
}

/* What a replica function gives back is as ragged as what it was given. */
static void outputs_may_be_ragged(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = NULL;
    cadre_per_replica *batch = NULL;
    cadre_per_replica *outputs[2];
    cadre_per_replica *joined = NULL;
    cadre_tensor *results[2] = {NULL};
    assert_public_ok(cadre_distribute_dataset(strategy, rows(true, 4), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_public_ok(cadre_run(strategy, pass_on, NULL, batch, 2, outputs));
    const cadre_argument arguments[] = {{.values = outputs[0]}, {.values = outputs[1]}};
    assert_public_ok(cadre_values_join(strategy, arguments, 2, &joined));
    assert_public_ok(cadre_gather(strategy, joined, 0, results));
    const int64_t splits[] = {0, 0, 1, 3, 6};
    assert_int_equal(cadre_tensor_bytes(results[1]), sizeof splits);
    assert_memory_equal(cadre_tensor_const_data(results[1]), splits, sizeof splits);
    cadre_tensor_release(results[0]);
    cadre_tensor_release(results[1]);
    assert_public_error(cadre_reduce_values(strategy, CADRE_SUM, joined, NULL, 0, results),
        CADRE_INVALID_ARGUMENT,
        "components 0 to 1 (ragged) of the value cannot be reduced, for the rows of replicas "
        "differ; return what a replica function computes of its rows, or join them (cadre_gather)");
    cadre_per_replica *reduced = NULL;
    assert_public_error(cadre_reduce_to(strategy, CADRE_SUM, joined, NULL, &reduced),
        CADRE_INVALID_ARGUMENT, "cannot be reduced");
    assert_public_error(cadre_gather(strategy, joined, 1, results), CADRE_INVALID_ARGUMENT,
        "components 0 to 1 (ragged) of the value are gathered along axis 0 alone");
    cadre_per_replica_release(joined);
    cadre_strategy_release(strategy);
}

/* One replica's second component is marked, the other's is a plain tensor of the same numbers. */
static void replicas_that_differ_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const int64_t numbers[] = {0, 2};
    const int64_t two = 2;
    cadre_tensor *plain = NULL;
    cadre_tensor *splits = NULL;
    cadre_tensor *results[2] = {NULL};
    cadre_per_replica *values[2] = {NULL};
    cadre_per_replica *joined = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &two, numbers, &plain));
    assert_public_ok(cadre_ragged_from_row_splits(plain, plain, &splits));
    cadre_tensor *const first[] = {plain, plain};
    cadre_tensor *const second[] = {splits, plain};
    assert_public_ok(cadre_values_from_tensors(strategy, first, 2, &values[0]));
    assert_public_ok(cadre_values_from_tensors(strategy, second, 2, &values[1]));
    const cadre_argument arguments[] = {{.values = values[0]}, {.values = values[1]}};
    assert_public_ok(cadre_values_join(strategy, arguments, 2, &joined));
    assert_public_error(cadre_gather(strategy, joined, 0, results), CADRE_INVALID_ARGUMENT,
        "components 0 to 1 (ragged) of local replica 0 are not alike on local replica 1");
    assert_null(results[0]);
    cadre_per_replica_release(joined);
    cadre_per_replica_release(values[0]);
    cadre_per_replica_release(values[1]);
    cadre_tensor_release(plain);
    cadre_tensor_release(splits);
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cadre_strategy *strategy = job_strategy();
        strcmp(argv[1], "epoch") == 0 ? epoch_of(strategy, 5) : gathered_of(strategy, true);
        return cadre_finish(strategy);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_each_row_once),
        cmocka_unit_test(tasks_have_each_row_once),
        cmocka_unit_test(batches_are_printed),
        cmocka_unit_test(outputs_may_be_ragged),
        cmocka_unit_test(replicas_that_differ_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
