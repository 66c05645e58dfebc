/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs: the list. */
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/view/view.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/pages/api.h"

/* "live", or a name of a state. */
static cadre_status take_state(
    const char *value, struct jobs_listing *listing, struct cadre_error *error)
{
    listing->live = strcmp(value, "live") == 0;
    for (int state = 0; state <= JOB_PREEMPTED; state++) {
        if (strcmp(value, job_state_name((enum job_state)state)) == 0) {
            listing->one_state = true;
            listing->state = (enum job_state)state;
        }
    }
    if (!listing->live && (!listing->one_state || strcmp(value, "unknown") == 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "state=%.60s is neither \"live\" nor a state: queued, starting, running, ending, "
            "succeeded, failed, cancelled or preempted",
            value);
    }
    return CADRE_OK;
}

static cadre_status take_listing(
    const struct http_target *target, struct jobs_listing *ret_listing, struct cadre_error *error)
{
    static const char *const names[] = {"limit", "before", "state", NULL};
    uint64_t limit = 0;
    const char *state = http_target_argument(target, "state");
    *ret_listing = (struct jobs_listing){0};
    CADRE_TRY(http_target_check(target, names, error));
    CADRE_TRY(http_target_number(target, "limit", API_LISTED_MAX, API_LISTED_MAX, &limit, error));
    CADRE_TRY(http_target_number(target, "before", 0, INT64_MAX, &ret_listing->before.n, error));
    ret_listing->limit = (uint32_t)limit;
    return state != NULL ? take_state(state, ret_listing, error) : CADRE_OK;
}

void api_jobs(const struct api_request *api)
{
    struct cadre_error error = {0};
    struct jobs_listing listing;
    struct job_info *jobs = NULL;
    struct list_jobs_response response;
    if (take_listing(http_request_target(api->request), &listing, &error) != CADRE_OK ||
        listing_jobs(api->daemon->engine, &listing, &jobs, &response, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    cadre_job_list *list = view_jobs_new(&response, NULL);
    api_answer(api, list != NULL ? json_of_jobs(list) : NULL);
    cadre_result_release(list);
    free(jobs);
}
