/* SPDX-License-Identifier: Apache-2.0
 * The example gpt on the CPU: products of every form against three loops, each single gradient
 * against differences of the loss, and what AdamW writes. */
#include <math.h>
#include <stdlib.h>

#include "deploy/examples/gpt/product.h"
#include "tests/lib/test.h"
#include "tests/unit/examples/gpt_case.h"

/* --- products --- */

/* Element (row, column) of the batch's matrix number `i`. */
static float at(const struct matrix *matrix, int64_t i, int64_t row, int64_t column)
{
    return matrix->data[i * matrix->stride + (matrix->transposed ? column * matrix->ld + row
                                                                 : row * matrix->ld + column)];
}

static void check_product(const struct product *product, const float *before)
{
    for (int64_t i = 0; i < product->batch; i++) {
        for (int64_t row = 0; row < product->m; row++) {
            for (int64_t column = 0; column < product->ldc; column++) {
                const int64_t place = i * product->stride_c + row * product->ldc + column;
                double sum = (double)before[place];
                if (column < product->n) {
                    sum = product->add ? sum : 0;
                    for (int64_t k = 0; k < product->k; k++) {
                        sum += (double)at(&product->a, i, row, k) *
                               (double)at(&product->b, i, k, column);
                    }
                }
                assert_true(
                    fabs((double)product->c[place] - sum) <= 1e-6 * (10 + (double)product->k));
            }
        }
    }
}

static void test_products(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {6, 16, 8}, {7, 17, 3}, {5, 300, 1}, {97, 33, 300}, {200, 10, 257}};
    const int64_t most = 400 * 400;
    float *floats = malloc((size_t)(4 * most) * sizeof *floats);
    float *room = aligned_alloc(64, product_room() * sizeof *room);
    assert_non_null(floats);
    assert_non_null(room);
    float *c = floats + 2 * most;
    float *before = floats + 3 * most;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int form = 0; form < 8; form++) {
            const int64_t m = sizes[s][0];
            const int64_t n = sizes[s][1];
            const int64_t k = sizes[s][2];
            const bool ta = (form & 1) != 0;
            const bool tb = (form & 2) != 0;
            const struct product product = {.m = m,
                .n = n,
                .k = k,
                .a = {floats, (ta ? m : k) + 3, ta, ((ta ? k : m) + 1) * ((ta ? m : k) + 3)},
                .b = {floats + most, (tb ? k : n) + 2, tb, 11},
                .c = c,
                .ldc = n + 1,
                .stride_c = m * (n + 1),
                .batch = s < 3 ? 3 : 1,
                .add = (form & 4) != 0};
            uint64_t seed = s * 8 + (uint64_t)form;
            for (int64_t i = 0; i < 4 * most; i++) {
                floats[i] = gpt_case_draw(&seed);
            }
            for (int64_t i = 0; i < most; i++) {
                before[i] = c[i];
            }
            product_run(&product, room);
            check_product(&product, before);
        }
    }
    free(room);
    free(floats);
}

/* --- gradients --- */

/* The loss, in twice the precision that one float has: the sum of the tokens' losses. */
static double loss_of(struct gpt_case *one, struct compute *compute)
{
    struct pass pass = {
        .shape = &one->shape, .windows = {one->bytes, one->rows, one->shape.length}};
    gpt_case_run(one, compute, 1, false);
    pass_lay_out(&pass, one->room);
    double sum = 0;
    for (int64_t i = 0; i < one->rows * one->shape.length; i++) {
        sum += (double)pass.losses[i];
    }
    return sum;
}

static void check_kind(struct gpt_case *one, struct compute *compute, enum kind kind)
{
    const float span = 0.01f;
    const int64_t count = shape_count(&one->shape, kind);
    const int64_t stride = kind == EMBED || kind == HEAD ? 7 : 1; /* there are enough of them */
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double slope = fabs((double)one->slopes[kind][i]);
        largest = slope > largest ? slope : largest;
    }
    assert_true(largest > 0.01);
    for (int64_t i = 0; i < count; i += stride) {
        float *weight = &one->weights[kind][i];
        const float kept = *weight;
        *weight = kept + span;
        const double above = loss_of(one, compute);
        *weight = kept - span;
        const double below = loss_of(one, compute);
        *weight = kept;
        const double seen = (above - below) / (2 * (double)span);
        if (fabs(seen - (double)one->slopes[kind][i]) > 5e-3 * largest + 1e-3) {
            fail_msg("kind %d, element %lld: the slope is %g, by differences %g", (int)kind,
                (long long)i, (double)one->slopes[kind][i], seen);
        }
    }
}

static void test_gradients(void **state)
{
    (void)state;
    struct compute *compute = compute_cpu_open();
    assert_non_null(compute);
    struct gpt_case *one = gpt_case_new((struct shape){2, 2, 8, 5}, 3);
    gpt_case_run(one, compute, 1, true);
    assert_true(fabs((double)one->loss - loss_of(one, compute)) < 1e-4);
    for (int kind = 0; kind < KINDS; kind++) {
        check_kind(one, compute, (enum kind)kind);
    }
    gpt_case_free(one);
    compute_close(compute);
}

/* What comes later in a window changes nothing before it. */
static void test_it_does_not_look_ahead(void **state)
{
    (void)state;
    struct compute *compute = compute_cpu_open();
    struct gpt_case *one = gpt_case_new((struct shape){2, 4, 16, 8}, 1);
    struct pass pass = {.shape = &one->shape, .windows = {one->bytes, 1, 8}};
    pass_lay_out(&pass, one->room);
    gpt_case_run(one, compute, 1, false);
    float before[8];
    for (int t = 0; t < 8; t++) {
        before[t] = pass.losses[t];
    }
    one->bytes[5] ^= 1; /* foretold at 4, seen from 5 on */
    gpt_case_run(one, compute, 1, false);
    for (int t = 0; t < 8; t++) {
        assert_int_equal(pass.losses[t] == before[t], t < 4);
    }
    gpt_case_free(one);
    compute_close(compute);
}

/* --- the update --- */

static void test_adamw(void **state)
{
    (void)state;
    struct compute *compute = compute_cpu_open();
    const struct adamw step = {.rate = 0.1f,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .epsilon = 1e-8f,
        .decay = 0.5f,
        .correction1 = 0.1f,
        .correction2 = 0.01f};
    float weights[3] = {1, -2, 3};
    float first[3] = {0};
    float second[3] = {0};
    const float slopes[3] = {0.5f, -4, 0};
    compute->does->adamw(compute, &step, 3, weights, first, second, slopes);
    /* The first step is as long as the rate, whatever the slope, beside the decay. */
    assert_float_equal(weights[0], 1 - 0.1f - 0.05f, 1e-6f);
    assert_float_equal(weights[1], -2 + 0.1f + 0.1f, 1e-6f);
    assert_float_equal(weights[2], 3 - 0.15f, 1e-6f);
    assert_float_equal(first[1], -0.4f, 1e-6f);
    assert_float_equal(second[1], 0.16f, 1e-6f);
    compute_close(compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_it_does_not_look_ahead),
        cmocka_unit_test(test_adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
