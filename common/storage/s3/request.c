/* SPDX-License-Identifier: Apache-2.0
 * Joins address, credentials, signature, transport and the table of errors to one attempt. */
#include "common/storage/s3/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"

#define REDIRECTS_MAX 5 /* of what is read unsigned */

/* Whether the answer is what was asked for, before its body is read. */
static bool is_wanted(void *user, const struct http_answer *answer)
{
    const struct s3_ask *ask = user;
    return ask->check == NULL || ask->check(ask, answer, NULL) == CADRE_OK;
}

/* --- begin --- */

static cadre_status sign_attempt(struct s3_session *session, const struct s3_ask *ask,
    uint64_t deadline_us, struct s3_attempt *attempt, struct cadre_error *error)
{
    struct s3_address address;
    s3_session_endpoint(session, ask->bucket, &attempt->endpoint);
    CADRE_TRY(s3_address_of(&attempt->endpoint, ask->bucket, ask->key, &address, error));
    CADRE_TRY(s3_provider_take(session->provider, deadline_us, &attempt->credentials, error));
    attempt->clock_offset_s = atomic_load(&session->clock_offset_s);
    attempt->now_s = s3_session_now_s(session);
    const struct s3_request request = {.method = ask->method,
        .host = address.host,
        .path = address.path,
        .query = ask->query,
        .query_count = ask->query_count,
        .headers = ask->headers,
        .header_count = ask->header_count,
        .payload_sha256 = ask->body_sha256 != NULL ? ask->body_sha256 : S3_EMPTY_SHA256};
    CADRE_TRY(s3_sign(&request, attempt->credentials, attempt->endpoint.region, attempt->now_s,
        &attempt->signed_request, error));
    int written = fault_point("storage.memory") ? -1
                                                : asprintf(&attempt->url, "%s://%s%s",
                                                      attempt->endpoint.tls ? "https" : "http",
                                                      address.host, attempt->signed_request.target);
    if (written < 0) {
        attempt->url = NULL;
        return cadre_error_errno(error, ENOMEM, "cannot sign a request");
    }
    return CADRE_OK;
}

/* What is read as it is, by anyone. */
static cadre_status write_attempt(
    const struct s3_ask *ask, struct s3_attempt *attempt, struct cadre_error *error)
{
    CADRE_ASSERT(ask->header_count <= S3_PLAIN_HEADERS);
    for (size_t i = 0; i < ask->header_count; i++) {
        int written = snprintf(attempt->plain[i], S3_PLAIN_BYTES, "%s: %s", ask->headers[i].name,
            ask->headers[i].value);
        CADRE_ASSERT(written > 0 && written < S3_PLAIN_BYTES);
        attempt->plain_headers[i] = attempt->plain[i];
    }
    attempt->url = fault_point("storage.memory") ? NULL : strdup(ask->url);
    return attempt->url != NULL ? CADRE_OK
                                : cadre_error_errno(error, ENOMEM, "cannot write a request");
}

static cadre_status send_attempt(struct s3_session *session, const struct s3_ask *ask,
    uint64_t deadline_us, bool must_wait, struct s3_attempt *attempt, struct cadre_error *error)
{
    bool is_plain = ask->bucket == NULL;
    CADRE_TRY(is_plain ? write_attempt(ask, attempt, error)
                       : sign_attempt(session, ask, deadline_us, attempt, error));
    const struct http_request request = {.method = ask->method,
        .url = attempt->url,
        .headers = is_plain ? attempt->plain_headers : attempt->signed_request.headers,
        .header_count = is_plain ? ask->header_count : attempt->signed_request.header_count,
        .body = ask->body,
        .body_bytes = ask->body_bytes,
        .deadline_us = deadline_us,
        .stall_us = ask->is_slow ? 0 : session->stall_us,
        .to = ask->to,
        .to_bytes = ask->to_bytes,
        .to_pieces = ask->to_pieces,
        .piece_bytes = ask->piece_bytes,
        .is_wanted = is_wanted,
        .user = (void *)(uintptr_t)ask,
        .limit_bytes = ask->limit_bytes != 0 ? ask->limit_bytes : S3_ERROR_BYTES_MAX,
        .redirects_max = is_plain ? REDIRECTS_MAX : 0};
    CADRE_TRY(http_begin(session->http, &request, must_wait, &attempt->call, error));
    attempt->begun_us = clock_monotonic_us(); /* the wait for a connection is none for the store */
    return CADRE_OK;
}

