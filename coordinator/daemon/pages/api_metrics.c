/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs/ID/metrics: read by the thread that works on the job's values, turned into JSON by
 * another one. */
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/view/view.h"
#include "coordinator/daemon/pages/api_deferred.h"
#include "coordinator/daemon/series/series_jobs.h"

struct deferred_metrics {
    struct api_deferred base;
    struct wire_buffer packed;
};

static void release_metrics(struct api_deferred *deferred)
{
    wire_buffer_free(&((struct deferred_metrics *)deferred)->packed);
}

static void make_metrics(struct api_deferred *deferred)
{
    const struct deferred_metrics *metrics = (struct deferred_metrics *)deferred;
    struct metrics_response response;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    json_t *json = NULL;
    if (arena != NULL && wire_unpack_metrics_response(metrics->packed.bytes, metrics->packed.size,
                             arena, &response, &deferred->error) == CADRE_OK) {
        cadre_job_series *series = view_series_new(&response, NULL);
        json = series != NULL ? json_of_series(deferred->job.n, series) : NULL;
        cadre_result_release(series);
    }
    if (deferred->error.code == CADRE_OK) {
        api_deferred_take(deferred, json);
    }
    wire_arena_free(arena);
}

static void on_values(void *user, const struct wire_buffer *packed, struct cadre_error *error)
{
    struct deferred_metrics *metrics = user;
    metrics->base.error = *error;
    if (error->code == CADRE_OK && !wire_buffer_reserve(&metrics->packed, packed->size)) {
        cadre_error_set(&metrics->base.error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for these values");
    }
    if (metrics->base.error.code != CADRE_OK || !api_deferred_is_wanted(&metrics->base)) {
        api_deferred_answer(&metrics->base);
        return;
    }
    if (packed->size > 0) {
        memcpy(metrics->packed.bytes, packed->bytes, packed->size);
    }
    metrics->packed.size = packed->size;
    api_deferred_work(&metrics->base, make_metrics, api_deferred_answer);
}

static cadre_status take_steps(
    const struct api_request *api, struct metrics_request *ret_request, struct cadre_error *error)
{
    static const char *const names[] = {"from", "to", NULL};
    const struct http_target *target = http_request_target(api->request);
    uint64_t last = 0;
    *ret_request = (struct metrics_request){0};
    CADRE_TRY(http_target_check(target, names, error));
    CADRE_TRY(api_job_id(api, &ret_request->id, error));
    CADRE_TRY(http_target_number(target, "from", 0, INT64_MAX, &ret_request->first_step, error));
    CADRE_TRY(http_target_number(target, "to", INT64_MAX, INT64_MAX, &last, error));
    ret_request->last_step = last;
    if (last == 0 || last < ret_request->first_step) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "from=%llu&to=%llu is no range of steps: `to` is at least 1 and at least `from`",
            (unsigned long long)ret_request->first_step, (unsigned long long)last);
    }
    return CADRE_OK;
}

void api_metrics(const struct api_request *api)
{
    struct cadre_error error = {0};
    struct metrics_request request;
    if (take_steps(api, &request, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    struct deferred_metrics *metrics =
        api_deferred_new(api, request.id, sizeof *metrics, release_metrics);
    if (metrics != NULL &&
        series_query(api->daemon, &request, on_values, metrics, &metrics->base.error) == NULL) {
        api_deferred_answer(&metrics->base);
    }
}
