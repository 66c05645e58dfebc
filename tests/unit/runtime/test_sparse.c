/* SPDX-License-Identifier: Apache-2.0
 * Sparse values: their all-reduce, and what is no sparse value. */
#include "training.h"

struct sparse_sum {
    cadre_reduce_op op;
    cadre_sparse inputs[2];
    cadre_sparse results[2];
};

static cadre_status sparse_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct sparse_sum *sum = user;
    uint32_t id = cadre_replica_id(replica);
    return cadre_all_reduce_sparse(replica, sum->op, &sum->inputs[id], NULL, &sum->results[id]);
}

static cadre_sparse sparse_of(
    int64_t count, const float *values, const int64_t *indices, int64_t rows)
{
    cadre_sparse sparse = {.rows = rows};
    const int64_t dims[2] = {count, 1};
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 2, dims, values, &sparse.values));
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, dims, indices, &sparse.indices));
    return sparse;
}

static void sparse_sum_end(struct sparse_sum *sum)
{
    for (int r = 0; r < 2; r++) {
        cadre_sparse_release(&sum->inputs[r]);
        cadre_sparse_release(&sum->results[r]);
    }
}

static void rows_are_put_one_after_the_other(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (int op = CADRE_SUM; op <= CADRE_MEAN; op++) {
        struct sparse_sum sum = {.op = (cadre_reduce_op)op};
        sum.inputs[0] = sparse_of(2, (const float[]){1, 2}, (const int64_t[]){0, 1}, 10);
        sum.inputs[1] = sparse_of(3, (const float[]){3, 4, 5}, (const int64_t[]){1, 9, 1}, 10);
        assert_public_ok(cadre_run(strategy, sparse_step, &sum, NULL, 0, NULL));
        for (int r = 0; r < 2; r++) {
            float by = op == CADRE_MEAN ? 2 : 1;
            training_assert_f32(
                sum.results[r].values, 5, (const float[]){1 / by, 2 / by, 3 / by, 4 / by, 5 / by});
            assert_int_equal(cadre_tensor_rank(sum.results[r].values), 2);
            assert_memory_equal(cadre_tensor_const_data(sum.results[r].indices),
                ((const int64_t[]){0, 1, 1, 9, 1}), 5 * sizeof(int64_t));
            assert_int_equal(sum.results[r].rows, 10);
        }
        training_assert_f32(sum.inputs[0].values, 2, (const float[]){1, 2});
        sparse_sum_end(&sum);
    }
    cadre_strategy_release(strategy);
}

static void none_at_all_is_possible(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct sparse_sum sum = {.op = CADRE_SUM};
    sum.inputs[0] = sparse_of(0, NULL, NULL, CADRE_DIMENSION_ANY);
    sum.inputs[1] = sparse_of(1, (const float[]){7}, (const int64_t[]){70}, CADRE_DIMENSION_ANY);
    assert_public_ok(cadre_run(strategy, sparse_step, &sum, NULL, 0, NULL));
    training_assert_f32(sum.results[0].values, 1, (const float[]){7});
    sparse_sum_end(&sum);
    sum.inputs[0] = sparse_of(0, NULL, NULL, 3);
    sum.inputs[1] = sparse_of(0, NULL, NULL, 3);
    assert_public_ok(cadre_run(strategy, sparse_step, &sum, NULL, 0, NULL));
    assert_int_equal(cadre_tensor_rows(sum.results[1].values), 0);
    sparse_sum_end(&sum);
    cadre_sparse_release(NULL);
    cadre_strategy_release(strategy);
}

/* Replica 1's is wrong. */
static void check_refused(
    cadre_strategy *strategy, cadre_reduce_op op, cadre_sparse wrong, const char *part)
{
    struct sparse_sum sum = {.op = op};
    sum.inputs[0] = sparse_of(1, (const float[]){1}, (const int64_t[]){2}, 3);
    sum.inputs[1] = wrong;
    assert_public_error(
        cadre_run(strategy, sparse_step, &sum, NULL, 0, NULL), CADRE_INVALID_ARGUMENT, part);
    assert_null(sum.results[0].values);
    assert_null(sum.results[1].values);
    sparse_sum_end(&sum);
}

static void what_is_no_sparse_value_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const float ones[2] = {1, 1};
    const int64_t zeros[2] = {0, 0};
    check_refused(strategy, CADRE_SUM, sparse_of(1, ones, (const int64_t[]){3}, 3),
        "index 0 of a sparse value is 3");
    check_refused(strategy, CADRE_SUM, sparse_of(1, ones, (const int64_t[]){-1}, 3),
        "index 0 of a sparse value is -1");
    check_refused(strategy, CADRE_SUM, sparse_of(1, ones, zeros, -2), "with -2 rows");
    check_refused(strategy, CADRE_SUM, sparse_of(1, ones, zeros, 4), "the replicas disagree");
    check_refused(strategy, CADRE_MAX, sparse_of(1, ones, zeros, 3), "not a reduction of sparse");
    check_refused(strategy, CADRE_SUM, (cadre_sparse){.rows = 3}, "values NULL and indices NULL");
    cadre_sparse uneven = sparse_of(2, ones, zeros, 3);
    cadre_tensor_release(uneven.indices);
    assert_public_ok(
        cadre_tensor_from_data(CADRE_I64, 1, (const int64_t[]){1}, zeros, &uneven.indices));
    check_refused(strategy, CADRE_SUM, uneven, "values f32 [2, 1] and indices i64 [1]");
    cadre_sparse typed = sparse_of(1, ones, zeros, 3);
    cadre_tensor_release(typed.indices);
    typed.indices = training_i32(1, (const int32_t[]){0});
    check_refused(strategy, CADRE_SUM, typed, "indices i32 [1]");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_put_one_after_the_other),
        cmocka_unit_test(none_at_all_is_possible),
        cmocka_unit_test(what_is_no_sparse_value_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
