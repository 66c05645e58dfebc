/* SPDX-License-Identifier: Apache-2.0
 * NCCL's communicators of logical devices (the stand-in's): a model-parallel product with sums
 * within the replicas and across them, cases without a communicator, replicas that form different
 * ones, or none. */
#include "nccl.h"
#include "step_kernels.h"
#include "step_pairs.h"
#include "tests/gpu/standin/standin.h"

#define ROWS    3
#define INNER   8
#define COLUMNS 5

struct half {
    cadre_tensor *x;        /* columns of x */
    cadre_tensor *weights;  /* the rows that they multiply */
    cadre_tensor *y;        /* x weights: of both halves, once summed */
    cadre_tensor *gradient; /* x' y, of all replicas */
    void *within;
    void *across;
};

static bool sum(void *comm, cadre_tensor *tensor, void *stream)
{
    void *data = cadre_tensor_data(tensor);
    ncclResult_t result = ncclAllReduce(
        data, data, (size_t)cadre_tensor_count(tensor), ncclFloat, ncclSum, comm, stream);
    return result == ncclSuccess || result == ncclInProgress;
}

static cadre_status multiply(cadre_replica *replica, uint32_t device, void *user)
{
    struct half *half = &((struct half *)user)[device];
    void *stream = cadre_logical_stream(replica, device);
    CADRE_TRY(cadre_tensor_create_on_logical(
        replica, device, CADRE_F32, 2, (const int64_t[]){ROWS, COLUMNS}, &half->y));
    CADRE_TRY(cadre_tensor_create_on_logical(
        replica, device, CADRE_F32, 2, (const int64_t[]){INNER / PAIR, COLUMNS}, &half->gradient));
    REQUIRE(step_kernel_product(stream, cadre_tensor_data(half->y),
                cadre_tensor_const_data(half->x), cadre_tensor_const_data(half->weights),
                (struct step_product){ROWS, INNER / PAIR, COLUMNS}, false) == 0);
    REQUIRE(sum(half->within, half->y, stream));
    REQUIRE(step_kernel_product(stream, cadre_tensor_data(half->gradient),
                cadre_tensor_const_data(half->x), cadre_tensor_const_data(half->y),
                (struct step_product){INNER / PAIR, ROWS, COLUMNS}, true) == 0);
    REQUIRE(sum(half->across, half->gradient, stream));
    return CADRE_OK;
}

static cadre_status halve(
    cadre_replica *replica, cadre_tensor *x, cadre_tensor *weights, struct half halves[PAIR])
{
    cadre_placement columns;
    cadre_placement rows;
    CADRE_TRY(cadre_split_to_logical_devices(replica, x, (const int32_t[]){1, PAIR}, 2, &columns));
    CADRE_TRY(
        cadre_split_to_logical_devices(replica, weights, (const int32_t[]){PAIR, 1}, 2, &rows));
    for (uint32_t d = 0; d < PAIR; d++) {
        struct half *half = &halves[d];
        CADRE_TRY(cadre_placement_piece(x, &columns, d, &half->x));
        CADRE_TRY(cadre_placement_piece(weights, &rows, d, &half->weights));
        CADRE_TRY(cadre_logical_nccl_comm(replica, d, CADRE_LOGICAL_WITHIN_REPLICA, &half->within));
        CADRE_TRY(
            cadre_logical_nccl_comm(replica, d, CADRE_LOGICAL_ACROSS_REPLICAS, &half->across));
    }
    return CADRE_OK;
}

/* Outputs: y as the second device has it, and both halves of the gradient. */
static cadre_status product_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    struct half halves[PAIR] = {{0}};
    cadre_tensor *x;
    cadre_tensor *weights;
    CADRE_TRY(pairs_numbers(replica, ROWS, INNER, cadre_replica_id(replica), &x));
    CADRE_TRY(pairs_numbers(replica, INNER, COLUMNS, 0, &weights));
    CADRE_TRY(halve(replica, x, weights, halves));
    CADRE_TRY(cadre_logical_run_all(replica, multiply, halves));
    CADRE_TRY(cadre_tensor_copy_to(replica, halves[1].y, &outputs[0]));
    outputs[1] = cadre_tensor_retain(halves[0].gradient);
    CADRE_TRY(cadre_tensor_copy_to(replica, halves[1].gradient, &outputs[2]));
    for (uint32_t d = 0; d < PAIR; d++) {
        cadre_tensor_release(halves[d].x);
        cadre_tensor_release(halves[d].weights);
        cadre_tensor_release(halves[d].y);
        cadre_tensor_release(halves[d].gradient);
    }
    cadre_tensor_release(x);
    cadre_tensor_release(weights);
    return CADRE_OK;
}

/* The same by plain loops. */
static void expect(float y[STEP_REPLICAS][ROWS][COLUMNS], float gradient[INNER][COLUMNS])
{
    memset(gradient, 0, INNER * sizeof gradient[0]);
    for (uint32_t id = 0; id < STEP_REPLICAS; id++) {
        for (int64_t row = 0; row < ROWS; row++) {
            for (int64_t c = 0; c < COLUMNS; c++) {
                y[id][row][c] = 0;
                for (int64_t k = 0; k < INNER; k++) {
                    y[id][row][c] +=
                        pairs_number(row * INNER + k, id) * pairs_number(k * COLUMNS + c, 0);
                }
            }
        }
        for (int64_t i = 0; i < INNER * ROWS * COLUMNS; i++) {
            int64_t k = i / (ROWS * COLUMNS);
            int64_t row = i / COLUMNS % ROWS;
            gradient[k][i % COLUMNS] += pairs_number(row * INNER + k, id) * y[id][row][i % COLUMNS];
        }
    }
}

