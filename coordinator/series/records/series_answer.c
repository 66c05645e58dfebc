/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/series/records/series_answer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

static bool is_wanted(const struct metrics_request *request, const char *name)
{
    bool wanted = request->name_count == 0;
    for (size_t i = 0; i < request->name_count && !wanted; i++) {
        wanted = strcmp(request->names[i], name) == 0;
    }
    return wanted;
}

static uint64_t last_step_of(const struct metrics_request *request)
{
    return request->last_step == 0 ? UINT64_MAX : request->last_step;
}

/* Fills `points`, which has room for all of them, and the pointers of *ret. */
static void series_answer_fill(const struct series *series, const struct metrics_request *request,
    struct series_point *points, struct metric_series *ret)
{
    uint64_t last = last_step_of(request);
    size_t first_bucket = 0;
    size_t end_bucket = series->bucket_count;
    while (first_bucket < end_bucket &&
           series->buckets[first_bucket].last_step < request->first_step) {
        first_bucket++;
    }
    while (end_bucket > first_bucket && series->buckets[end_bucket - 1].first_step > last) {
        end_bucket--;
    }
    *ret = (struct metric_series){.name = series->name,
        .stride = series->stride,
        .buckets = series->buckets + first_bucket,
        .bucket_count = end_bucket - first_bucket,
        .points = points};
    for (size_t i = 0; i < series->point_count; i++) {
        struct series_point point = series_point_at(series, i);
        if (point.step >= request->first_step && point.step <= last) {
            points[ret->point_count++] = point;
        }
    }
}

/* Of the training. */
static uint64_t newest_step(const struct series_set *set)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct series *series = &set->series[i];
        if (series->source == SERIES_TRAINING && series->point_count > 0) {
            uint64_t step = series_point_at(series, series->point_count - 1).step;
            newest = step > newest ? step : newest;
        }
    }
    return newest;
}

/* The generations with their begins as the values have their steps: in the ledger those of a
 * program that numbers its steps itself are counted in saves. */
static void series_answer_generations(const struct series_state *state,
    const struct verify_generation *generations, size_t count, struct verify_generation *ret)
{
    uint64_t newest = newest_step(&state->set);
    for (size_t i = 0; i < count; i++) {
        ret[i] = generations[i];
        if (state->set.current[SERIES_TRAINING].numbered) {
            ret[i].resume =
                series_starts_find(&state->starts, generations[i].generation.number, newest);
        }
    }
}

cadre_status series_answer(const struct series_state *state, const struct metrics_request *request,
    const struct verify_generation *generations, size_t generation_count,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    struct metric_series all[LIMIT_JOB_SERIES];
    struct metrics_response response = {.series = all,
        .generation_count = generation_count,
        .lost_bytes = state->lost_bytes,
        .refused = state->set.refused};
    size_t points = 0;
    for (uint32_t i = 0; i < state->set.count; i++) {
        points += state->set.series[i].point_count;
    }
    CADRE_FREE_AT_EXIT struct series_point *memory = malloc((points + 1) * sizeof *memory);
    CADRE_FREE_AT_EXIT struct verify_generation *begun =
        malloc((generation_count + 1) * sizeof *begun);
    if (memory == NULL || begun == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for these values");
    }
    series_answer_generations(state, generations, generation_count, begun);
    response.generations = begun;
    size_t used = 0;
    for (uint32_t i = 0; i < state->set.count; i++) {
        const struct series *series = &state->set.series[i];
        if (is_wanted(request, series->name)) {
            struct metric_series *made = &all[response.series_count];
            series_answer_fill(series, request, memory + used, made);
            used += made->point_count;
            response.series_count += made->point_count + made->bucket_count > 0 ? 1 : 0;
        }
    }
    return wire_pack_metrics_response(&response, buffer, error);
}
