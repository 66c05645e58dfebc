/* SPDX-License-Identifier: Apache-2.0
 * All-gather along any axis, reduce-scatter, and what passes back through them. */
#include <string.h>

#include "training.h"

#define REPLICAS_MAX 4

/* What each replica gives and gets in one step. */
struct gathering {
    cadre_tensor *inputs[REPLICAS_MAX][2];
    size_t count;
    int32_t axis;
    bool axis_of_id;     /* each replica gathers along another one */
    int32_t gradient_of; /* the gradient of a gather along it instead, when not -1 */
    int64_t own_sizes[REPLICAS_MAX];
    cadre_reduce_op op;
    bool scatters;
    cadre_tensor *outputs[REPLICAS_MAX][2];
    cadre_status statuses[REPLICAS_MAX];
};

static cadre_status gather_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct gathering *gathering = user;
    uint32_t id = cadre_replica_id(replica);
    int32_t axis = gathering->axis_of_id ? (int32_t)id : gathering->axis;
    cadre_status status;
    if (gathering->scatters) {
        status = cadre_reduce_scatter(
            replica, gathering->op, gathering->inputs[id][0], NULL, &gathering->outputs[id][0]);
    } else if (gathering->gradient_of >= 0) {
        status = cadre_all_gather_gradient(replica, gathering->inputs[id][0],
            gathering->gradient_of, gathering->own_sizes[id], NULL, &gathering->outputs[id][0]);
    } else {
        status = cadre_all_gather(
            replica, gathering->inputs[id], gathering->count, axis, NULL, gathering->outputs[id]);
    }
    gathering->statuses[id] = status;
    return status;
}

static void gathering_end(struct gathering *gathering)
{
    for (int r = 0; r < REPLICAS_MAX; r++) {
        for (int i = 0; i < 2; i++) {
            cadre_tensor_release(gathering->inputs[r][i]);
            cadre_tensor_release(gathering->outputs[r][i]);
        }
    }
}

static cadre_tensor *matrix(int64_t rows, int64_t columns, const int32_t *values)
{
    cadre_tensor *tensor;
    const int64_t dims[2] = {rows, columns};
    assert_public_ok(cadre_tensor_from_data(CADRE_I32, 2, dims, values, &tensor));
    return tensor;
}

static void assert_matrix(
    const cadre_tensor *is, int64_t rows, int64_t columns, const int32_t *values)
{
    assert_non_null(is);
    assert_int_equal(cadre_tensor_dtype(is), CADRE_I32);
    assert_int_equal(cadre_tensor_rank(is), 2);
    assert_int_equal(cadre_tensor_dim(is, 0), rows);
    assert_int_equal(cadre_tensor_dim(is, 1), columns);
    assert_memory_equal(
        cadre_tensor_const_data(is), values, (size_t)(rows * columns) * sizeof *values);
}

static void pieces_are_joined_in_order_of_replicas(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    struct gathering rows = {.count = 1, .gradient_of = -1};
    rows.inputs[0][0] = matrix(1, 2, (const int32_t[]){1, 2});
    rows.inputs[1][0] = matrix(0, 2, NULL);
    rows.inputs[2][0] = matrix(2, 2, (const int32_t[]){3, 4, 5, 6});
    assert_public_ok(cadre_run(strategy, gather_step, &rows, NULL, 0, NULL));
    struct gathering columns = {.count = 1, .axis = 1, .gradient_of = -1};
    columns.inputs[0][0] = matrix(2, 1, (const int32_t[]){1, 4});
    columns.inputs[1][0] = matrix(2, 2, (const int32_t[]){2, 3, 5, 6});
    columns.inputs[2][0] = matrix(2, 0, NULL);
    assert_public_ok(cadre_run(strategy, gather_step, &columns, NULL, 0, NULL));
    for (int r = 0; r < 3; r++) {
        assert_matrix(rows.outputs[r][0], 3, 2, (const int32_t[]){1, 2, 3, 4, 5, 6});
        assert_matrix(columns.outputs[r][0], 2, 3, (const int32_t[]){1, 2, 3, 4, 5, 6});
    }
    gathering_end(&rows);
    gathering_end(&columns);
    cadre_strategy_release(strategy);
}

