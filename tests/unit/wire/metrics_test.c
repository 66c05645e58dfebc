/* SPDX-License-Identifier: Apache-2.0
 * Values by step: each rule of the decoder, and the largest messages. */
#include <math.h>

#include "cadre/v1/jobs.pb-c.h"
#include "tests/unit/wire/refuse.h"

SEND(task_up)
SEND(metrics_request)
SEND(metrics_response)

static void values_of_a_task(void **state)
{
    (void)state;
    struct reported_value values[LIMIT_REPORTED_VALUES + 1] = {{.step = 1, .value = NAN}};
    const char *names[LIMIT_METRICS + 1];
    for (size_t i = 0; i <= LIMIT_METRICS; i++) {
        names[i] = "loss";
    }
    struct task_up up = {.type = TASK_UP_VALUES,
        .values = {.generation = {1, 1},
            .names = names,
            .name_count = LIMIT_METRICS,
            .values = values,
            .value_count = LIMIT_REPORTED_VALUES,
            .end = LIMIT_REPORTED_VALUES}};
    assert_ok(send_task_up(&up), &error);
    up.values.name_count++;
    assert_error(send_task_up(&up), TOO_LARGE, &error, "TaskValues.names has 17 entries");
    up.values.name_count = 1;
    up.values.value_count++;
    assert_error(send_task_up(&up), TOO_LARGE, &error, "TaskValues.values has 1025 entries");
    up.values.value_count = 2;
    values[1].name = 1;
    assert_error(send_task_up(&up), INVALID, &error, "has the name 1 of 1 names");
    values[1].name = LIMIT_METRICS;
    assert_error(send_task_up(&up), INVALID, &error, "ReportedValue.name is 16");
    values[1] = (struct reported_value){.step = LIMIT_POSITION + 1};
    assert_error(send_task_up(&up), INVALID, &error, "ReportedValue.step");
    values[1].step = 2;
    up.values.end = 1;
    assert_error(send_task_up(&up), INVALID, &error, "TaskValues.end is less");
    up.values.end = 2;
    up.values.numbered = true;
    assert_error(send_task_up(&up), INVALID, &error, "TaskValues.lap is 0");
    up.values.numbered = false;
    up.values.value_count = 0;
    assert_error(send_task_up(&up), INVALID, &error, "TaskValues.values is empty");
    up.values.value_count = 1;
    names[0] = "a\nb";
    assert_error(send_task_up(&up), INVALID, &error, "TaskValues.names");
    names[0] = "loss";
    up.values.generation.number = 0;
    assert_error(send_task_up(&up), INVALID, &error, "Generation.number is 0");
}

static void requests(void **state)
{
    (void)state;
    const char *names[LIMIT_JOB_SERIES + 1];
    for (size_t i = 0; i <= LIMIT_JOB_SERIES; i++) {
        names[i] = "loss";
    }
    struct metrics_request request = {.id = {1}, .names = names, .name_count = LIMIT_JOB_SERIES};
    assert_ok(send_metrics_request(&request), &error);
    request.name_count++;
    assert_error(send_metrics_request(&request), TOO_LARGE, &error, "MetricsRequest.names has 33");
    request.name_count = 1;
    names[0] = "";
    assert_error(send_metrics_request(&request), INVALID, &error, "MetricsRequest.names is empty");
    request.name_count = 0;
    request.last_step = LIMIT_POSITION + 1;
    assert_error(send_metrics_request(&request), INVALID, &error, "MetricsRequest.last_step");
    request.id.n = 0;
    assert_error(send_metrics_request(&request), INVALID, &error, "MetricsRequest.id");
}

static void answers(void **state)
{
    (void)state;
    struct series_bucket bucket = {.last_step = 3, .count = 4};
    struct series_point point = {.step = LIMIT_POSITION + 1};
    struct metric_series series = {
        .name = "loss", .stride = 4, .buckets = &bucket, .bucket_count = 1};
    struct metrics_response response = {.series = &series, .series_count = 1};
    assert_ok(send_metrics_response(&response), &error);
    bucket.first_step = 4;
    assert_error(send_metrics_response(&response), INVALID, &error, "SeriesBucket.first_step is 4");
    bucket.first_step = 0;
    bucket.not_finite = 5;
    assert_error(send_metrics_response(&response), INVALID, &error, "SeriesBucket.not_finite is 5");
    bucket.count = 0;
    assert_error(send_metrics_response(&response), INVALID, &error, "SeriesBucket.count is 0");
    series.bucket_count = 0;
    series.points = &point;
    series.point_count = 1;
    assert_error(send_metrics_response(&response), INVALID, &error, "SeriesPoint.step");
    series.point_count = 0;
    series.stride = 0;
    assert_error(send_metrics_response(&response), INVALID, &error, "MetricSeries.stride is 0");
    series.name = "";
    assert_error(send_metrics_response(&response), INVALID, &error, "MetricSeries.name is empty");
}

static void the_longest_answer_fits(void **state)
{
    (void)state;
    struct series_bucket *buckets = calloc(LIMIT_SERIES_BUCKETS, sizeof *buckets);
    struct series_point *points = calloc(LIMIT_SERIES_POINTS + 1, sizeof *points);
    struct verify_generation *generations =
        calloc(LIMIT_METRIC_GENERATIONS + 1, sizeof *generations);
    struct metric_series series[LIMIT_JOB_SERIES];
    char *name = long_text(LIMIT_NAME_BYTES - 1);
    const uint64_t most = LIMIT_POSITION;
    assert_true(buckets != NULL && points != NULL && generations != NULL);
    for (size_t i = 0; i < LIMIT_SERIES_BUCKETS; i++) {
        buckets[i] = (struct series_bucket){most, most, UINT64_MAX, UINT64_MAX, 1, 1, 1, 1};
    }
    for (size_t i = 0; i <= LIMIT_SERIES_POINTS; i++) {
        points[i] = (struct series_point){most, 1};
    }
    for (size_t i = 0; i <= LIMIT_METRIC_GENERATIONS; i++) {
        generations[i] = (struct verify_generation){
            {UINT64_MAX, UINT64_MAX}, most, true, LIMIT_TASKS_PER_JOB, UINT64_MAX};
    }
    for (size_t i = 0; i < LIMIT_METRICS; i++) {
        series[i] = (struct metric_series){
            name, most, buckets, LIMIT_SERIES_BUCKETS, points, LIMIT_SERIES_POINTS};
        series[LIMIT_METRICS + i] = (struct metric_series){name, most, buckets,
            LIMIT_SERIES_BUCKETS / LIMIT_EVALUATION_PART, points,
            LIMIT_SERIES_POINTS / LIMIT_EVALUATION_PART};
    }
    struct metrics_response response = {
        series, LIMIT_JOB_SERIES, generations, LIMIT_METRIC_GENERATIONS, UINT64_MAX, UINT64_MAX};
    assert_ok(send_metrics_response(&response), &error);
    response.generation_count++;
    assert_error(send_metrics_response(&response), TOO_LARGE, &error, "has 1025 entries");
    response.generation_count = 0;
    response.series_count = 1;
    series[0].point_count++;
    assert_error(send_metrics_response(&response), TOO_LARGE, &error, "has 4097 entries");
    free(name);
    free(generations);
    free(points);
    free(buckets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_a_task),
        cmocka_unit_test(requests),
        cmocka_unit_test(answers),
        cmocka_unit_test(the_longest_answer_fits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
