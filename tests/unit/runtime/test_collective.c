/* SPDX-License-Identifier: Apache-2.0
 * Reduce, all-reduce and broadcast: the numbers of tf.distribute, and what is refused. */
#include <math.h>
#include <string.h>

#include "training.h"

static float scalar(const cadre_tensor *tensor)
{
    assert_int_equal(cadre_tensor_count(tensor), 1);
    return *(const float *)cadre_tensor_const_data(tensor);
}

/* Takes the references of `values`. */
static cadre_tensor *reduced(
    cadre_strategy *strategy, cadre_reduce_op op, cadre_tensor *const values[], int32_t axis)
{
    cadre_tensor *result;
    assert_public_ok(cadre_reduce(strategy, op, training_values(strategy, values), axis, &result));
    return result;
}

static void reduce_without_axis_is_elementwise(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *values[2] = {training_i32(4, (const int32_t[]){0, 1, 2, 3}),
        training_i32(4, (const int32_t[]){4, 5, 6, 7})};
    cadre_tensor *sum = reduced(strategy, CADRE_SUM, values, CADRE_AXIS_NONE);
    assert_int_equal(cadre_tensor_dtype(sum), CADRE_I32);
    assert_memory_equal(
        cadre_tensor_const_data(sum), ((const int32_t[]){4, 6, 8, 10}), 4 * sizeof(int32_t));
    cadre_tensor_release(sum);
    cadre_tensor *means[2] = {
        training_f32(1, (const float[]){1.5f}), training_f32(1, (const float[]){4.5f})};
    cadre_tensor *mean = reduced(strategy, CADRE_MEAN, means, CADRE_AXIS_NONE);
    assert_true(scalar(mean) == 3);
    cadre_tensor_release(mean);
    cadre_strategy_release(strategy);
}

static void reduce_along_an_axis_weighs_by_entries(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (int32_t axis = -1; axis <= 0; axis++) {
        cadre_tensor *a[2] = {
            training_f32(3, (const float[]){2, 4, 6}), training_f32(1, (const float[]){10})};
        cadre_tensor *sum = reduced(strategy, CADRE_SUM, a, axis);
        assert_int_equal(cadre_tensor_rank(sum), 0);
        assert_true(scalar(sum) == 22);
        cadre_tensor_release(sum);
        cadre_tensor *b[2] = {
            training_f32(3, (const float[]){2, 4, 6}), training_f32(1, (const float[]){10})};
        cadre_tensor *mean = reduced(strategy, CADRE_MEAN, b, axis);
        assert_true(scalar(mean) == 5.5f);
        cadre_tensor_release(mean);
    }
    cadre_tensor *empty[2] = {training_f32(0, NULL), training_f32(0, NULL)};
    cadre_tensor *nothing = reduced(strategy, CADRE_MEAN, empty, 0);
    assert_true(isnan(scalar(nothing)));
    cadre_tensor_release(nothing);
    cadre_strategy_release(strategy);
}

static void the_mean_of_integers_is_real(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *values[2] = {
        training_i32(4, (const int32_t[]){0, 1, 2, 3}), training_i32(2, (const int32_t[]){4, 5})};
    cadre_tensor *mean = reduced(strategy, CADRE_MEAN, values, 0);
    assert_int_equal(cadre_tensor_dtype(mean), CADRE_F64);
    assert_true(*(const double *)cadre_tensor_const_data(mean) == 2.5);
    cadre_tensor_release(mean);
    cadre_strategy_release(strategy);
}

