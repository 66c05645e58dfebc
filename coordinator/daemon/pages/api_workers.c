/* SPDX-License-Identifier: Apache-2.0
 * /api/workers, /api/workers/NAME. */
#include <stdlib.h>

#include "common/json/json.h"
#include "common/view/view.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/pages/api.h"

/* `pages`: the answer says whether there are more. */
static void answer_workers(
    const struct api_request *api, const struct workers_listing *listing, bool pages)
{
    struct cadre_error error = {0};
    struct worker_info *workers = NULL;
    struct list_workers_response response;
    bool more = false;
    if (listing_workers(api->daemon, listing, &workers, &response, &more, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    cadre_worker_list *list = view_workers_new(&response, NULL);
    json_t *json = list != NULL ? json_of_workers(list) : NULL;
    if (pages) {
        json_object_set_new(json, "more", json_boolean(more));
    }
    api_answer(api, json);
    cadre_result_release(list);
    free(workers);
}

void api_workers(const struct api_request *api)
{
    static const char *const names[] = {"limit", "after", NULL};
    const struct http_target *target = http_request_target(api->request);
    struct cadre_error error = {0};
    uint64_t limit = 0;
    const char *after = http_target_argument(target, "after");
    if (http_target_check(target, names, &error) != CADRE_OK ||
        http_target_number(target, "limit", API_LISTED_MAX, API_LISTED_MAX, &limit, &error) !=
            CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    const struct workers_listing listing = {
        .limit = (size_t)limit, .after = after != NULL ? after : "", .name = ""};
    answer_workers(api, &listing, true);
}

void api_worker(const struct api_request *api)
{
    const struct workers_listing listing = {.limit = 1, .after = "", .name = api->subject};
    answer_workers(api, &listing, false);
}
