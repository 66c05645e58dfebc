/* SPDX-License-Identifier: Apache-2.0
 * The routes below /api/: who may ask, what was answered lately or is being made, else
 * the route. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/authorization.h"
#include "coordinator/daemon/pages/api_deferred.h"
#include "coordinator/daemon/pages/pages.h"

/* The caller's role has to allow the method, which answers the same over gRPC. */
struct route {
    const char *path; /* behind "/api/"; "*" stands for one part of it */
    const char *method;
    void (*serve)(const struct api_request *api);
    bool acts; /* POST only; the others GET and HEAD */
};

static const struct route routes[] = {
    {"version", METHOD_JOBS_VERSION, api_version, false},
    {"cluster", METHOD_JOBS_VERSION, api_cluster, false},
    {"jobs", METHOD_JOBS_LIST, api_jobs, false},
    {"jobs/*", METHOD_JOBS_GET, api_job, false},
    {"jobs/*/shards", METHOD_JOBS_GET, api_shards, false},
    {"jobs/*/metrics", METHOD_JOBS_METRICS, api_metrics, false},
    {"jobs/*/logs", METHOD_JOBS_LOGS, api_logs, false},
    {"jobs/*/verification", METHOD_JOBS_VERIFY, api_verification, false},
    {"jobs/*/history", METHOD_JOBS_HISTORY, api_history, false},
    {"workers", METHOD_JOBS_LIST_WORKERS, api_workers, false},
    {"workers/*", METHOD_JOBS_LIST_WORKERS, api_worker, false},
    {"jobs/*/cancel", METHOD_JOBS_CANCEL, api_cancel, true},
    {"workers/*/drain", METHOD_JOBS_DRAIN, api_drain, true},
    {"workers/*/undrain", METHOD_JOBS_DRAIN, api_undrain, true},
};

/* Whether the path is one of the route; what "*" stands for is copied. */
static bool route_has(
    const struct route *route, const char *path, char ret_subject[LIMIT_NAME_BYTES])
{
    const char *star = strchr(route->path, '*');
    ret_subject[0] = '\0';
    if (star == NULL) {
        return strcmp(route->path, path) == 0;
    }
    size_t before = (size_t)(star - route->path);
    if (strncmp(route->path, path, before) != 0) {
        return false;
    }
    const char *subject = path + before;
    size_t length = strcspn(subject, "/");
    if (length == 0 || length >= LIMIT_NAME_BYTES || strcmp(subject + length, star + 1) != 0) {
        return false;
    }
    memcpy(ret_subject, subject, length);
    ret_subject[length] = '\0';
    return true;
}

static const struct route *route_find(const char *path, char ret_subject[LIMIT_NAME_BYTES])
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (route_has(&routes[i], path, ret_subject)) {
            return &routes[i];
        }
    }
    return NULL;
}

static bool is_json(const struct http_request *request)
{
    static const char json[] = "application/json";
    const char *type = http_request_header(request, "Content-Type");
    size_t length = type != NULL ? strcspn(type, "; ") : 0;
    return length == sizeof json - 1 && strncasecmp(type, json, length) == 0;
}

/* The status with which a request for the route is refused to all callers; 0: it is not. */
static unsigned check_method(
    const struct route *route, const struct http_request *request, struct cadre_error *error)
{
    if (route->acts != http_request_acts(request)) {
        cadre_error_set(error, CADRE_UNIMPLEMENTED,
            route->acts ? "this is no page, it changes something: only POST" : "only GET and HEAD");
        return 405;
    }
    if (route->acts && !is_json(request)) {
        cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "what changes something has a body of the type application/json: send {}");
        return 415;
    }
    return 0;
}

/* Role, path and arguments, none of which has a newline; "" where they are too long to be kept. */
static void make_key(struct api_request *api)
{
    const struct http_target *target = http_request_target(api->request);
    int used =
        snprintf(api->key, sizeof api->key, "%u %s", (unsigned)api->identity.role, target->path);
    for (size_t i = 0; i < target->argument_count && used < (int)sizeof api->key; i++) {
        used += snprintf(api->key + used, sizeof api->key - (size_t)used, "\n%s\n%s",
            target->arguments[i].name, target->arguments[i].value);
    }
    if (used >= (int)sizeof api->key) {
        api->key[0] = '\0';
    }
}

static cadre_status may_ask(
    struct api_request *api, const struct route *route, struct cadre_error *error)
{
    CADRE_TRY(api_identify(api->daemon, api->request, &api->identity, error));
    if (route == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "there is no %.100s: /api/ has version, cluster, jobs, jobs/ID, jobs/ID/shards, "
            "jobs/ID/metrics, jobs/ID/logs, jobs/ID/history, jobs/ID/verification, workers, "
            "workers/NAME; with POST jobs/ID/cancel, workers/NAME/drain, workers/NAME/undrain",
            http_request_target(api->request)->path);
    }
    CADRE_TRY(authorize(&api->identity, route->method, error));
    if (api->daemon->engine == NULL) {
        return api->daemon->refuse_page(api->daemon, error);
    }
    struct cadre_error held = {0};
    if (engine_held(api->daemon->engine, &held) && held.code == CADRE_UNAVAILABLE) {
        *error = held;
        return CADRE_UNAVAILABLE;
    }
    return CADRE_OK;
}

void api_serve(void *user, struct http_request *request)
{
    struct cadre_error error = {0};
    struct api_request api = {.daemon = user, .request = request, .began_us = clock_monotonic_us()};
    const struct route *route = route_find(http_request_rest(request), api.subject);
    if (may_ask(&api, route, &error) != CADRE_OK) {
        api_fail(&api, &error);
        return;
    }
    unsigned refused = check_method(route, request, &error);
    if (refused != 0) {
        api_refuse_use(&api, refused, route->acts, &error);
        return;
    }
    if (route->acts) {
        route->serve(&api);
        return;
    }
    make_key(&api);
    struct http_response *kept = answer_cache_find(api.daemon->answer_cache, api.key, api.began_us);
    if (kept != NULL) {
        http_answer(request, http_response_share(kept));
    } else if (!api_deferred_join(&api)) {
        route->serve(&api);
    }
}