static void unsigned_words_wrap(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    static const struct {
        cadre_dtype dtype;
        uint32_t values[2]; /* of the replicas */
        uint32_t sum;
        double mean;
    } cases[] = {{CADRE_U32, {UINT32_MAX, 3}, 2, 1},
        {CADRE_U32, {0x80000000u, 8}, 0x80000008u, 0x40000004},
        {CADRE_U16, {50256, 50256}, 34976, 17488}, {CADRE_U16, {1, 65535}, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t one = 1;
        cadre_tensor *values[2];
        for (int r = 0; r < 2; r++) { /* the low bytes come first */
            assert_public_ok(
                cadre_tensor_from_data(cases[i].dtype, 1, &one, &cases[i].values[r], &values[r]));
            cadre_tensor_retain(values[r]);
        }
        cadre_tensor *sum = reduced(strategy, CADRE_SUM, values, CADRE_AXIS_NONE);
        assert_int_equal(cadre_tensor_dtype(sum), cases[i].dtype);
        assert_memory_equal(
            cadre_tensor_const_data(sum), &cases[i].sum, cadre_dtype_bytes(cases[i].dtype));
        cadre_tensor_release(sum);
        /* Of integers the sum wraps first, whatever is made of it then. */
        cadre_tensor *mean = reduced(strategy, CADRE_MEAN, values, 0);
        assert_int_equal(cadre_tensor_dtype(mean), CADRE_F64);
        assert_true(*(const double *)cadre_tensor_const_data(mean) == cases[i].mean);
        cadre_tensor_release(mean);
    }
    cadre_strategy_release(strategy);
}

static void an_inner_axis_is_summed(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *values[2];
    const int64_t dims[3] = {2, 3, 2};
    float numbers[12];
    for (int i = 0; i < 12; i++) {
        numbers[i] = (float)i;
    }
    for (int r = 0; r < 2; r++) {
        assert_public_ok(cadre_tensor_from_data(CADRE_F32, 3, dims, numbers, &values[r]));
    }
    cadre_tensor *sum = reduced(strategy, CADRE_SUM, values, 1);
    assert_int_equal(cadre_tensor_rank(sum), 2);
    training_assert_f32(sum, 4, (const float[]){12, 18, 48, 54});
    cadre_tensor_release(sum);
    cadre_strategy_release(strategy);
}

static void what_cannot_be_reduced_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *result;
    cadre_tensor *uneven[2] = {
        training_i32(4, (const int32_t[]){0, 1, 2, 3}), training_i32(2, (const int32_t[]){4, 5})};
    cadre_per_replica *value = training_values(strategy, uneven);
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &result),
        CADRE_INVALID_ARGUMENT, "");
    assert_null(result);
    assert_public_error(
        cadre_reduce(strategy, CADRE_SUM, value, 1, &result), CADRE_INVALID_ARGUMENT, "axis 1");
    assert_public_error(
        cadre_reduce(strategy, CADRE_SUM, value, -2, &result), CADRE_INVALID_ARGUMENT, "axis -2");
    assert_public_error(cadre_reduce(strategy, (cadre_reduce_op)7, value, 0, &result),
        CADRE_INVALID_ARGUMENT, "7 is not a reduction");
    assert_public_error(
        cadre_reduce(strategy, CADRE_SUM, NULL, 0, &result), CADRE_INVALID_ARGUMENT, "value");
    /* The refusals do no harm. */
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, value, 0, &result));
    assert_int_equal(*(const int32_t *)cadre_tensor_const_data(result), 15);
    cadre_tensor_release(result);
    cadre_tensor *mixed[2] = {
        training_f32(1, (const float[]){1}), training_i32(1, (const int32_t[]){1})};
    value = training_values(strategy, mixed);
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &result),
        CADRE_INVALID_ARGUMENT, "f32 [1] and i32 [1]");
    cadre_strategy_release(strategy);
}

/* The same bytes in other shapes: the mesh alone would not see it. */
static void shapes_of_one_size_are_reported_apart(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 4; n++) {
        cadre_strategy *strategy = training_strategy(n);
        cadre_tensor *values[4];
        const int64_t shapes[4][2] = {{2, 3}, {3, 2}, {1, 6}, {6, 1}};
        for (uint32_t r = 0; r < n; r++) {
            assert_public_ok(cadre_tensor_create(CADRE_F32, 2, shapes[r], &values[r]));
        }
        cadre_tensor *result;
        assert_public_error(cadre_reduce(strategy, CADRE_SUM, training_values(strategy, values),
                                CADRE_AXIS_NONE, &result),
            CADRE_INVALID_ARGUMENT, "be equal in type and shape");
        cadre_strategy_release(strategy);
    }
}

/* --- in replica context --- */

struct sums {
    cadre_reduce_op op;
    cadre_tensor **values; /* [replica][count] */
    size_t count;
    cadre_collective_options options;
};

static cadre_status all_reduce_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct sums *sums = user;
    return cadre_all_reduce(replica, sums->op,
        sums->values + sums->count * cadre_replica_local_id(replica), sums->count, &sums->options);
}

static void all_reduce_gives_each_replica_the_sum(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *values[2] = {
        training_f32(2, (const float[]){39, 2}), training_f32(2, (const float[]){3, 41})};
    struct sums sums = {.op = CADRE_SUM, .values = values, .count = 1};
    assert_public_ok(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL));
    training_assert_f32(values[0], 2, (const float[]){42, 43});
    training_assert_f32(values[1], 2, (const float[]){42, 43});
    sums.op = CADRE_MEAN;
    ((float *)cadre_tensor_data(values[0]))[0] = 2;
    ((float *)cadre_tensor_data(values[1]))[0] = 6;
    assert_public_ok(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL));
    training_assert_f32(values[0], 2, (const float[]){4, 43});
    training_assert_f32(values[1], 2, (const float[]){4, 43});
    cadre_tensor_release(values[0]);
    cadre_tensor_release(values[1]);
    cadre_strategy_release(strategy);
}

