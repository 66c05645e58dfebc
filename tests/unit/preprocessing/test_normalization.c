/* SPDX-License-Identifier: Apache-2.0
 * Normalization: scaling and back, moments of parts, and adapting to a dataset by hand. */
#include "tests/unit/runtime/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/preprocessing/moments.h"

static cadre_tensor *numbers(cadre_dtype dtype, int64_t rows, int64_t columns, const void *values)
{
    const int64_t dims[2] = {rows, columns};
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_data(dtype, 2, dims, values, &tensor));
    return tensor;
}

static cadre_tensor *list(size_t count, const double *values)
{
    const int64_t dims[1] = {(int64_t)count};
    cadre_tensor *tensor;
    assert_public_ok(cadre_tensor_from_data(CADRE_F64, 1, dims, values, &tensor));
    return tensor;
}

static cadre_normalization *made(size_t count, const double *mean, const double *variance)
{
    cadre_normalization *normalization;
    cadre_tensor *means = list(count, mean);
    cadre_tensor *variances = list(count, variance);
    assert_public_ok(cadre_normalization_create(means, variances, -1, &normalization));
    cadre_tensor_release(means);
    cadre_tensor_release(variances);
    return normalization;
}

static void assert_close(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

/* --- scaling --- */

static void values_are_scaled_and_back(void **state)
{
    (void)state;
    cadre_normalization *normalization = made(2, (double[]){1, -2}, (double[]){4, 0.25});
    cadre_tensor *in = numbers(CADRE_F32, 2, 2, (float[]){1, -2, 5, -1});
    cadre_tensor *out;
    cadre_tensor *back;
    assert_public_ok(cadre_normalization_apply(normalization, in, &out));
    const float *scaled = cadre_tensor_const_data(out);
    const float wanted[4] = {0, 0, 2, 2};
    assert_memory_equal(scaled, wanted, sizeof wanted);
    assert_public_ok(cadre_normalization_invert(normalization, out, &back));
    assert_memory_equal(cadre_tensor_const_data(back), cadre_tensor_const_data(in), 16);
    cadre_tensor_release(back);
    cadre_tensor_release(out);
    cadre_tensor_release(in);
    cadre_normalization_release(normalization);
}

/* The axis before the last one: rows of 3 belong to one feature. */
static void any_axis_can_hold_the_features(void **state)
{
    (void)state;
    cadre_tensor *mean = list(2, (double[]){10, 20});
    cadre_tensor *variance = list(2, (double[]){1, 100});
    cadre_normalization *normalization;
    assert_public_ok(cadre_normalization_create(mean, variance, -2, &normalization));
    cadre_tensor *in = numbers(CADRE_I32, 2, 3, (int32_t[]){10, 11, 12, 20, 30, 0});
    cadre_tensor *out;
    assert_public_ok(cadre_normalization_apply(normalization, in, &out));
    assert_int_equal(cadre_tensor_dtype(out), CADRE_F32);
    const float wanted[6] = {0, 1, 2, 0, 1, -2};
    assert_memory_equal(cadre_tensor_const_data(out), wanted, sizeof wanted);
    cadre_tensor_release(out);
    cadre_tensor_release(in);
    cadre_normalization_release(normalization);
    cadre_tensor_release(mean);
    cadre_tensor_release(variance);
}

static void one_mean_for_all_is_a_scalar(void **state)
{
    (void)state;
    cadre_tensor *mean;
    cadre_tensor *variance;
    cadre_normalization *normalization;
    cadre_tensor *out;
    assert_public_ok(cadre_tensor_from_f32(2, &mean));
    assert_public_ok(cadre_tensor_from_f64(0, &variance)); /* then 1e-7 is what it divides by */
    assert_public_ok(cadre_normalization_create(mean, variance, 0, &normalization));
    cadre_tensor *in = numbers(CADRE_F64, 1, 3, (double[]){2, 2 + 1e-7, 1});
    assert_public_ok(cadre_normalization_apply(normalization, in, &out));
    const double *scaled = cadre_tensor_const_data(out);
    assert_int_equal(cadre_tensor_dtype(out), CADRE_F64);
    assert_true(scaled[0] == 0 && fabs(scaled[1] - 1) < 1e-6 && fabs(scaled[2] + 1e7) < 1);
    cadre_tensor_release(out);
    assert_public_ok(cadre_normalization_moments(normalization, &out, NULL));
    assert_int_equal(cadre_tensor_rank(out), 0);
    cadre_tensor_release(out);
    cadre_tensor_release(in);
    cadre_normalization_release(normalization);
    cadre_tensor_release(mean);
    cadre_tensor_release(variance);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    cadre_tensor *two = list(2, (double[]){1, 2});
    cadre_tensor *three = list(3, (double[]){1, 2, 3});
    cadre_tensor *negative = list(2, (double[]){1, -2});
    cadre_tensor *nan = list(2, (double[]){1, (double)NAN});
    cadre_normalization *n;
    assert_public_error(cadre_normalization_create(two, three, -1, &n), CADRE_INVALID_ARGUMENT,
        "mean and variance are f64 [2] and f64 [3]");
    assert_null(n);
    assert_public_error(cadre_normalization_create(two, negative, -1, &n), CADRE_INVALID_ARGUMENT,
        "feature 1 has the mean 2 and the variance -2");
    assert_public_error(
        cadre_normalization_create(nan, two, -1, &n), CADRE_INVALID_ARGUMENT, "feature 1");
    assert_public_error(
        cadre_normalization_create(two, two, 0, &n), CADRE_INVALID_ARGUMENT, "axis 0");
    assert_public_error(
        cadre_normalization_create(NULL, two, -1, &n), CADRE_INVALID_ARGUMENT, "'mean'");
    assert_public_ok(cadre_normalization_create(two, two, -1, &n));
    cadre_tensor *out;
    assert_public_error(cadre_normalization_apply(n, three, &out), CADRE_INVALID_ARGUMENT,
        "values of f64 [3] do not fit a normalization of 2 features along axis -1");
    cadre_tensor *scalar;
    assert_public_ok(cadre_tensor_from_f32(1, &scalar));
    assert_public_error(
        cadre_normalization_apply(n, scalar, &out), CADRE_INVALID_ARGUMENT, "f32 []");
    cadre_tensor *truth;
    const int64_t dims[1] = {2};
    assert_public_ok(cadre_tensor_create(CADRE_BOOL, 1, dims, &truth));
    assert_public_error(
        cadre_normalization_apply(n, truth, &out), CADRE_INVALID_ARGUMENT, "cannot be normalized");
    assert_public_error(cadre_normalization_apply(NULL, two, &out), CADRE_INVALID_ARGUMENT,
        "cadre_normalization_apply was given NULL as its argument 'normalization'");
    assert_null(out);
    cadre_normalization_release(n);
    cadre_tensor *all[] = {two, three, negative, nan, scalar, truth};
    for (size_t i = 0; i < 6; i++) {
        cadre_tensor_release(all[i]);
    }
}

/* --- moments --- */

/* Large numbers that differ little: a sum of squares would lose all of it. */
static void nothing_is_lost_beside_a_large_mean(void **state)
{
    (void)state;
    double values[300];
    double whole[MOMENTS_COUNT(1)];
    double merged[MOMENTS_COUNT(1)] = {0};
    for (int i = 0; i < 300; i++) {
        values[i] = 1e9 + i % 3; /* variance 2/3 */
    }
    for (int part = 0; part < 30; part++) {
        cadre_tensor *tensor = list(10, values + 10 * part);
        const struct moments_layout layout = {.outer = 10, .features = 1, .inner = 1};
        double of_part[MOMENTS_COUNT(1)];
        moments_of(tensor, &layout, of_part);
        moments_merge(merged, of_part, 1);
        cadre_tensor_release(tensor);
    }
    cadre_tensor *tensor = list(300, values);
    moments_of(tensor, &(struct moments_layout){300, 1, 1}, whole);
    cadre_tensor_release(tensor);
    assert_true(merged[0] == 300 && whole[0] == 300);
    assert_true(fabs(merged[1] - (1e9 + 1)) < 1e-6);
    assert_true(fabs(merged[2] / 300 - 2.0 / 3) < 1e-6);
    assert_true(fabs(whole[2] / 300 - 2.0 / 3) < 1e-6);
}

static void nothing_adds_nothing(void **state)
{
    (void)state;
    double moments[MOMENTS_COUNT(2)] = {3, 1, 2, 3, 4};
    const double before[MOMENTS_COUNT(2)] = {3, 1, 2, 3, 4};
    double none[MOMENTS_COUNT(2)];
    const int64_t dims[2] = {0, 2};
    cadre_tensor *empty;
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 2, dims, NULL, &empty));
    moments_of(empty, &(struct moments_layout){0, 2, 1}, none);
    moments_merge(moments, none, 2);
    assert_memory_equal(moments, before, sizeof before);
    moments_merge(none, moments, 2);
    assert_memory_equal(none, before, sizeof before);
    cadre_tensor_release(empty);
}

