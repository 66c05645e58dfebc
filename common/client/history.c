/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_history: what happened to a job, and when. */
#include "common/client/query.h"
#include "common/client/state.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

static cadre_status read_history(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct history_response response;
    CADRE_TRY(wire_unpack_history_response(data, length, arena, &response, error));
    *ret_result = view_history_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_history(cadre_client *client, uint64_t job, uint64_t after,
    uint32_t limit, cadre_history **ret_history, const cadre_then *then)
{
    struct query *query = query_new(client, read_history, (void **)ret_history, then);
    struct history_request request = {.id = {job},
        .after = after,
        .limit = limit < LIMIT_EVENTS_LISTED ? limit : LIMIT_EVENTS_LISTED};
    struct cadre_error error = {0};
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    cadre_status status = wire_pack_history_request(&request, &client->packed, &error);
    return query_launch(query, METHOD_JOBS_HISTORY, status, &error, then);
}