static void every_op_combines_element_by_element(void **state)
{
    (void)state;
    static const float wanted[][2] = {[CADRE_SUM] = {6, -2},
        [CADRE_MEAN] = {2, -2.0f / 3},
        [CADRE_MIN] = {1, -4},
        [CADRE_MAX] = {3, 1},
        [CADRE_PROD] = {6, -4}};
    cadre_strategy *strategy = training_strategy(3);
    for (int op = CADRE_SUM; op <= CADRE_PROD; op++) {
        cadre_tensor *values[3] = {training_f32(2, (const float[]){1, -4}),
            training_f32(2, (const float[]){2, 1}), training_f32(2, (const float[]){3, 1})};
        struct sums sums = {.op = (cadre_reduce_op)op, .values = values, .count = 1};
        assert_public_ok(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL));
        for (int r = 0; r < 3; r++) {
            training_assert_f32(values[r], 2, wanted[op]);
            cadre_tensor_release(values[r]);
        }
    }
    cadre_strategy_release(strategy);
}

/* Replica 1 has places of its own for the results, replica 0 none: it is one collective. */
struct apart {
    cadre_tensor *inputs[2][2];
    cadre_tensor *outputs[2];
    cadre_reduce_op op;
};

static cadre_status apart_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct apart *apart = user;
    if (cadre_replica_id(replica) == 0) {
        return cadre_all_reduce(replica, apart->op, apart->inputs[0], 2, NULL);
    }
    return cadre_all_reduce_into(replica, apart->op, apart->inputs[1], 2, apart->outputs, NULL);
}

static void results_may_go_elsewhere(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct apart apart = {.op = CADRE_MEAN};
    for (int r = 0; r < 2; r++) {
        apart.inputs[r][0] =
            training_f32(2, r == 0 ? (const float[]){1, 2} : (const float[]){3, 4});
        apart.inputs[r][1] = training_f32(1, r == 0 ? (const float[]){10} : (const float[]){30});
    }
    apart.outputs[0] = training_f32(2, (const float[]){0, 0});
    apart.outputs[1] = apart.inputs[1][1];
    assert_public_ok(cadre_run(strategy, apart_step, &apart, NULL, 0, NULL));
    training_assert_f32(apart.inputs[0][0], 2, (const float[]){2, 3});
    training_assert_f32(apart.outputs[0], 2, (const float[]){2, 3});
    training_assert_f32(apart.inputs[1][0], 2, (const float[]){3, 4});
    training_assert_f32(apart.outputs[1], 1, (const float[]){20});

    cadre_tensor *const good = apart.outputs[0];
    apart.outputs[0] = training_f32(1, (const float[]){0});
    assert_public_error(cadre_run(strategy, apart_step, &apart, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "result 0 of an all-reduce is f32 [1] and its tensor f32 [2]");
    cadre_tensor_release(apart.outputs[0]);
    apart.outputs[0] = NULL;
    assert_public_error(cadre_run(strategy, apart_step, &apart, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "tensor 0 of a collective is NULL");
    cadre_tensor *whole = training_f32(3, (const float[]){1, 2, 3});
    cadre_tensor_release(apart.inputs[1][0]);
    assert_public_ok(cadre_tensor_view_rows(whole, 0, 2, &apart.inputs[1][0]));
    assert_public_ok(cadre_tensor_view_rows(whole, 1, 2, &apart.outputs[0]));
    assert_public_error(cadre_run(strategy, apart_step, &apart, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "overlaps its tensor");
    cadre_tensor_release(whole);
    cadre_tensor_release(good);
    cadre_tensor_release(apart.outputs[0]);
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(apart.inputs[i / 2][i % 2]);
    }
    cadre_strategy_release(strategy);
}

static cadre_status gradient_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct sums *sums = user;
    return cadre_all_reduce(
        replica, sums->op, sums->values + cadre_replica_local_id(replica), 1, NULL);
}

/* loss_r = c_r * all_reduce(x): c = 2 and 6 come back. */
static void the_gradient_is_the_same_reduction(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (int op = CADRE_SUM; op <= CADRE_MEAN; op++) {
        cadre_tensor *values[2] = {
            training_f32(1, (const float[]){2}), training_f32(1, (const float[]){6})};
        struct sums sums = {.op = (cadre_reduce_op)op, .values = values};
        assert_public_ok(cadre_run(strategy, gradient_step, &sums, NULL, 0, NULL));
        for (int r = 0; r < 2; r++) {
            training_assert_f32(values[r], 1, (const float[]){op == CADRE_SUM ? 8 : 4});
        }
        cadre_tensor_release(values[0]);
        cadre_tensor_release(values[1]);
    }
    cadre_strategy_release(strategy);
}

static void packs_change_nothing(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 3; n++) {
        for (size_t limit = 0; limit <= 16; limit++) {
            cadre_strategy *strategy = training_strategy(n);
            cadre_tensor *values[3 * 4];
            for (uint32_t i = 0; i < n * 4; i++) {
                values[i] = training_f32(i % 4, (const float[]){1, 2, 3});
            }
            struct sums sums = {.op = CADRE_SUM,
                .values = values,
                .count = 4,
                .options = {.bytes_per_pack = limit}};
            assert_public_ok(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL));
            for (uint32_t i = 0; i < n * 4; i++) {
                float f = (float)n;
                training_assert_f32(values[i], i % 4, (const float[]){f, 2 * f, 3 * f});
                cadre_tensor_release(values[i]);
            }
            cadre_strategy_release(strategy);
        }
    }
}

