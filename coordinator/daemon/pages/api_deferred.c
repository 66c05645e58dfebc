/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/pages/api_deferred.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "coordinator/daemon/pages/pages.h"

/* Answers that are made at once; each takes some memory. */
#define DEFERRED_MAX 128

static bool add_waiting(struct api_deferred *deferred, struct http_request *request)
{
    if (deferred->waiting_count == deferred->waiting_capacity) {
        size_t capacity = deferred->waiting_capacity > 0 ? deferred->waiting_capacity * 2 : 4;
        struct http_request **grown =
            fault_point("api.wait")
                ? NULL
                : realloc(deferred->waiting, capacity * sizeof *deferred->waiting);
        if (grown == NULL) {
            return false;
        }
        deferred->waiting = grown;
        deferred->waiting_capacity = capacity;
    }
    deferred->waiting[deferred->waiting_count++] = request;
    return true;
}

static void no_room(const struct api_request *api)
{
    struct cadre_error error = {0};
    cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
        "the coordinator has no memory for another answer, or makes %d already: ask again later",
        DEFERRED_MAX);
    api_fail(api, &error);
}

void *api_deferred_new(const struct api_request *api, struct job_id job, size_t bytes,
    void (*release)(struct api_deferred *deferred))
{
    struct daemon *daemon = api->daemon;
    size_t count = 0;
    for (struct api_deferred *at = daemon->deferred_answers; at != NULL; at = at->next) {
        count++;
    }
    bool room = count < DEFERRED_MAX && !fault_point("api.defer");
    struct api_deferred *deferred = room ? calloc(1, bytes) : NULL;
    if (deferred == NULL || !add_waiting(deferred, api->request)) {
        free(deferred);
        no_room(api);
        return NULL;
    }
    deferred->next = daemon->deferred_answers;
    deferred->daemon = daemon;
    deferred->job = job;
    deferred->release = release;
    deferred->good_us_max = API_GOOD_US_MAX;
    memcpy(deferred->key, api->key, sizeof deferred->key);
    daemon->deferred_answers = deferred;
    return deferred;
}

bool api_deferred_join(const struct api_request *api)
{
    struct api_deferred *deferred = api->key[0] != '\0' ? api->daemon->deferred_answers : NULL;
    while (deferred != NULL && strcmp(deferred->key, api->key) != 0) {
        deferred = deferred->next;
    }
    if (deferred == NULL) {
        return false;
    }
    if (!add_waiting(deferred, api->request)) {
        no_room(api);
    }
    return true;
}

static void in_thread(void *user)
{
    struct api_deferred *deferred = user;
    uint64_t began_us = clock_monotonic_us();
    deferred->make(deferred);
    deferred->made_us += clock_monotonic_us() - began_us;
}

static void after_thread(void *user)
{
    struct api_deferred *deferred = user;
    deferred->after(deferred);
}

void api_deferred_work(struct api_deferred *deferred, void (*make)(struct api_deferred *deferred),
    void (*after)(struct api_deferred *deferred))
{
    deferred->make = make;
    deferred->after = after;
    file_work_start(
        &deferred->work, &deferred->daemon->file_pool, in_thread, after_thread, deferred);
}

void api_deferred_take(struct api_deferred *deferred, json_t *json)
{
    deferred->text = api_text(json);
    if (deferred->text == NULL) {
        cadre_error_set(&deferred->error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for this answer: ask again later");
    }
}

bool api_deferred_is_wanted(const struct api_deferred *deferred)
{
    bool wanted = false;
    for (size_t i = 0; i < deferred->waiting_count && !wanted; i++) {
        wanted = !http_request_is_over(deferred->waiting[i]);
    }
    return wanted;
}

static void remove_deferred(struct api_deferred *deferred)
{
    struct api_deferred **at = &deferred->daemon->deferred_answers;
    while (*at != deferred) {
        at = &(*at)->next;
    }
    *at = deferred->next;
}

/* NULL: no memory for it. */
static struct http_response *make_response(struct api_deferred *deferred)
{
    struct cadre_error *error = &deferred->error;
    struct job_info info;
    if (!engine_job_basics(deferred->daemon->engine, deferred->job, &info)) {
        cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`",
            deferred->job.n);
    }
    if (error->code != CADRE_OK) {
        return api_refuse(http_status_of(error->code), error);
    }
    struct http_response *response = api_response(deferred->daemon, deferred->text);
    deferred->text = NULL;
    uint64_t good_us = api_good_us(deferred->made_us, deferred->good_us_max);
    api_keep(deferred->daemon, deferred->key, response,
        good_us > deferred->good_us_min ? good_us : deferred->good_us_min);
    return response;
}

void api_deferred_answer(struct api_deferred *deferred)
{
    remove_deferred(deferred);
    struct http_response *response =
        api_deferred_is_wanted(deferred) ? make_response(deferred) : NULL;
    for (size_t i = 0; i < deferred->waiting_count; i++) {
        http_answer(deferred->waiting[i], response != NULL ? http_response_share(response) : NULL);
    }
    http_response_release(response);
    if (deferred->release != NULL) {
        deferred->release(deferred);
    }
    free(deferred->waiting);
    free(deferred->text);
    free(deferred);
}
