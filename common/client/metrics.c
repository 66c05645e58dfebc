/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_metrics: what a job's program reported, by step. */
#include "common/client/query.h"
#include "common/client/state.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

static cadre_status read_metrics(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct metrics_response response;
    CADRE_TRY(wire_unpack_metrics_response(data, length, arena, &response, error));
    *ret_result = view_series_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_metrics(cadre_client *client, uint64_t job,
    const cadre_metrics_options *options, cadre_job_series **ret_metrics, const cadre_then *then)
{
    struct query *query = query_new(client, read_metrics, (void **)ret_metrics, then);
    struct metrics_request request = {.id = {job}};
    struct cadre_error error = {0};
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    if (options != NULL) {
        request.names = options->names;
        request.name_count = options->name_count;
        request.first_step = options->first_step;
        request.last_step = options->last_step;
    }
    cadre_status status = wire_pack_metrics_request(&request, &client->packed, &error);
    return query_launch(query, METHOD_JOBS_METRICS, status, &error, then);
}