/* The example of tf.distribute's reference: (1, 2, 3) of four replicas along each axis. */
static void every_axis_of_three_is_possible(void **state)
{
    (void)state;
    static const int64_t shapes[3][3] = {{4, 2, 3}, {1, 8, 3}, {1, 2, 12}};
    static const int32_t along[3][12] = {{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5},
        {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}};
    const int64_t dims[3] = {1, 2, 3};
    cadre_strategy *strategy = training_strategy(4);
    for (int32_t axis = 0; axis < 3; axis++) {
        struct gathering gathering = {.count = 1, .axis = axis, .gradient_of = -1};
        for (int r = 0; r < 4; r++) {
            const int32_t values[6] = {0, 1, 2, 3, 4, 5};
            assert_public_ok(
                cadre_tensor_from_data(CADRE_I32, 3, dims, values, &gathering.inputs[r][0]));
        }
        assert_public_ok(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL));
        for (int r = 0; r < 4; r++) {
            const cadre_tensor *all = gathering.outputs[r][0];
            for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(cadre_tensor_dim(all, i), shapes[axis][i]);
            }
            assert_memory_equal(cadre_tensor_const_data(all), along[axis], sizeof along[axis]);
        }
        gathering_end(&gathering);
    }
    cadre_strategy_release(strategy);
}

