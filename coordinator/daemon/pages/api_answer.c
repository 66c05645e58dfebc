/* SPDX-License-Identifier: Apache-2.0
 * Answers below /api/: an object as text, kept for those who ask the same. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/daemon/pages/api.h"
#include "coordinator/daemon/pages/pages.h"

/* An answer is good for this long, and for so many times as long as it took to be made: whatever
 * browsers ask for, and how many they are, one and the same answer costs 1% of a core at most. */
#define GOOD_US     (CADRE_US_PER_S / 5)
#define GOOD_FACTOR 100
#define GOOD_US_MAX (10 * CADRE_US_PER_S)

/* Takes the object over; NULL: no memory. */
static struct http_response *response_of(unsigned status, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    if (text == NULL) {
        return NULL;
    }
    return http_response_new(&(const struct http_content){.status = status,
        .type = HTTP_TYPE_JSON,
        .bytes = text,
        .size = strlen(text),
        .release = free});
}

static uint64_t good_us(uint64_t made_us)
{
    uint64_t good = made_us * GOOD_FACTOR < GOOD_US_MAX ? made_us * GOOD_FACTOR : GOOD_US_MAX;
    return good > GOOD_US ? good : GOOD_US;
}

void api_answer(const struct api_request *api, json_t *json)
{
    struct http_response *response = response_of(200, json);
    uint64_t now_us = clock_monotonic_us();
    if (response != NULL && api->key[0] != '\0') {
        answer_cache_keep(&api->daemon->answer_cache, api->key, response,
            now_us + good_us(now_us - api->began_us));
    }
    http_answer(api->request, response);
}

struct http_response *api_refuse(unsigned status, const struct cadre_error *error)
{
    json_t *json = json_object();
    json_object_set_new(json, "code", json_string(cadre_status_name(error->code)));
    json_object_set_new(json, "message", json_string(error->text));
    return response_of(status, json);
}

void api_fail(const struct api_request *api, const struct cadre_error *error)
{
    http_answer(api->request, api_refuse(http_status_of(error->code), error));
}
