/* SPDX-License-Identifier: Apache-2.0
 * What a job reported by step, as a curve, a table, CSV and JSON. */
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/job_options.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_metrics.h"

static const cadre_series_bucket buckets[] = {{.first_step = 1,
                                                  .last_step = 3,
                                                  .count = 3,
                                                  .minimum = 8,
                                                  .maximum = 10,
                                                  .mean = 9,
                                                  .last = 8},
    {.first_step = 4, .last_step = 7, .count = 4, .not_finite = 4, .last = NAN}};
static const cadre_series_point points[] = {
    {8, 4}, {9, INFINITY}, {10, 1e-7}, {12, -INFINITY}, {14, NAN}, {16, 2}};
static const cadre_series series[] = {{.name = "loss, \"of\" all",
                                          .stride = 4,
                                          .buckets = buckets,
                                          .bucket_count = 2,
                                          .points = points,
                                          .point_count = 6},
    {.name = "never", .stride = 1, .points = &points[4], .point_count = 1}};
static const cadre_series_generation generations[] = {{.number = 1, .tasks = 2, .began_us = 5},
    {.number = 2, .first_step = 8, .tasks = 1, .restarted = true, .began_us = 6}};
static const cadre_job_series metrics = {.series = series,
    .count = 2,
    .generations = generations,
    .generation_count = 2,
    .lost_bytes = 7,
    .refused = 3};

static FILE *out;
static char *text;
static size_t size;

static int set_up(void **state)
{
    (void)state;
    text = NULL;
    out = open_memstream(&text, &size);
    return out == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    fclose(out);
    free(text);
    return 0;
}

static void expect(const char *wanted)
{
    fflush(out);
    assert_string_equal(text, wanted);
}

static void test_csv(void **state)
{
    (void)state;
    render_metrics_csv_head(out);
    render_metrics_csv(&metrics, out);
    expect("name,step,value,minimum,maximum,first_step,count\n"
           "\"loss, \"\"of\"\" all\",3,9,8,10,1,3\n"
           "\"loss, \"\"of\"\" all\",7,NaN,NaN,NaN,4,4\n"
           "\"loss, \"\"of\"\" all\",8,4,4,4,8,1\n"
           "\"loss, \"\"of\"\" all\",9,Infinity,Infinity,Infinity,9,1\n"
           "\"loss, \"\"of\"\" all\",10,9.9999999999999995e-08,9.9999999999999995e-08,"
           "9.9999999999999995e-08,10,1\n"
           "\"loss, \"\"of\"\" all\",12,-Infinity,-Infinity,-Infinity,12,1\n"
           "\"loss, \"\"of\"\" all\",14,NaN,NaN,NaN,14,1\n"
           "\"loss, \"\"of\"\" all\",16,2,2,2,16,1\n"
           "never,14,NaN,NaN,NaN,14,1\n");
}

static void test_json(void **state)
{
    (void)state;
    assert_true(json_print_compact(json_of_series(3, &metrics), out));
    fflush(out);
    json_t *read = json_loads(text, 0, NULL);
    assert_non_null(read);
    json_t *loss = json_array_get(json_object_get(read, "series"), 0);
    json_t *point = json_array_get(json_object_get(loss, "points"), 1);
    assert_int_equal(json_integer_value(json_array_get(point, 0)), 9);
    assert_string_equal(json_string_value(json_array_get(point, 1)), "Infinity");
    json_t *bucket = json_array_get(json_object_get(loss, "buckets"), 1);
    assert_true(json_is_null(json_object_get(bucket, "mean")));
    assert_string_equal(json_string_value(json_object_get(bucket, "last")), "NaN");
    json_t *generation = json_array_get(json_object_get(read, "generations"), 1);
    assert_int_equal(json_integer_value(json_object_get(generation, "first_step")), 8);
    assert_int_equal(json_integer_value(json_object_get(read, "lost_bytes")), 7);
    json_decref(read);
}

static void test_the_table(void **state)
{
    (void)state;
    static const struct text_style plain;
    assert_true(render_metrics(&metrics, &plain, out));
    fflush(out);
    assert_non_null(strstr(text, "NAME"));
    char *row = strstr(text, "never");
    assert_non_null(row);
    assert_non_null(strstr(row, "NaN"));
    assert_non_null(strstr(row, "-"));
    assert_non_null(strstr(text, "1e-07")); /* the minimum of all, buckets included */
    render_metrics_notes(&metrics, out);
    fflush(out);
    assert_non_null(strstr(text, "7 bytes of these values were damaged"));
    assert_non_null(strstr(text, "3 values had a name beyond"));
}