static void a_model_parallel_product_is_summed_both_ways(void **state)
{
    (void)state;
    float y[STEP_REPLICAS][ROWS][COLUMNS];
    float gradient[INNER][COLUMNS];
    expect(y, gradient);
    cadre_strategy *strategy = pairs_strategy();
    uint64_t formed = standin_calls("ncclCommInitRankConfig");
    for (int i = 0; i < 3; i++) {
        cadre_per_replica *results[3];
        assert_public_ok(cadre_run(strategy, product_step, NULL, NULL, 3, results));
        for (uint32_t r = 0; r < STEP_REPLICAS; r++) {
            cadre_tensor *const *parts[3];
            for (int k = 0; k < 3; k++) {
                parts[k] = cadre_local_results(results[k], 0);
            }
            step_assert_f32(parts[0][r], ROWS * COLUMNS, &y[r][0][0]);
            step_assert_f32(parts[1][r], INNER / PAIR * COLUMNS, &gradient[0][0]);
            step_assert_f32(parts[2][r], INNER / PAIR * COLUMNS, &gradient[INNER / PAIR][0]);
        }
    }
    /* Once, within two replicas and across their second devices: the first ones have theirs. */
    assert_int_equal(standin_calls("ncclCommInitRankConfig") - formed, 4 + 2);
    assert_int_equal(cadre_finish(strategy), 0);
}

/* --- where there is no communicator --- */

static cadre_status ask(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const char *part = user;
    void *comm = &comm;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    for (int i = 0; i < 2; i++) { /* the second time needs no agreement */
        REQUIRE_ERROR(cadre_logical_nccl_comm(replica, 1, CADRE_LOGICAL_ACROSS_REPLICAS, &comm),
            CADRE_FAILED_PRECONDITION, part);
        REQUIRE(comm == NULL);
    }
    REQUIRE_ERROR(cadre_logical_nccl_comm(replica, 7, CADRE_LOGICAL_WITHIN_REPLICA, &comm),
        CADRE_INVALID_ARGUMENT, "logical device 7");
    REQUIRE_ERROR(cadre_logical_nccl_comm(replica, 0, (cadre_logical_group)7, &comm),
        CADRE_INVALID_ARGUMENT, "7, which is not a group");
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL)); /* the step goes on */
    cadre_tensor_release(one);
    return CADRE_OK;
}

static void without_a_library_the_reason_is_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    assert_public_ok(cadre_run(strategy, ask, "/nowhere/libnccl.so", NULL, 0, NULL));
    cadre_strategy_release(strategy);
    strategy = step_strategy((const char *const[]){"CPU:0", "CPU:2"}, 2);
    assert_public_ok(pairs_assign(strategy, 4, 2));
    assert_public_ok(cadre_run(strategy, ask, "which is on the CPU", NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void one_that_is_refused_leaves_the_rest(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    standin_fail("ncclForm", 2, ncclSystemError);
    assert_public_ok(cadre_run(strategy, ask, "NCCL refused replica", NULL, 0, NULL));
    standin_heal();
    assert_int_equal(cadre_finish(strategy), 0);
}

/* --- replicas that differ --- */

struct asking {
    bool differs; /* replica 1 forms another one */
    bool fails;   /* ... or fails instead */
};

static cadre_status ask_apart(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct asking *asking = user;
    bool second = cadre_replica_id(replica) == 1;
    void *comm;
    if (second && asking->fails) {
        return cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    CADRE_TRY(cadre_logical_nccl_comm(replica, 1,
        second && asking->differs ? CADRE_LOGICAL_WITHIN_REPLICA : CADRE_LOGICAL_ACROSS_REPLICAS,
        &comm));
    REQUIRE(comm != NULL);
    return CADRE_OK;
}

static void replicas_that_ask_for_different_ones_are_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    struct asking asking = {.differs = true};
    assert_public_error(cadre_run(strategy, ask_apart, &asking, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "cadre_logical_nccl_comm(CADRE_LOGICAL_WITHIN_REPLICA)");
    struct asking fine = {0};
    assert_public_ok(cadre_run(strategy, ask_apart, &fine, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void one_that_fails_ends_the_forming(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    struct asking asking = {.fails = true};
    for (int i = 0; i < 2; i++) { /* before there is one, and with one of an earlier mesh */
        assert_public_error(cadre_run(strategy, ask_apart, &asking, NULL, 0, NULL), CADRE_DATA_LOSS,
            "it is damaged");
        struct asking fine = {0};
        assert_public_ok(cadre_run(strategy, ask_apart, &fine, NULL, 0, NULL));
    }
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    pairs_begin(argc, argv);
    const struct CMUnitTest connected[] = {
        cmocka_unit_test(a_model_parallel_product_is_summed_both_ways),
        cmocka_unit_test(one_that_is_refused_leaves_the_rest),
        cmocka_unit_test(replicas_that_ask_for_different_ones_are_named),
        cmocka_unit_test(one_that_fails_ends_the_forming),
    };
    const struct CMUnitTest staged[] = {
        cmocka_unit_test(without_a_library_the_reason_is_reported),
    };
    return step_connected ? cmocka_run_group_tests(connected, NULL, NULL)
                          : cmocka_run_group_tests(staged, NULL, NULL);
}
