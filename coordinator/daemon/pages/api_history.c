/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs/ID/history: a page of what happened to a job. */
#include "common/json/json.h"
#include "common/view/view.h"
#include "coordinator/daemon/pages/api.h"

static cadre_status take_history(
    const struct api_request *api, struct history_request *ret_request, struct cadre_error *error)
{
    static const char *const names[] = {"after", "limit", NULL};
    const struct http_target *target = http_request_target(api->request);
    uint64_t limit = 0;
    *ret_request = (struct history_request){.after = 0};
    CADRE_TRY(api_job_id(api, &ret_request->id, error));
    CADRE_TRY(http_target_check(target, names, error));
    CADRE_TRY(http_target_number(target, "after", 0, INT64_MAX, &ret_request->after, error));
    CADRE_TRY(http_target_number(
        target, "limit", LIMIT_EVENTS_LISTED, LIMIT_EVENTS_LISTED, &limit, error));
    ret_request->limit = (uint32_t)limit;
    return CADRE_OK;
}

void api_history(const struct api_request *api)
{
    struct cadre_error error = {0};
    struct history_request request;
    struct history_response response;
    if (take_history(api, &request, &error) != CADRE_OK ||
        engine_history(api->daemon->engine, &request, &response, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    cadre_history *history = view_history_new(&response, NULL);
    api_answer(api, history != NULL ? json_of_history(history) : NULL);
    cadre_result_release(history);
}