static void several_tensors_and_truth_values_go_together(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct gathering gathering = {.count = 2, .gradient_of = -1};
    for (int r = 0; r < 2; r++) {
        const uint8_t flag = r == 1;
        const int64_t one[1] = {1};
        gathering.inputs[r][0] = training_f32((size_t)r + 1, (const float[]){5, 6});
        assert_public_ok(
            cadre_tensor_from_data(CADRE_BOOL, 1, one, &flag, &gathering.inputs[r][1]));
    }
    assert_public_ok(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL));
    for (int r = 0; r < 2; r++) {
        training_assert_f32(gathering.outputs[r][0], 3, (const float[]){5, 5, 6});
        assert_int_equal(cadre_tensor_dtype(gathering.outputs[r][1]), CADRE_BOOL);
        assert_memory_equal(cadre_tensor_const_data(gathering.outputs[r][1]), "\0\1", 2);
    }
    gathering_end(&gathering);
    struct gathering nothing = {.count = 0, .gradient_of = -1};
    assert_public_ok(cadre_run(strategy, gather_step, &nothing, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void what_cannot_be_gathered_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct gathering gathering = {.count = 1, .gradient_of = -1};
    gathering.inputs[0][0] = matrix(1, 1, (const int32_t[]){1});
    gathering.inputs[1][0] = matrix(1, 2, (const int32_t[]){1, 2});
    assert_public_error(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT,
        "replica 0 calls cadre_all_gather along axis 0 with i32 [1, 1] (collective 1 of step 0)");
    assert_non_null(strstr(cadre_error_message(),
        "replica 1 calls cadre_all_gather along axis 0 with i32 [1, 2] (collective 1 of step 0)"));
    assert_int_equal(gathering.statuses[0], CADRE_INVALID_ARGUMENT);
    assert_int_equal(gathering.statuses[1], CADRE_INVALID_ARGUMENT);
    gathering.axis_of_id = true;
    assert_public_error(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 calls cadre_all_gather along axis 1 with");
    gathering.axis_of_id = false;
    for (gathering.axis = -1; gathering.axis <= 2; gathering.axis += 3) {
        assert_public_error(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, "is not one of a tensor of 2 dimensions");
    }
    gathering.axis = 1; /* the refusals did no harm */
    assert_public_ok(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL));
    assert_matrix(gathering.outputs[1][0], 1, 3, (const int32_t[]){1, 1, 2});
    gathering_end(&gathering);
    struct gathering scalars = {.count = 1, .gradient_of = -1};
    struct gathering strings = {.count = 1, .gradient_of = -1};
    for (int r = 0; r < 2; r++) {
        const int64_t one[1] = {1};
        assert_public_ok(cadre_tensor_from_f32(1, &scalars.inputs[r][0]));
        assert_public_ok(cadre_tensor_create(CADRE_STRING, 1, one, &strings.inputs[r][0]));
    }
    assert_public_error(cadre_run(strategy, gather_step, &scalars, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "give it a dimension");
    assert_public_error(cadre_run(strategy, gather_step, &strings, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "holds strings");
    gathering_end(&scalars);
    gathering_end(&strings);
    cadre_strategy_release(strategy);
}

/* Each replica's loss weighs the whole result; what comes back is the sum of that, in its part. */
static void the_gradient_of_a_gather_is_the_own_part_of_the_sum(void **state)
{
    (void)state;
    static const int64_t sizes[2][2] = {{2, 2}, {1, 3}};
    cadre_strategy *strategy = training_strategy(2);
    for (int uneven = 0; uneven < 2; uneven++) {
        struct gathering gathering = {.gradient_of = 0};
        memcpy(gathering.own_sizes, sizes[uneven], sizeof sizes[uneven]);
        gathering.inputs[0][0] = training_f32(4, (const float[]){1, 2, 3, 4});
        gathering.inputs[1][0] = training_f32(4, (const float[]){10, 20, 30, 40});
        assert_public_ok(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL));
        size_t first = (size_t)sizes[uneven][0];
        const float sum[4] = {11, 22, 33, 44};
        training_assert_f32(gathering.outputs[0][0], first, sum);
        training_assert_f32(gathering.outputs[1][0], 4 - first, sum + first);
        training_assert_f32(gathering.inputs[0][0], 4, (const float[]){1, 2, 3, 4});
        gathering_end(&gathering);
    }
    struct gathering columns = {.gradient_of = 1, .own_sizes = {1, 2}};
    columns.inputs[0][0] = matrix(2, 3, (const int32_t[]){1, 2, 3, 4, 5, 6});
    columns.inputs[1][0] = matrix(2, 3, (const int32_t[]){10, 10, 10, 10, 10, 10});
    assert_public_ok(cadre_run(strategy, gather_step, &columns, NULL, 0, NULL));
    assert_matrix(columns.outputs[0][0], 2, 1, (const int32_t[]){11, 14});
    assert_matrix(columns.outputs[1][0], 2, 2, (const int32_t[]){12, 13, 15, 16});
    cadre_tensor_release(columns.outputs[0][0]);
    cadre_tensor_release(columns.outputs[1][0]);
    columns.own_sizes[1] = 1;
    assert_public_error(cadre_run(strategy, gather_step, &columns, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "is not as long along axis 1");
    assert_null(columns.outputs[0][0]);
    columns.own_sizes[1] = INT64_MAX;
    assert_public_error(cadre_run(strategy, gather_step, &columns, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "is not as long along axis 1");
    gathering_end(&columns);
    cadre_strategy_release(strategy);
}

static void each_replica_gets_its_part_of_a_sum(void **state)
{
    (void)state;
    static const float wanted[5][2][2] = {[CADRE_SUM] = {{11, 6}, {6, 44}},
        [CADRE_MEAN] = {{5.5f, 3}, {3, 22}},
        [CADRE_MIN] = {{1, 2}, {3, 4}},
        [CADRE_MAX] = {{10, 4}, {3, 40}},
        [CADRE_PROD] = {{10, 8}, {9, 160}}};
    cadre_strategy *strategy = training_strategy(2);
    for (int op = CADRE_SUM; op <= CADRE_PROD; op++) {
        struct gathering gathering = {.scatters = true, .op = (cadre_reduce_op)op};
        gathering.inputs[0][0] = training_f32(4, (const float[]){1, 2, 3, 4});
        gathering.inputs[1][0] = training_f32(4, (const float[]){10, 4, 3, 40});
        assert_public_ok(cadre_run(strategy, gather_step, &gathering, NULL, 0, NULL));
        training_assert_f32(gathering.outputs[0][0], 2, wanted[op][0]);
        training_assert_f32(gathering.outputs[1][0], 2, wanted[op][1]);
        gathering_end(&gathering);
    }
    struct gathering odd = {.scatters = true, .op = CADRE_SUM};
    odd.inputs[0][0] = training_f32(3, (const float[]){1, 2, 3});
    odd.inputs[1][0] = training_f32(3, (const float[]){1, 2, 3});
    assert_public_error(cadre_run(strategy, gather_step, &odd, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "must be a multiple of the 2 replicas");
    gathering_end(&odd);
    struct gathering differing = {.scatters = true, .op = CADRE_SUM};
    differing.inputs[0][0] = training_f32(2, (const float[]){1, 2});
    differing.inputs[1][0] = training_i32(2, (const int32_t[]){1, 2});
    assert_public_error(cadre_run(strategy, gather_step, &differing, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 calls cadre_reduce_scatter(CADRE_SUM) with i32 [2]");
    gathering_end(&differing);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_joined_in_order_of_replicas),
        cmocka_unit_test(every_axis_of_three_is_possible),
        cmocka_unit_test(several_tensors_and_truth_values_go_together),
        cmocka_unit_test(what_cannot_be_gathered_is_refused),
        cmocka_unit_test(the_gradient_of_a_gather_is_the_own_part_of_the_sum),
        cmocka_unit_test(each_replica_gets_its_part_of_a_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
