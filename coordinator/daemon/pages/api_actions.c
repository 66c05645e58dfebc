/* SPDX-License-Identifier: Apache-2.0
 * POST /api/jobs/ID/cancel, /api/workers/NAME/drain and /undrain: answered with the job or worker
 * as it is then, once the record is durable. The caller's role and origin were checked before. */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/base/pending_calls.h"
#include "coordinator/daemon/pages/api.h"
#include "coordinator/daemon/pages/pages.h"

/* One that waits for its record; `key` of its api is "". */
struct action {
    struct api_request api;
    void (*show)(const struct api_request *api);
};

static void on_action(struct daemon *daemon, void *user, const struct pending_result *result,
    struct cadre_error *error)
{
    struct action *action = user;
    (void)result;
    if (error->code != CADRE_OK) {
        api_fail(&action->api, error);
    } else {
        api_forget(daemon); /* what is asked next shows it */
        action->show(&action->api);
    }
    free(action);
}

static struct action *action_new(const struct api_request *api,
    void (*show)(const struct api_request *api), struct cadre_error *error)
{
    struct action *action = calloc(1, sizeof *action);
    if (action == NULL) {
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for another request: ask again later");
        return NULL;
    }
    *action = (struct action){.api = *api, .show = show};
    return action;
}

/* ---- the body ---- */

static bool is_printable(const char *text)
{
    size_t size = strlen(text);
    size_t length = size > 0 ? utf8_printable(text, size) : 0;
    size_t at = length;
    while (length > 0 && at < size) {
        length = utf8_printable(text + at, size - at);
        at += length;
    }
    return at == size;
}

static cadre_status take_reason(
    const json_t *value, char ret_reason[LIMIT_NAME_BYTES], struct cadre_error *error)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) >= LIMIT_NAME_BYTES || !is_printable(text)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"reason\" is no text of at most %d bytes without control characters",
            LIMIT_NAME_BYTES - 1);
    }
    memcpy(ret_reason, text, strlen(text) + 1);
    return CADRE_OK;
}

/* An object; ret_reason is NULL: without keys. */
static cadre_status take_body(
    const struct api_request *api, char *ret_reason, struct cadre_error *error)
{
    size_t size = 0;
    const char *body = http_request_body(api->request, &size);
    json_error_t where;
    json_t *json = json_loadb(body, size, JSON_REJECT_DUPLICATES, &where);
    const json_t *reason = ret_reason != NULL ? json_object_get(json, "reason") : NULL;
    cadre_status status = CADRE_OK;
    if (!json_is_object(json)) {
        status =
            cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the body is no JSON object: send {}%s",
                ret_reason != NULL ? ", or {\"reason\": \"...\"}" : "");
    } else if (json_object_size(json) > (reason != NULL ? 1U : 0U)) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the body has a key that means nothing here: send {}%s",
            ret_reason != NULL ? ", or {\"reason\": \"...\"}" : "");
    } else if (reason != NULL) {
        status = take_reason(reason, ret_reason, error);
    }
    json_decref(json);
    return status;
}

/* ---- the routes ---- */

void api_cancel(const struct api_request *api)
{
    struct cadre_error error = {0};
    struct job_id job;
    struct job_info info;
    if (take_body(api, NULL, &error) != CADRE_OK || api_job_id(api, &job, &error) != CADRE_OK ||
        listing_job(api->daemon->engine, job, &info, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    if (job_state_is_final(info.state)) {
        api_job(api); /* it has ended and is not changed */
        return;
    }
    struct action *action = action_new(api, api_job, &error);
    if (action == NULL || pending_cancel(api->daemon, job, on_action, action, &error) == NULL) {
        free(action);
        api_fail(api, &error);
    }
}

static void change_drain(const struct api_request *api, bool ends)
{
    struct cadre_error error = {0};
    char reason[LIMIT_NAME_BYTES] = "";
    const struct drain_request request = {.worker = api->subject, .reason = reason, .ends = ends};
    struct action *action = NULL;
    const char *who =
        api->identity.role == TLS_ROLE_LOCAL ? "a browser on this host" : api->identity.name;
    if (take_body(api, ends ? NULL : reason, &error) != CADRE_OK ||
        (action = action_new(api, api_worker, &error)) == NULL ||
        pending_drain(api->daemon, &request, who, on_action, action, &error) == NULL) {
        free(action);
        api_fail(api, &error);
    }
}

void api_drain(const struct api_request *api)
{
    change_drain(api, false);
}

void api_undrain(const struct api_request *api)
{
    change_drain(api, true);
}
