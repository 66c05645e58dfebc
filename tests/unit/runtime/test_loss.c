/* SPDX-License-Identifier: Apache-2.0
 * Losses that add up to the mean over the global batch, and random streams of replicas. */
#include <math.h>
#include <string.h>

#include "training.h"

static float scalar(const cadre_tensor *tensor)
{
    assert_int_equal(cadre_tensor_rank(tensor), 0);
    return *(const float *)cadre_tensor_const_data(tensor);
}

/* What a replica's function is to average. */
struct losses {
    cadre_tensor *of[4]; /* by replica id */
    cadre_tensor *weights;
    cadre_tensor *size;
    cadre_status status;
};

static cadre_status average(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct losses *losses = user;
    cadre_tensor *none;
    if (cadre_compute_average_loss(NULL, losses->of[0], NULL, NULL, &none) !=
        CADRE_INVALID_ARGUMENT) {
        return CADRE_INTERNAL;
    }
    return cadre_compute_average_loss(
        replica, losses->of[cadre_replica_id(replica)], losses->weights, losses->size, &outputs[0]);
}

static cadre_status regularize(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct losses *losses = user;
    cadre_tensor *none;
    if (cadre_scale_regularization_loss(NULL, losses->of[0], &none) != CADRE_INVALID_ARGUMENT) {
        return CADRE_INTERNAL;
    }
    return cadre_scale_regularization_loss(
        replica, losses->of[cadre_replica_id(replica)], &outputs[0]);
}

static float total(cadre_strategy *strategy, cadre_replica_function function, struct losses *losses)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    assert_public_ok(cadre_run(strategy, function, losses, NULL, 1, &output));
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum));
    float value = scalar(sum);
    cadre_tensor_release(sum);
    return value;
}

static void losses_add_up_to_the_mean(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct losses losses = {.of = {training_f32(4, (const float[]){1, 2, 3, 4}),
                                training_f32(2, (const float[]){5, 9})}};
    assert_public_ok(cadre_tensor_from_i64(6, &losses.size));
    assert_true(fabsf(total(strategy, average, &losses) - 4) < 1e-6f);
    cadre_tensor_release(losses.size);
    losses.size = NULL; /* local rows times replicas: 10 / 8 + 14 / 4 */
    assert_true(fabsf(total(strategy, average, &losses) - 4.75f) < 1e-6f);
    assert_public_ok(cadre_tensor_from_f32(2, &losses.weights));
    assert_true(fabsf(total(strategy, average, &losses) - 9.5f) < 1e-6f);
    assert_true(fabsf(total(strategy, regularize, &losses) - 12) < 1e-6f);
    for (int i = 0; i < 2; i++) {
        cadre_tensor_release(losses.of[i]);
    }
    cadre_tensor_release(losses.weights);
    cadre_strategy_release(strategy);
}

static void the_size_may_be_given_anywhere(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4, 5, 6};
    cadre_tensor *losses;
    cadre_tensor *rows = training_f32(2, (const float[]){1, 10});
    cadre_tensor *three = training_f32(3, (const float[]){1, 1, 1});
    cadre_tensor *size;
    cadre_tensor *result;
    assert_public_ok(
        cadre_tensor_from_data(CADRE_F32, 2, (const int64_t[]){2, 3}, values, &losses));
    assert_public_ok(cadre_tensor_from_i64(3, &size));
    assert_public_ok(cadre_compute_average_loss(NULL, losses, rows, size, &result));
    assert_true(scalar(result) == (6 + 150) / 3.0f);
    cadre_tensor_release(result);
    assert_public_ok(cadre_compute_average_loss(NULL, losses, losses, size, &result));
    assert_true(fabsf(scalar(result) - 91 / 3.0f) < 1e-5f);
    cadre_tensor_release(result);
    assert_public_error(cadre_compute_average_loss(NULL, losses, three, size, &result),
        CADRE_INVALID_ARGUMENT, "f32 [3] does not fit losses f32 [2, 3]");
    *(int64_t *)cadre_tensor_data(size) = 0;
    assert_public_ok(cadre_compute_average_loss(NULL, losses, NULL, size, &result));
    assert_true(scalar(result) == 0);
    cadre_tensor_release(result);
    *(int64_t *)cadre_tensor_data(size) = -1;
    assert_public_error(cadre_compute_average_loss(NULL, losses, NULL, size, &result),
        CADRE_INVALID_ARGUMENT, "global_batch_size is -1");
    assert_public_error(cadre_compute_average_loss(NULL, losses, NULL, rows, &result),
        CADRE_INVALID_ARGUMENT, "global_batch_size is f32 [2]");
    assert_public_error(cadre_compute_average_loss(NULL, size, NULL, size, &result),
        CADRE_INVALID_ARGUMENT, "per_example_loss is of type i64");
    assert_public_error(cadre_compute_average_loss(NULL, losses, NULL, NULL, &result),
        CADRE_FAILED_PRECONDITION, "without global_batch_size");
    assert_null(result);
    assert_public_error(cadre_scale_regularization_loss(NULL, losses, &result),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    cadre_tensor *one;
    assert_public_ok(cadre_tensor_from_f32(1, &one));
    assert_public_error(cadre_compute_average_loss(NULL, one, NULL, size, &result),
        CADRE_INVALID_ARGUMENT, "is a scalar");
    cadre_tensor_release(one);
    cadre_tensor_release(losses);
    cadre_tensor_release(rows);
    cadre_tensor_release(three);
    cadre_tensor_release(size);
}

