/* SPDX-License-Identifier: Apache-2.0
 * What a job's program reported, by step, as JSON. */
#include <math.h>

#include "common/json/json.h"
#include "common/json/json_value.h"

/* JSON has no number for what is not finite. */
static json_t *json_series_value(double value)
{
    if (isfinite(value)) {
        return json_real(value);
    }
    return json_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static json_t *of_bucket(const cadre_series_bucket *bucket)
{
    json_t *json = json_object();
    bool finite = bucket->count > bucket->not_finite;
    json_object_set_new(json, "first_step", json_number(bucket->first_step));
    json_object_set_new(json, "last_step", json_number(bucket->last_step));
    json_object_set_new(json, "count", json_number(bucket->count));
    json_object_set_new(json, "not_finite", json_number(bucket->not_finite));
    json_object_set_new(json, "minimum", finite ? json_real(bucket->minimum) : json_null());
    json_object_set_new(json, "maximum", finite ? json_real(bucket->maximum) : json_null());
    json_object_set_new(json, "mean", finite ? json_real(bucket->mean) : json_null());
    json_object_set_new(json, "last", json_series_value(bucket->last));
    return json;
}

static json_t *of_series(const cadre_series *series)
{
    json_t *buckets = json_array();
    for (size_t i = 0; i < series->bucket_count; i++) {
        json_array_append_new(buckets, of_bucket(&series->buckets[i]));
    }
    json_t *points = json_array();
    for (size_t i = 0; i < series->point_count; i++) {
        json_t *point = json_array();
        json_array_append_new(point, json_number(series->points[i].step));
        json_array_append_new(point, json_series_value(series->points[i].value));
        json_array_append_new(points, point);
    }
    json_t *json = json_object();
    json_object_set_new(json, "name", json_string(series->name));
    json_object_set_new(json, "stride", json_number(series->stride));
    json_object_set_new(json, "buckets", buckets);
    json_object_set_new(json, "points", points);
    return json;
}

static json_t *of_generation(const cadre_series_generation *generation)
{
    json_t *json = json_object();
    json_object_set_new(json, "generation", json_number(generation->number));
    json_object_set_new(json, "first_step", json_number(generation->first_step));
    json_object_set_new(json, "tasks", json_number(generation->tasks));
    json_object_set_new(json, "restarted", json_boolean(generation->restarted));
    json_object_set_new(json, "began_us", json_number(generation->began_us));
    return json;
}

json_t *json_of_series(uint64_t job, const cadre_job_series *metrics)
{
    json_t *series = json_array();
    for (size_t i = 0; i < metrics->count; i++) {
        json_array_append_new(series, of_series(&metrics->series[i]));
    }
    json_t *generations = json_array();
    for (size_t i = 0; i < metrics->generation_count; i++) {
        json_array_append_new(generations, of_generation(&metrics->generations[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job));
    json_object_set_new(json, "series", series);
    json_object_set_new(json, "generations", generations);
    json_object_set_new(json, "lost_bytes", json_number(metrics->lost_bytes));
    json_object_set_new(json, "refused", json_number(metrics->refused));
    return json;
}
