/* SPDX-License-Identifier: Apache-2.0
 * Opens a session from the variables and files that Amazon's tools read, and asks for credentials
 * by HTTP on the provider's behalf. */
#include "common/storage/s3/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/storage/s3/profile_file.h"

#define SETTING_BYTES  1024
#define FETCH_HEADERS  8
#define STALL_US       UINT64_C(20000000) /* so long without 1 KiB/s, or a third of the deadline */
#define STALLS_ALLOWED 3

/* --- the provider's requests --- */

static void free_headers(char **headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (headers[i] != NULL) { /* a token, maybe */
            explicit_bzero(headers[i], strlen(headers[i]));
        }
        free(headers[i]);
    }
}

/* The body of an answer other than 2xx, which says why and has no credentials in it. */
static size_t copy_refusal(const struct http_answer *answer, const struct s3_fetch *fetch)
{
    size_t bytes = answer->body_bytes < fetch->room ? answer->body_bytes : fetch->room;
    if (bytes > 0) {
        memcpy(fetch->body, answer->body, bytes);
    }
    return bytes;
}

static cadre_status fetch_with(struct s3_session *session, const struct s3_fetch *fetch,
    char *const *headers, int *ret_status, size_t *ret_size, struct cadre_error *error)
{
    const uint64_t deadline_us = clock_monotonic_us() + fetch->timeout_us;
    const struct http_request request = {.method = fetch->method,
        .url = fetch->url,
        .headers = headers,
        .header_count = fetch->header_count,
        .body = fetch->sent,
        .body_bytes = fetch->sent_bytes,
        .deadline_us = deadline_us,
        .to = fetch->body,
        .to_bytes = fetch->room,
        .to_most = true,
        .limit_bytes = 4096,
        .no_proxy = fetch->sent == NULL,
        .apart = true};
    struct http_call *call = NULL;
    CADRE_TRY(http_begin(session->http, &request, true, &call, error));
    bool may_pass = false;
    cadre_status status = CADRE_CANCELLED;
    if (http_wait(session->http, &call, 1, UINT64_MAX) == 0) {
        status = http_result(call, &may_pass, error);
        const struct http_answer *answer = http_answer_of(call);
        *ret_status = answer->status;
        *ret_size = answer->wanted ? answer->to_bytes : copy_refusal(answer, fetch);
    } else {
        cadre_error_set(error, status, "the client of storage is being stopped");
    }
    http_end(call);
    return status;
}

static cadre_status fetch_for_provider(void *user, const struct s3_fetch *fetch, int *ret_status,
    size_t *ret_size, struct cadre_error *error)
{
    char *headers[FETCH_HEADERS] = {NULL};
    size_t count = fetch->header_count;
    bool good = count <= FETCH_HEADERS;
    for (size_t i = 0; i < count && good; i++) {
        good = !fault_point("storage.memory") &&
               asprintf(&headers[i], "%s: %s", fetch->headers[i].name, fetch->headers[i].value) > 0;
        headers[i] = good ? headers[i] : NULL;
    }
    cadre_status status =
        good ? fetch_with(user, fetch, headers, ret_status, ret_size, error)
             : cadre_error_errno(error, ENOMEM, "cannot ask %s for credentials", fetch->url);
    free_headers(headers, count <= FETCH_HEADERS ? count : 0);
    return status;
}

static uint64_t now_for_provider(void *user)
{
    return s3_session_now_s(user) * CADRE_US_PER_S;
}

/* --- open and close --- */

/* A variable, else what the profile says; "" where neither does. */
static cadre_status find_setting(const struct storage_variables *variables,
    const char *const *names, const char *setting, char *ret_value, struct cadre_error *error)
{
    for (; *names != NULL; names++) {
        const char *value = s3_variable(variables, *names);
        if (value != NULL) {
            if (strlen(value) >= SETTING_BYTES) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "the variable %s has more than %d bytes", *names, SETTING_BYTES - 1);
            }
            memcpy(ret_value, value, strlen(value) + 1);
            return CADRE_OK;
        }
    }
    return s3_profile_setting(variables, setting, ret_value, SETTING_BYTES, error);
}