cadre_status s3_attempt_begin(struct s3_session *session, const struct s3_ask *ask,
    uint64_t deadline_us, bool must_wait, struct s3_attempt *attempt, struct cadre_error *error)
{
    CADRE_ASSERT(attempt->call == NULL);
    memset(attempt, 0, sizeof *attempt);
    cadre_status status = send_attempt(session, ask, deadline_us, must_wait, attempt, error);
    if (attempt->call == NULL) {
        s3_attempt_end(session, attempt);
    }
    return status;
}

void s3_attempt_end(struct s3_session *session, struct s3_attempt *attempt)
{
    http_end(attempt->call);
    attempt->call = NULL;
    s3_provider_give_back(session->provider, attempt->credentials);
    attempt->credentials = NULL;
    s3_signed_wipe(&attempt->signed_request);
    free(attempt->url);
    attempt->url = NULL;
}

/* --- judge --- */

/* A server that is no store: by HTTP's status alone. */
static void judge_plain(const struct s3_ask *ask, int status, struct s3_outcome *outcome)
{
    static const struct {
        int http;
        cadre_status status;
        const char *text;
    } rows[] = {
        {401, CADRE_PERMISSION_DENIED, "the server asks for a login"},
        {403, CADRE_PERMISSION_DENIED, "the server refuses it: does the link still hold?"},
        {404, CADRE_NOT_FOUND, "there is no such object"},
        {410, CADRE_NOT_FOUND, "there is no such object any more"},
        {412, CADRE_DATA_LOSS, "it is another object now than when it was opened"},
        {416, CADRE_OUT_OF_RANGE, "it has fewer bytes"},
        {408, CADRE_UNAVAILABLE, "the server is busy"},
        {425, CADRE_UNAVAILABLE, "the server is busy"},
        {429, CADRE_UNAVAILABLE, "the server asks for fewer requests"},
    };
    cadre_status code = status >= 500 ? CADRE_UNAVAILABLE : CADRE_FAILED_PRECONDITION;
    const char *text = status >= 500 ? "the server reports an error of its own"
                                     : "the server answers with something else than the object";
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        if (rows[i].http == status) {
            code = rows[i].status;
            text = rows[i].text;
        }
    }
    outcome->repeat = code == CADRE_UNAVAILABLE;
    outcome->slow_down = status == 429 || status == 503;
    outcome->status = cadre_error_set(&outcome->error, code, "%s (HTTP %d)", text, status);
    (void)s3_blame(ask->operation, ask->path, code, &outcome->error);
}

/* Does what the verdict says that may help, once each. */
static bool apply_verdict(struct s3_session *session, const struct s3_ask *ask,
    struct s3_tried *tried, struct s3_attempt *attempt, const struct s3_verdict *verdict)
{
    if (verdict->renew_credentials && !tried->renewed) {
        tried->renewed = true;
        s3_provider_refuse(session->provider, attempt->credentials);
        return true;
    }
    if (verdict->move && !tried->moved) {
        tried->moved = true;
        return s3_session_move(session, ask->bucket, verdict->region, NULL) == CADRE_OK;
    }
    if (verdict->set_clock && !tried->set_clock) {
        tried->set_clock = true;
        atomic_store(&session->clock_offset_s, attempt->clock_offset_s + verdict->clock_offset_s);
        return true;
    }
    return false;
}