/* A straight fall from the left to the right, and a generation in the middle. */
static void test_a_curve_in_ascii(void **state)
{
    (void)state;
    cadre_series_point fall[8];
    for (unsigned i = 0; i < 8; i++) {
        fall[i] = (cadre_series_point){.step = i, .value = 7.0 - i};
    }
    const cadre_series one = {.name = "loss", .stride = 1, .points = fall, .point_count = 8};
    const cadre_series_generation at = {.number = 2, .first_step = 4};
    const cadre_job_series job = {
        .series = &one, .count = 1, .generations = &at, .generation_count = 1};
    const struct curve_style style = {.columns = 20};
    assert_true(curve_draw(&one, &job, &style, out));
    expect("         7 |*       \n"
           "           | *      \n"
           "           |  *     \n"
           "           |   *    \n"
           "           |    *   \n"
           "           |     *  \n"
           "           |      * \n"
           "         0 |       *\n"
           "      step +----+---\n"
           "            0      7\n");
}

static void test_a_curve_in_braille(void **state)
{
    (void)state;
    const cadre_series_point two[] = {{0, 0}, {10, 1}};
    const cadre_series one = {.name = "loss", .stride = 1, .points = two, .point_count = 2};
    const cadre_job_series job = {.series = &one, .count = 1};
    const struct curve_style style = {.columns = 20, .braille = true};
    assert_true(curve_draw(&one, &job, &style, out));
    fflush(out);
    size_t rows = 0;
    for (const char *at = text; *at != '\0'; at++) {
        rows += *at == '\n' ? 1 : 0;
    }
    assert_int_equal(rows, CURVE_ROWS + 2);
    assert_non_null(strstr(text, " |\u2800")); /* nothing at the left of the highest row, ... */
    assert_non_null(strstr(text, "\u2800\n")); /* nor at the right of the lowest */
    assert_null(strchr(text, '*'));
}

/* One value, the same value at all steps, the widest doubles and steps: each is drawn. */
static void test_odd_curves(void **state)
{
    (void)state;
    const cadre_job_series none = {0};
    const cadre_series_point widest[] = {{0, -1.7e308}, {UINT64_C(1) << 62, 1.7e308}};
    const cadre_series_point flat[] = {{5, 3}, {6, 3}, {7, 3}};
    const cadre_series_point once[] = {{5, 1e-320}};
    const cadre_series all[] = {{.name = "a", .points = widest, .point_count = 2},
        {.name = "b", .points = flat, .point_count = 3},
        {.name = "c", .points = once, .point_count = 1}, series[0]};
    for (size_t i = 0; i < 4; i++) {
        for (unsigned columns = 0; columns < 600; columns += 37) {
            const struct curve_style style = {.columns = columns, .braille = columns % 2 == 0};
            assert_true(curve_draw(&all[i], i == 3 ? &metrics : &none, &style, out));
        }
    }
    assert_true(curve_draw(&all[1], &none, &(struct curve_style){.columns = 20}, out));
    fflush(out);
    assert_non_null(strstr(text, "           |        \n"
                                 "         3 |********\n"
                                 "           |        \n"));
    const struct curve_style style = {.columns = 40};
    assert_false(curve_draw(&series[1], &metrics, &style, out));
    render_curves(&metrics, &style, out);
    fflush(out);
    assert_non_null(strstr(text, "no value is finite"));
}

static void test_step_ranges(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "5", ":", "9:3", ":0", "0:0", "a:b", "1:2:3", "-1:4", "1:9999999999999999999", "1: 2"};
    uint64_t first = 9;
    uint64_t last = 9;
    assert_true(step_range_parse("3:8", &first, &last) && first == 3 && last == 8);
    assert_true(step_range_parse("3:", &first, &last) && first == 3 && last == 0);
    assert_true(step_range_parse(":8", &first, &last) && first == 0 && last == 8);
    assert_true(step_range_parse("0:1", &first, &last) && first == 0 && last == 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (step_range_parse(bad[i], &first, &last)) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_csv, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_curve_in_ascii, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_curve_in_braille, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_curves, set_up, tear_down),
        cmocka_unit_test(test_step_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