/* --- adapting --- */

enum { ROWS = 5000, COLUMNS = 3 };

static float table[ROWS][COLUMNS];

static void fill_table(void)
{
    struct prng prng = {.state = 7};
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            table[row][column] = (float)prng_uniform(&prng, 1000) / 100.0F + 50.0F * (float)column;
        }
    }
}

static cadre_dataset *rows(void)
{
    cadre_tensor *tensor = numbers(CADRE_F32, ROWS, COLUMNS, table);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

static void check_moments(cadre_normalization *normalization)
{
    cadre_tensor *mean;
    cadre_tensor *variance;
    assert_public_ok(cadre_normalization_moments(normalization, &mean, &variance));
    assert_int_equal(cadre_tensor_count(mean), COLUMNS);
    for (int column = 0; column < COLUMNS; column++) {
        double sum = 0;
        double squares = 0;
        for (int row = 0; row < ROWS; row++) {
            sum += (double)table[row][column];
        }
        for (int row = 0; row < ROWS; row++) {
            double off = (double)table[row][column] - sum / ROWS;
            squares += off * off;
        }
        assert_close(((const double *)cadre_tensor_const_data(mean))[column], sum / ROWS);
        assert_close(((const double *)cadre_tensor_const_data(variance))[column], squares / ROWS);
    }
    cadre_tensor_release(mean);
    cadre_tensor_release(variance);
}

/* By place and in order, with one replica and several, over more than a round: the same bits. */
static void all_ways_of_reading_give_the_same_bits(void **state)
{
    (void)state;
    cadre_tensor *first[2] = {NULL, NULL};
    for (uint32_t replicas = 1; replicas <= 3; replicas += 2) {
        for (int ordered = 0; ordered < 2; ordered++) {
            cadre_strategy *strategy = training_strategy(replicas);
            cadre_dataset *data = rows();
            data = ordered ? cadre_dataset_shuffle(data, 1, 0, NULL) : data; /* keeps the order */
            cadre_normalization *normalization;
            assert_public_ok(cadre_normalization_adapt(
                strategy, cadre_dataset_batch(data, 3, false), NULL, &normalization));
            check_moments(normalization);
            cadre_tensor *mean;
            cadre_tensor *variance;
            assert_public_ok(cadre_normalization_moments(normalization, &mean, &variance));
            if (first[0] == NULL) {
                first[0] = cadre_tensor_retain(mean);
                first[1] = cadre_tensor_retain(variance);
            }
            assert_memory_equal(cadre_tensor_const_data(mean), cadre_tensor_const_data(first[0]),
                COLUMNS * sizeof(double));
            assert_memory_equal(cadre_tensor_const_data(variance),
                cadre_tensor_const_data(first[1]), COLUMNS * sizeof(double));
            cadre_tensor_release(mean);
            cadre_tensor_release(variance);
            cadre_normalization_release(normalization);
            cadre_strategy_release(strategy);
        }
    }
    cadre_tensor_release(first[0]);
    cadre_tensor_release(first[1]);
}

/* What was adapted then maps the dataset: mean 0, variance 1. */
static void it_maps_what_it_was_adapted_to(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_normalization *first;
    cadre_normalization *second;
    assert_public_ok(cadre_normalization_adapt(strategy, rows(), NULL, &first));
    cadre_dataset *data = cadre_dataset_map(rows(), cadre_normalization_map, first, NULL);
    assert_public_ok(cadre_normalization_adapt(strategy, data, NULL, &second));
    cadre_tensor *mean;
    cadre_tensor *variance;
    assert_public_ok(cadre_normalization_moments(second, &mean, &variance));
    for (int column = 0; column < COLUMNS; column++) {
        assert_true(fabs(((const double *)cadre_tensor_const_data(mean))[column]) < 1e-5);
        assert_true(fabs(((const double *)cadre_tensor_const_data(variance))[column] - 1) < 1e-5);
    }
    cadre_tensor_release(mean);
    cadre_tensor_release(variance);
    cadre_normalization_release(first);
    cadre_normalization_release(second);
    cadre_strategy_release(strategy);
}

static cadre_status fail_late(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    ret_out->count = 1;
    const float *row = cadre_tensor_const_data(in->tensors[0]);
    return memcmp(row, table[ROWS - 10], sizeof table[0]) == 0
               ? cadre_fail(CADRE_DATA_LOSS, "row of no use")
               : CADRE_OK;
}

static cadre_status cut(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t number = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    int64_t size = number < 6 ? 2 : 3;
    ret_out->count = 1;
    return cadre_tensor_create(CADRE_F32, 1, &size, &ret_out->tensors[0]);
}

static void what_cannot_be_adapted_to_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_normalization *n;
    cadre_adapt_options options = {.component = 1};
    assert_public_error(cadre_normalization_adapt(strategy, rows(), &options, &n),
        CADRE_INVALID_ARGUMENT, "there is no component 1");
    assert_null(n);
    options = (cadre_adapt_options){.axis = -2};
    assert_public_error(cadre_normalization_adapt(strategy, rows(), &options, &n),
        CADRE_INVALID_ARGUMENT, "no axis -2");
    options = (cadre_adapt_options){.axis = 1};
    assert_public_error(cadre_normalization_adapt(strategy, rows(), &options, &n),
        CADRE_INVALID_ARGUMENT, "no axis 1");
    assert_public_error(cadre_normalization_adapt(strategy,
                            cadre_dataset_batch(cadre_dataset_range(0, 9, 1), 2, false), NULL, &n),
        CADRE_INVALID_ARGUMENT, "is not one number of features");
    assert_public_error(cadre_normalization_adapt(
                            strategy, cadre_dataset_repeat(rows(), CADRE_REPEAT_FOREVER), NULL, &n),
        CADRE_INVALID_ARGUMENT, "without an end");
    assert_public_error(
        cadre_normalization_adapt(strategy, cadre_dataset_take(rows(), 0), NULL, &n),
        CADRE_INVALID_ARGUMENT, "no number has no mean");
    assert_public_error(cadre_normalization_adapt(
                            strategy, cadre_dataset_map(rows(), fail_late, NULL, NULL), NULL, &n),
        CADRE_DATA_LOSS, "row of no use");
    const cadre_element_spec any = {
        .count = 1, .tensors[0] = {.dtype = CADRE_F32, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}};
    const cadre_map_options map = {.output = &any};
    options = (cadre_adapt_options){.axis = CADRE_AXIS_NONE};
    assert_public_ok(cadre_normalization_adapt(
        strategy, cadre_dataset_map(cadre_dataset_range(0, 9, 1), cut, NULL, &map), &options, &n));
    cadre_normalization_release(n);
    assert_public_error(cadre_normalization_adapt(strategy, cadre_dataset_range(0, 9, 0), NULL, &n),
        CADRE_INVALID_ARGUMENT, "step");
    assert_public_error(
        cadre_normalization_adapt(strategy, NULL, NULL, &n), CADRE_RESOURCE_EXHAUSTED, "NULL");
    /* None of that harms the strategy. */
    options = (cadre_adapt_options){.axis = CADRE_AXIS_NONE};
    assert_public_ok(cadre_normalization_adapt(strategy, rows(), &options, &n));
    cadre_normalization_release(n);
    cadre_strategy_release(strategy);
    assert_public_error(cadre_normalization_adapt(strategy, rows(), NULL, &n),
        CADRE_FAILED_PRECONDITION, "cadre_normalization_adapt");
}

int main(void)
{
    fill_table();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_scaled_and_back),
        cmocka_unit_test(any_axis_can_hold_the_features),
        cmocka_unit_test(one_mean_for_all_is_a_scalar),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(nothing_is_lost_beside_a_large_mean),
        cmocka_unit_test(nothing_adds_nothing),
        cmocka_unit_test(all_ways_of_reading_give_the_same_bits),
        cmocka_unit_test(it_maps_what_it_was_adapted_to),
        cmocka_unit_test(what_cannot_be_adapted_to_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