/* --- random streams --- */

#define DRAWS 8

struct draws {
    uint64_t of[4][DRAWS]; /* by replica id */
    const char *name;
};

static cadre_status draw(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct draws *draws = user;
    cadre_random random;
    CADRE_TRY(cadre_random_stream(replica, 7, draws->name, &random));
    for (int i = 0; i < DRAWS; i++) {
        draws->of[cadre_replica_id(replica)][i] = cadre_random_u64(&random);
    }
    return CADRE_OK;
}

/* Three steps' draws. */
static void draw_steps(uint32_t replicas, struct draws draws[3])
{
    cadre_strategy *strategy = training_strategy(replicas);
    for (int i = 0; i < 3; i++) {
        draws[i] = (struct draws){.name = i == 2 ? "other" : NULL};
        assert_public_ok(cadre_run(strategy, draw, &draws[i], NULL, 0, NULL));
    }
    cadre_strategy_release(strategy);
}

static void streams_do_not_depend_on_the_number_of_replicas(void **state)
{
    (void)state;
    struct draws two[3];
    struct draws four[3];
    draw_steps(2, two);
    draw_steps(4, four);
    for (int step = 0; step < 3; step++) {
        assert_memory_equal(two[step].of, four[step].of, 2 * sizeof two[step].of[0]);
        for (int a = 0; a < 4; a++) {
            for (int b = 0; b < a; b++) {
                assert_memory_not_equal(
                    four[step].of[a], four[step].of[b], sizeof four[step].of[a]);
            }
            assert_memory_not_equal(
                four[step].of[a], four[(step + 1) % 3].of[a], sizeof four[step].of[a]);
        }
    }
}

static void streams_are_apart(void **state)
{
    (void)state;
    cadre_random a;
    cadre_random b;
    assert_public_ok(cadre_random_for_sample(1, "crop", 0, 5, &a));
    assert_public_ok(cadre_random_for_sample(1, "crop", 0, 5, &b));
    assert_int_equal(cadre_random_u64(&a), cadre_random_u64(&b));
    cadre_random left = cadre_random_split(&a, 0);
    cadre_random right = cadre_random_split(&a, 1);
    assert_true(cadre_random_u64(&left) != cadre_random_u64(&right));
    assert_public_ok(cadre_random_for_sample(1, "crop", 1, 5, &b));
    assert_true(cadre_random_u64(&a) != cadre_random_u64(&b));
    assert_public_ok(cadre_random_for_sample(1, "flip", 0, 5, &b));
    assert_public_ok(cadre_random_for_sample(1, "crop", 0, 5, &a));
    assert_true(cadre_random_u64(&a) != cadre_random_u64(&b));
    assert_public_error(cadre_random_stream(NULL, 1, "x", &a), CADRE_INVALID_ARGUMENT, "strategy");
    cadre_strategy *strategy = training_strategy(1);
    assert_public_ok(cadre_random_stream(NULL, 1, "x", &a));
    assert_public_ok(cadre_random_stream(NULL, 1, "x", &b));
    assert_int_equal(cadre_random_u64(&a), cadre_random_u64(&b));
    cadre_strategy_release(strategy);
}

static void draws_have_their_moments(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    cadre_random random;
    cadre_tensor *tensor;
    assert_public_ok(cadre_random_for_sample(3, NULL, 0, 0, &random));
    assert_public_ok(cadre_tensor_create(CADRE_F64, 1, (const int64_t[]){COUNT}, &tensor));
    const double *values = cadre_tensor_data(tensor);
    for (int kind = 0; kind < 2; kind++) {
        double sum = 0;
        double squares = 0;
        assert_public_ok(kind == 0 ? cadre_random_fill_uniform(&random, -1, 3, tensor)
                                   : cadre_random_fill_normal(&random, 2, 3, tensor));
        for (int i = 0; i < COUNT; i++) {
            assert_true(kind == 1 || (values[i] >= -1 && values[i] < 3));
            sum += values[i];
            squares += values[i] * values[i];
        }
        double mean = sum / COUNT;
        double deviation = sqrt(squares / COUNT - mean * mean);
        assert_true(fabs(mean - (kind == 0 ? 1 : 2)) < 0.06);
        assert_true(fabs(deviation - (kind == 0 ? 4 / sqrt(12) : 3)) < 0.06);
    }
    cadre_tensor *whole = training_i32(1, (const int32_t[]){0});
    assert_public_error(
        cadre_random_fill_uniform(&random, 0, 1, whole), CADRE_INVALID_ARGUMENT, "of type i32");
    assert_public_error(cadre_random_fill_uniform(&random, 1, 0, tensor), CADRE_INVALID_ARGUMENT,
        "[1, 0) is no range");
    assert_public_error(
        cadre_random_fill_normal(&random, 0, -1, tensor), CADRE_INVALID_ARGUMENT, "deviation -1");
    assert_int_equal(cadre_random_below(&random, 0), 0);
    cadre_tensor_release(whole);
    cadre_tensor_release(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_add_up_to_the_mean),
        cmocka_unit_test(the_size_may_be_given_anywhere),
        cmocka_unit_test(streams_do_not_depend_on_the_number_of_replicas),
        cmocka_unit_test(streams_are_apart),
        cmocka_unit_test(draws_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