static cadre_status read_settings(struct s3_session *session,
    const struct storage_variables *variables, char *ret_ca_file, struct cadre_error *error)
{
    static const char *const url_names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
    static const char *const region_names[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
    static const char *const ca_names[] = {"AWS_CA_BUNDLE", NULL};
    char url[SETTING_BYTES] = "";
    char region[SETTING_BYTES] = "";
    CADRE_TRY(find_setting(variables, url_names, "endpoint_url", url, error));
    CADRE_TRY(find_setting(variables, region_names, "region", region, error));
    CADRE_TRY(find_setting(variables, ca_names, "ca_bundle", ret_ca_file, error));
    return s3_endpoint_parse(url, region, &session->endpoint, error);
}

static cadre_status open_session(
    struct s3_session *session, const struct s3_session_options *options, struct cadre_error *error)
{
    char ca_file[SETTING_BYTES] = "";
    CADRE_FREE_AT_EXIT char *ca_bytes = NULL;
    size_t ca_size = 0;
    CADRE_TRY(read_settings(session, options->variables, ca_file, error));
    if (ca_file[0] != '\0' && options->read_bundle != NULL) {
        CADRE_TRY(options->read_bundle(options->user, ca_file, &ca_bytes, &ca_size, error));
    }
    const struct http_options http = {.connections = options->connections,
        .ca_file = ca_file[0] != '\0' ? ca_file : NULL,
        .ca_bytes = ca_bytes,
        .ca_size = ca_size,
        .no_metadata = options->no_metadata};
    CADRE_TRY(http_open(&http, &session->http, error));
    const struct s3_provider_options provider = {.variables = options->variables,
        .without = options->without_credentials,
        .fetch = fetch_for_provider,
        .now_us = now_for_provider,
        .user = session};
    return s3_provider_open(&provider, &session->provider, error);
}

cadre_status s3_session_open(const struct s3_session_options *options,
    struct s3_session **ret_session, struct cadre_error *error)
{
    struct s3_session *session = fault_point("storage.memory") ? NULL : calloc(1, sizeof *session);
    if (session == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot open an object store");
    }
    pthread_mutex_init(&session->mutex, NULL);
    session->deadline_us = options->deadline_us;
    session->stall_us = options->deadline_us / STALLS_ALLOWED < STALL_US
                            ? options->deadline_us / STALLS_ALLOWED
                            : STALL_US;
    atomic_store(&session->requests, clock_monotonic_us());
    cadre_status status = open_session(session, options, error);
    if (status != CADRE_OK) {
        s3_session_close(session);
        return status;
    }
    *ret_session = session;
    return CADRE_OK;
}

void s3_session_stop(struct s3_session *session)
{
    http_stop(session->http);
}

void s3_session_close(struct s3_session *session)
{
    if (session == NULL) {
        return;
    }
    s3_provider_close(session->provider);
    http_close(session->http);
    pthread_mutex_destroy(&session->mutex);
    free(session);
}

/* --- what was learned --- */

static struct s3_moved *find_moved(struct s3_session *session, const char *bucket)
{
    for (unsigned i = 0; i < S3_MOVED_MAX; i++) {
        if (strcmp(session->moved[i].bucket, bucket) == 0) {
            return &session->moved[i];
        }
    }
    return NULL;
}

void s3_session_endpoint(
    struct s3_session *session, const char *bucket, struct s3_endpoint *ret_endpoint)
{
    *ret_endpoint = session->endpoint;
    pthread_mutex_lock(&session->mutex);
    const struct s3_moved *moved = find_moved(session, bucket);
    if (moved != NULL) { /* which was checked when it was remembered */
        (void)s3_endpoint_move(ret_endpoint, moved->region, NULL);
    }
    pthread_mutex_unlock(&session->mutex);
}

cadre_status s3_session_move(
    struct s3_session *session, const char *bucket, const char *region, struct cadre_error *error)
{
    struct s3_endpoint tried = session->endpoint;
    CADRE_TRY(s3_endpoint_move(&tried, region, error));
    pthread_mutex_lock(&session->mutex);
    struct s3_moved *moved = find_moved(session, bucket);
    if (moved == NULL) {
        moved = &session->moved[session->next_moved];
        session->next_moved = (session->next_moved + 1) % S3_MOVED_MAX;
    }
    (void)snprintf(moved->bucket, sizeof moved->bucket, "%s", bucket);
    (void)snprintf(moved->region, sizeof moved->region, "%s", tried.region);
    pthread_mutex_unlock(&session->mutex);
    return CADRE_OK;
}

uint64_t s3_session_now_s(const struct s3_session *session)
{
    int64_t now_s = (int64_t)(clock_wall_us() / CADRE_US_PER_S);
    return (uint64_t)(now_s + atomic_load(&session->clock_offset_s));
}
