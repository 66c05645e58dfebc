/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/cadre/run_metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/model/task_message.h"
#include "common/view/view.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_metrics.h"
#include "coordinator/series/records/series_answer.h"

#define JOB 1 /* the only one of a run */

static bool has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path);
    size_t end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

bool run_metrics_open(struct run_metrics *metrics, const struct invocation *invocation,
    const char *path, int *ret_exit)
{
    if (path == NULL) {
        return true;
    }
    metrics->csv = has_suffix(path, ".csv");
    if (!metrics->csv && !has_suffix(path, ".json")) {
        *ret_exit = invocation_usage(invocation,
            "--metrics \"%s\": its suffix says what is written; give FILE.json or FILE.csv", path);
        return false;
    }
    metrics->state = calloc(1, sizeof *metrics->state);
    if (metrics->state == NULL || !trace_output_open(&metrics->output, path)) {
        *ret_exit = invocation_usage(invocation, "--metrics %s: %s", path, strerror(errno));
        return false;
    }
    series_set_open(&metrics->state->set, LIMIT_SERIES_POINTS, LIMIT_SERIES_BUCKETS);
    return true;
}

/* The steps that newer generations do again lose their values. */
static bool apply_generations(struct run_metrics *metrics,
    const struct verify_generation *generations, size_t generation_count)
{
    bool good = true;
    for (size_t i = 0; good && i < generation_count; i++) {
        good = series_records_plan(metrics->state, generations[i].generation.number,
            generations[i].resume, &metrics->records);
    }
    return good;
}

bool run_metrics_take(struct run_metrics *metrics, bool evaluates, const struct task_values *values,
    const struct verify_generation *generations, size_t generation_count)
{
    enum series_source source = evaluates ? SERIES_EVALUATION : SERIES_TRAINING;
    if (metrics->state == NULL) {
        return true;
    }
    wire_buffer_clear(&metrics->records);
    bool good = apply_generations(metrics, generations, generation_count);
    bool counts = values->generation.number >= metrics->state->set.current[source].generation;
    return good && counts &&
           series_records_values(metrics->state, source, values, &metrics->records);
}

/* The answer that a coordinator would give, as the command reads it. */
static cadre_job_series *view_state(const struct series_state *state,
    const struct verify_generation *generations, size_t generation_count, struct cadre_error *error)
{
    const struct metrics_request all = {.id = {JOB}};
    struct wire_buffer packed = {0};
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct metrics_response response;
    cadre_job_series *metrics = NULL;
    cadre_status status =
        arena == NULL
            ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for these values")
            : series_answer(state, &all, generations, generation_count, &packed, error);
    if (status == CADRE_OK) {
        status = wire_unpack_metrics_response(packed.bytes, packed.size, arena, &response, error);
    }
    wire_buffer_free(&packed);
    if (status != CADRE_OK) {
        wire_arena_free(arena);
        return NULL;
    }
    metrics = view_series_new(&response, arena);
    if (metrics == NULL) {
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for these values");
    }
    return metrics;
}

static bool print_series(const struct run_metrics *metrics, const cadre_job_series *series)
{
    FILE *out = metrics->output.file;
    if (!metrics->csv) {
        return json_print_compact(json_of_series(JOB, series), out);
    }
    render_metrics_csv_head(out);
    render_metrics_csv(series, out);
    return ferror(out) == 0;
}

void run_metrics_finish(struct run_metrics *metrics, const struct verify_generation *generations,
    size_t generation_count)
{
    struct cadre_error error = {0};
    char path[1024];
    if (metrics->state == NULL) {
        return;
    }
    wire_buffer_clear(&metrics->records);
    (void)apply_generations(metrics, generations, generation_count);
    snprintf(path, sizeof path, "%s", metrics->output.path);
    cadre_job_series *series = view_state(metrics->state, generations, generation_count, &error);
    if (series == NULL) {
        fprintf(stderr, "cadre run: %s is not written: %s\n", path, error.text);
        return;
    }
    if (!print_series(metrics, series) || !trace_output_commit(&metrics->output)) {
        fprintf(stderr, "cadre run: cannot write %s: %s\n", path, strerror(errno));
    }
    render_metrics_notes(series, stderr);
    cadre_result_release(series);
}

void run_metrics_close(struct run_metrics *metrics)
{
    trace_output_close(&metrics->output);
    wire_buffer_free(&metrics->records);
    free(metrics->state);
    metrics->state = NULL;
}
