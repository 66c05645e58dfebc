/* SPDX-License-Identifier: Apache-2.0
 * Answers below /api/: an object as text, kept for those who ask the same. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/http/server.h"
#include "coordinator/daemon/pages/api.h"
#include "coordinator/daemon/pages/pages.h"

#define GOOD_US     (CADRE_US_PER_S / 5)
#define GOOD_FACTOR 100

char *api_text(json_t *json)
{
    bool has_memory = json != NULL && !fault_point("api.text");
    char *text = has_memory ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    return text;
}

/* The content without its text, which is taken over. */
static struct http_response *response_of(struct http_content content, char *text)
{
    if (text == NULL || fault_point("api.response")) {
        free(text);
        return NULL;
    }
    content.type = HTTP_TYPE_JSON;
    content.bytes = text;
    content.size = strlen(text);
    content.release = free;
    return http_response_new(&content);
}

struct http_response *api_response(const struct daemon *daemon, char *text)
{
    const struct http_content content = {
        .status = 200, .poll_ms = http_server_poll_ms(daemon->http)};
    return response_of(content, text);
}

uint64_t api_good_us(uint64_t made_us, uint64_t max_us)
{
    uint64_t good_us = made_us * GOOD_FACTOR < max_us ? made_us * GOOD_FACTOR : max_us;
    return good_us > GOOD_US ? good_us : GOOD_US;
}

void api_keep(
    struct daemon *daemon, const char *key, struct http_response *response, uint64_t good_us)
{
    if (response != NULL && key[0] != '\0') {
        answer_cache_keep(&daemon->answer_cache, key, response, clock_monotonic_us() + good_us);
    }
}

void api_answer(const struct api_request *api, json_t *json)
{
    struct http_response *response = api_response(api->daemon, api_text(json));
    uint64_t made_us = clock_monotonic_us() - api->began_us;
    api_keep(api->daemon, api->key, response, api_good_us(made_us, API_GOOD_US_MAX));
    http_answer(api->request, response);
}

static json_t *of_error(const struct cadre_error *error)
{
    json_t *json = json_object();
    json_object_set_new(json, "code", json_string(cadre_status_name(error->code)));
    json_object_set_new(json, "message", json_string(error->text));
    return json;
}

struct http_response *api_refuse(unsigned status, const struct cadre_error *error)
{
    return response_of((struct http_content){.status = status}, api_text(of_error(error)));
}

void api_fail(const struct api_request *api, const struct cadre_error *error)
{
    http_answer(api->request, api_refuse(http_status_of(error->code), error));
}

void api_refuse_use(
    const struct api_request *api, unsigned status, bool acts, const struct cadre_error *error)
{
    const struct http_content content = {.status = status, .allow = acts ? "POST" : NULL};
    http_answer(api->request, response_of(content, api_text(of_error(error))));
}

void api_forget(struct daemon *daemon)
{
    answer_cache_close(daemon->answer_cache);
    daemon->answer_cache = NULL;
}
