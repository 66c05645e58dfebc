/* SPDX-License-Identifier: Apache-2.0
 * What a job's program reported, from model structs to the public ones. */
#include "common/view/result.h"
#include "common/view/view.h"

/* Arrays of the result. */
enum { SERIES, GENERATIONS, BUCKETS, POINTS };
_Static_assert(POINTS < RESULT_ARRAYS, "a result has so many arrays");

static void view_series_fill(const struct metric_series *from, cadre_series_bucket *buckets,
    cadre_series_point *points, cadre_series *ret)
{
    for (size_t i = 0; i < from->bucket_count; i++) {
        const struct series_bucket *bucket = &from->buckets[i];
        buckets[i] = (cadre_series_bucket){.first_step = bucket->first_step,
            .last_step = bucket->last_step,
            .count = bucket->count,
            .not_finite = bucket->not_finite,
            .minimum = bucket->minimum,
            .maximum = bucket->maximum,
            .mean = bucket->mean,
            .last = bucket->last};
    }
    for (size_t i = 0; i < from->point_count; i++) {
        points[i] =
            (cadre_series_point){.step = from->points[i].step, .value = from->points[i].value};
    }
    *ret = (cadre_series){.name = from->name,
        .stride = from->stride,
        .buckets = buckets,
        .bucket_count = from->bucket_count,
        .points = points,
        .point_count = from->point_count};
}

static void fill_all(const struct metrics_response *response, cadre_job_series *metrics,
    cadre_series *series, cadre_series_generation *generations, cadre_series_bucket *buckets,
    cadre_series_point *points)
{
    for (size_t i = 0; i < response->series_count; i++) {
        view_series_fill(&response->series[i], buckets, points, &series[i]);
        buckets += series[i].bucket_count;
        points += series[i].point_count;
    }
    for (size_t i = 0; i < response->generation_count; i++) {
        const struct verify_generation *from = &response->generations[i];
        generations[i] = (cadre_series_generation){.number = from->generation.number,
            .first_step = from->resume,
            .tasks = from->members,
            .restarted = from->restarted,
            .began_us = from->planned_us};
    }
    *metrics = (cadre_job_series){.series = series,
        .count = response->series_count,
        .generations = generations,
        .generation_count = response->generation_count,
        .lost_bytes = response->lost_bytes,
        .refused = response->refused};
}

cadre_job_series *view_series_new(const struct metrics_response *response, struct wire_arena *arena)
{
    size_t buckets = 0;
    size_t points = 0;
    for (size_t i = 0; i < response->series_count; i++) {
        buckets += response->series[i].bucket_count;
        points += response->series[i].point_count;
    }
    cadre_job_series *metrics = result_new(sizeof *metrics, arena);
    void *arrays[RESULT_ARRAYS] = {NULL};
    if (metrics != NULL) {
        arrays[SERIES] =
            result_array(metrics, SERIES, response->series_count, sizeof(cadre_series));
        arrays[GENERATIONS] = result_array(
            metrics, GENERATIONS, response->generation_count, sizeof(cadre_series_generation));
        arrays[BUCKETS] = result_array(metrics, BUCKETS, buckets, sizeof(cadre_series_bucket));
        arrays[POINTS] = result_array(metrics, POINTS, points, sizeof(cadre_series_point));
    }
    for (size_t i = 0; i < RESULT_ARRAYS; i++) {
        if (arrays[i] == NULL) {
            result_discard(metrics);
            return NULL;
        }
    }
    fill_all(
        response, metrics, arrays[SERIES], arrays[GENERATIONS], arrays[BUCKETS], arrays[POINTS]);
    return metrics;
}
