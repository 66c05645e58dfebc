/* SPDX-License-Identifier: Apache-2.0
 * How values are counted in buckets, and generations described. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/summaries/generation_table.h"
#include "worker/library/runtime/summaries/histogram.h"

static double limits[HISTOGRAM_BUCKETS_MAX];
static double counts[HISTOGRAM_BUCKETS_MAX];

static struct summary_histogram count_doubles(
    const double values[], int64_t count, uint32_t buckets, uint64_t *ret_left_out)
{
    struct summary_histogram histogram = {.limits = limits, .counts = counts};
    cadre_tensor *tensor;
    assert_public_ok(
        cadre_tensor_from_data(CADRE_F64, 1, (const int64_t[]){count}, values, &tensor));
    histogram_of(tensor, buckets, &histogram, ret_left_out);
    cadre_tensor_release(tensor);
    return histogram;
}

static void values_are_in_buckets_of_equal_width(void **state)
{
    (void)state;
    uint64_t left_out;
    const double values[] = {0, 1, 2, 3, 4, 4, 1.5};
    struct summary_histogram histogram = count_doubles(values, 7, 4, &left_out);
    assert_int_equal(histogram.bucket_count, 4);
    assert_memory_equal(limits, ((const double[]){1, 2, 3, 4}), 4 * sizeof(double));
    assert_memory_equal(counts, ((const double[]){1, 2, 1, 3}), 4 * sizeof(double));
    assert_true(histogram.min == 0 && histogram.max == 4 && histogram.count == 7);
    assert_true(histogram.sum == 15.5 && histogram.sum_squares == 48.25);
    assert_int_equal(left_out, 0);
}

static void what_is_not_finite_is_in_no_bucket(void **state)
{
    (void)state;
    uint64_t left_out;
    const double values[] = {NAN, 1, INFINITY, 3, -INFINITY};
    struct summary_histogram histogram = count_doubles(values, 5, 2, &left_out);
    assert_int_equal(left_out, 3);
    assert_true(histogram.count == 2 && counts[0] == 1 && counts[1] == 1);
    histogram = count_doubles((const double[]){NAN}, 1, 2, &left_out);
    assert_int_equal(left_out, 1);
    assert_int_equal(histogram.bucket_count, 0);
}

static void corners(void **state)
{
    (void)state;
    uint64_t left_out;
    struct summary_histogram histogram = count_doubles(NULL, 0, 30, &left_out);
    assert_true(histogram.bucket_count == 0 && histogram.count == 0);
    histogram = count_doubles((const double[]){7, 7, 7}, 3, 30, &left_out);
    assert_true(histogram.bucket_count == 1 && limits[0] == 7 && counts[0] == 3);
    const double widest[] = {-DBL_MAX, 0, DBL_MAX};
    histogram = count_doubles(widest, 3, 2, &left_out);
    assert_true(isfinite(limits[0]) && limits[1] == DBL_MAX);
    assert_true(counts[0] == 1 && counts[1] == 2);
    const double nearest[] = {1, nextafter(1, 2)};
    histogram = count_doubles(nearest, 2, 30, &left_out);
    double sum = 0;
    for (uint32_t i = 0; i < histogram.bucket_count; i++) {
        sum += counts[i];
    }
    assert_true(sum == 2);
}

/* More values than are converted at once. */
static void many_values(void **state)
{
    (void)state;
    uint64_t left_out;
    enum { COUNT = 10000 };
    double *values = calloc(COUNT, sizeof *values);
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    struct summary_histogram histogram = count_doubles(values, COUNT, 10, &left_out);
    for (uint32_t i = 0; i < histogram.bucket_count; i++) {
        assert_in_range((uint64_t)counts[i], 999, 1001);
    }
    free(values);
}

static void check_text(const struct generation_table *table, const char *wanted)
{
    char *text = generation_table_text(table);
    assert_non_null(text);
    if (strstr(text, wanted) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", wanted, text);
    }
    free(text);
}

static void generations_say_why_they_came(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct generation_table table = {0};
    assert_ok(
        generation_table_add(&table, 1, 0, (uint32_t[]){2, 0, 1, 3}, 4, false, &error), &error);
    check_text(&table, "| 1 | 0 | 4 | 0-3 | started |\n");
    assert_ok(generation_table_add(&table, 2, 7, (uint32_t[]){0, 3}, 2, false, &error), &error);
    check_text(&table, "| 2 | 7 | 2 | 0, 3 | tasks 1, 2 left |\n");
    assert_ok(generation_table_add(&table, 3, 9, (uint32_t[]){0, 9}, 2, false, &error), &error);
    check_text(&table, "| 3 | 9 | 2 | 0, 9 | task 3 left; task 9 joined |\n");
    assert_ok(generation_table_add(&table, 4, 9, (uint32_t[]){9, 0}, 2, false, &error), &error);
    check_text(&table, "| 4 | 9 | 2 | 0, 9 | a connection was lost, or a task started again |\n");
    for (uint64_t i = 5; i < 60; i++) {
        assert_ok(generation_table_add(&table, i, i, (uint32_t[]){0}, 1, false, &error), &error);
    }
    assert_int_equal(table.count, GENERATION_ROWS_MAX);
    check_text(&table, "| 59 | 59 | 1 | 0 |");
    generation_table_clear(&table);
}

static void the_first_generation_of_a_task(void **state)
{
    (void)state;
    const struct {
        uint64_t number;
        uint64_t position;
        bool restores;
        const char *why;
    } cases[] = {
        {2, 0, false, "| all began again from the start |"},
        {2, 40, true, "| all began again from the checkpoint after 40 steps |"},
        {2, 40, false, "| this task joined |"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct generation_table table = {0};
        assert_ok(generation_table_add(&table, cases[i].number, cases[i].position, (uint32_t[]){0},
                      1, cases[i].restores, &error),
            &error);
        check_text(&table, cases[i].why);
        generation_table_clear(&table);
    }
}

/* A list that is too long for its cell ends with dots. */
static void many_tasks(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct cadre_error error = {0};
    struct generation_table table = {0};
    uint32_t slots[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        slots[i] = 2 * i;
    }
    assert_ok(generation_table_add(&table, 1, 0, slots, COUNT, false, &error), &error);
    assert_ok(generation_table_add(&table, 2, 5, (uint32_t[]){1}, 1, false, &error), &error);
    check_text(&table, "... | started |\n");
    check_text(&table, "... left; task 1 joined |\n");
    generation_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_in_buckets_of_equal_width),
        cmocka_unit_test(what_is_not_finite_is_in_no_bucket),
        cmocka_unit_test(corners),
        cmocka_unit_test(many_values),
        cmocka_unit_test(generations_say_why_they_came),
        cmocka_unit_test(the_first_generation_of_a_task),
        cmocka_unit_test(many_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