static void types_are_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *values[2] = {
        training_i32(1, (const int32_t[]){1}), training_i32(1, (const int32_t[]){2})};
    struct sums sums = {.op = CADRE_MEAN, .values = values, .count = 1};
    assert_public_error(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "needs a floating type");
    sums.op = (cadre_reduce_op)9;
    assert_public_error(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "not a reduction");
    cadre_tensor_release(values[0]);
    cadre_tensor_release(values[1]);
    cadre_tensor *flags[2];
    assert_public_ok(cadre_tensor_create(CADRE_BOOL, 0, NULL, &flags[0]));
    assert_public_ok(cadre_tensor_create(CADRE_BOOL, 0, NULL, &flags[1]));
    sums = (struct sums){.op = CADRE_SUM, .values = flags, .count = 1};
    assert_public_error(cadre_run(strategy, all_reduce_step, &sums, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "cannot be summed");
    cadre_tensor_release(flags[0]);
    cadre_tensor_release(flags[1]);
    cadre_strategy_release(strategy);
}

static void outside_of_a_step_is_refused(void **state)
{
    (void)state;
    cadre_tensor *value = training_f32(1, (const float[]){1});
    assert_public_error(cadre_all_reduce(NULL, CADRE_SUM, &value, 1, NULL),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    cadre_tensor_release(value);
}

struct broadcast {
    uint32_t root;
    cadre_tensor **values;
};

static cadre_status broadcast_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct broadcast *broadcast = user;
    return cadre_broadcast(
        replica, broadcast->root, &broadcast->values[cadre_replica_id(replica)], 1);
}

static void broadcast_copies_the_root(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    for (uint32_t root = 0; root < 3; root++) {
        cadre_tensor *values[3];
        for (int32_t r = 0; r < 3; r++) {
            values[r] = training_i32(2, (const int32_t[]){r, 10 * r});
        }
        struct broadcast broadcast = {.root = root, .values = values};
        assert_public_ok(cadre_run(strategy, broadcast_step, &broadcast, NULL, 0, NULL));
        for (uint32_t r = 0; r < 3; r++) {
            const int32_t *is = cadre_tensor_const_data(values[r]);
            assert_int_equal(is[0], root);
            assert_int_equal(is[1], 10 * root);
        }
        broadcast.root = 3;
        assert_public_error(cadre_run(strategy, broadcast_step, &broadcast, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, "among 3 replicas");
        for (uint32_t r = 0; r < 3; r++) {
            cadre_tensor_release(values[r]);
        }
    }
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduce_without_axis_is_elementwise),
        cmocka_unit_test(reduce_along_an_axis_weighs_by_entries),
        cmocka_unit_test(the_mean_of_integers_is_real),
        cmocka_unit_test(unsigned_words_wrap),
        cmocka_unit_test(an_inner_axis_is_summed),
        cmocka_unit_test(what_cannot_be_reduced_is_refused),
        cmocka_unit_test(shapes_of_one_size_are_reported_apart),
        cmocka_unit_test(all_reduce_gives_each_replica_the_sum),
        cmocka_unit_test(every_op_combines_element_by_element),
        cmocka_unit_test(results_may_go_elsewhere),
        cmocka_unit_test(the_gradient_is_the_same_reduction),
        cmocka_unit_test(packs_change_nothing),
        cmocka_unit_test(types_are_checked),
        cmocka_unit_test(outside_of_a_step_is_refused),
        cmocka_unit_test(broadcast_copies_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