static void judge_answer(struct s3_session *session, struct s3_ask *ask, struct s3_tried *tried,
    struct s3_attempt *attempt, struct s3_outcome *outcome)
{
    const struct http_answer *answer = http_answer_of(attempt->call);
    char endpoint[sizeof attempt->endpoint.host + sizeof attempt->endpoint.prefix + 16];
    (void)snprintf(endpoint, sizeof endpoint, "%s://%s%s", attempt->endpoint.tls ? "https" : "http",
        attempt->endpoint.host, attempt->endpoint.prefix);
    const struct s3_failure failure = {.operation = ask->operation,
        .path = ask->path,
        .endpoint = endpoint,
        .region = attempt->endpoint.region,
        .source = attempt->credentials != NULL ? attempt->credentials->source : NULL,
        .status = answer->status,
        .content_type = http_header(answer, "content-type"),
        .date = http_header(answer, "date"),
        .bucket_region = http_header(answer, "x-amz-bucket-region"),
        .body = answer->body,
        .body_bytes = answer->body_bytes,
        .now_s = attempt->now_s};
    struct s3_verdict verdict;
    s3_judge(&failure, &verdict);
    memcpy(ask->code, verdict.code, sizeof ask->code);
    outcome->error = verdict.error;
    outcome->status = verdict.error.code;
    outcome->repeat = verdict.repeat;
    outcome->slow_down = verdict.slow_down;
    outcome->at_once = apply_verdict(session, ask, tried, attempt, &verdict);
}

/* A long request may fail after the store sent status 200. */
static bool is_late_error(const struct s3_ask *ask, const struct http_answer *answer)
{
    struct s3_error_answer unused;
    return ask->parsed != NULL && answer->body != NULL &&
           s3_error_parse(answer->body, answer->body_bytes, &unused);
}

/* Each store says the ETag of what was written, and of what is there; a sign-in page of a proxy,
 * with status 200, has none. */
static cadre_status check_is_of_store(
    const struct s3_ask *ask, const struct http_answer *answer, struct cadre_error *error)
{
    bool is_of_one_version = ask->operation == S3_HEAD_OBJECT || ask->operation == S3_GET_OBJECT ||
                             ask->operation == S3_PUT_OBJECT || ask->operation == S3_UPLOAD_PART;
    if (ask->bucket == NULL || !is_of_one_version || http_header(answer, "etag") != NULL) {
        return CADRE_OK;
    }
    const char *type = http_header(answer, "content-type");
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the answer is not the store's, since it has no ETag (HTTP %d, %.64s): is this an object "
        "store, and no proxy before it?",
        answer->status, type != NULL ? type : "of no type");
}

/* What is to be right with a success, and what is to be read from it. */
static cadre_status take_success(
    struct s3_ask *ask, struct http_answer *answer, struct cadre_error *error)
{
    CADRE_TRY(check_is_of_store(ask, answer, error));
    if (ask->check != NULL) {
        CADRE_TRY(ask->check(ask, answer, error));
    }
    if (ask->parsed != NULL) {
        const char *body = answer->body != NULL ? answer->body : "";
        return s3_answer_parse(ask->kind, body, answer->body_bytes, ask->parsed, error);
    }
    ask->answer = *answer;
    *answer = (struct http_answer){0};
    return CADRE_OK;
}

void s3_attempt_judge(struct s3_session *session, struct s3_ask *ask, struct s3_tried *tried,
    struct s3_attempt *attempt, struct s3_outcome *ret_outcome)
{
    struct s3_outcome *outcome = ret_outcome;
    *outcome = (struct s3_outcome){.status = CADRE_OK};
    ask->code[0] = '\0';
    struct http_answer *answer = http_answer_of(attempt->call);
    outcome->status = http_result(attempt->call, &outcome->repeat, &outcome->error);
    if (outcome->status != CADRE_OK) {
        (void)s3_blame(ask->operation, ask->path, outcome->status, &outcome->error);
        return;
    }
    bool success = answer->status >= 200 && answer->status <= 299;
    if (!success || is_late_error(ask, answer)) {
        if (ask->bucket == NULL) {
            judge_plain(ask, answer->status, outcome);
        } else {
            judge_answer(session, ask, tried, attempt, outcome);
        }
        return;
    }
    outcome->status = take_success(ask, answer, &outcome->error);
    if (outcome->status != CADRE_OK) {
        outcome->repeat = outcome->status == CADRE_UNAVAILABLE;
        (void)s3_blame(ask->operation, ask->path, outcome->status, &outcome->error);
    }
}
