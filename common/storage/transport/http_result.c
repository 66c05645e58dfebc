/* SPDX-License-Identifier: Apache-2.0
 * How a request ended: libcurl's codes, and our own causes, as a status and a sentence. */
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/storage/transport/http_state.h"

struct row {
    CURLcode code;
    cadre_status status;
    bool may_pass;
};

/* Codes that are not here are INTERNAL, and not repeated: they are about curl's options. */
static const struct row rows[] = {
    {CURLE_COULDNT_RESOLVE_PROXY, CADRE_UNAVAILABLE, true},
    {CURLE_COULDNT_RESOLVE_HOST, CADRE_UNAVAILABLE, true},
    {CURLE_COULDNT_CONNECT, CADRE_UNAVAILABLE, true},
    {CURLE_WEIRD_SERVER_REPLY, CADRE_UNAVAILABLE, true},
    {CURLE_PARTIAL_FILE, CADRE_UNAVAILABLE, true},
    {CURLE_OPERATION_TIMEDOUT, CADRE_UNAVAILABLE, true},
    {CURLE_SSL_CONNECT_ERROR, CADRE_UNAVAILABLE, true},
    {CURLE_GOT_NOTHING, CADRE_UNAVAILABLE, true},
    {CURLE_SEND_ERROR, CADRE_UNAVAILABLE, true},
    {CURLE_RECV_ERROR, CADRE_UNAVAILABLE, true},
    {CURLE_SEND_FAIL_REWIND, CADRE_UNAVAILABLE, true},
    {CURLE_BAD_CONTENT_ENCODING, CADRE_UNAVAILABLE, true},
    {CURLE_HTTP2, CADRE_UNAVAILABLE, true},
    {CURLE_PROXY, CADRE_UNAVAILABLE, true},
    {CURLE_UNSUPPORTED_PROTOCOL, CADRE_FAILED_PRECONDITION, false},
    {CURLE_URL_MALFORMAT, CADRE_INVALID_ARGUMENT, false},
    {CURLE_TOO_MANY_REDIRECTS, CADRE_FAILED_PRECONDITION, false},
    {CURLE_OUT_OF_MEMORY, CADRE_RESOURCE_EXHAUSTED, false},
    {CURLE_PEER_FAILED_VERIFICATION, CADRE_FAILED_PRECONDITION, false},
    {CURLE_SSL_CACERT_BADFILE, CADRE_FAILED_PRECONDITION, false},
    {CURLE_SSL_ISSUER_ERROR, CADRE_FAILED_PRECONDITION, false},
    {CURLE_SSL_CERTPROBLEM, CADRE_FAILED_PRECONDITION, false},
    {CURLE_SSL_CIPHER, CADRE_FAILED_PRECONDITION, false},
};

/* "https://user@host:9000/a" -> "host:9000". */
static int host_of(const char *url, const char **ret_host)
{
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    *ret_host = host;
    return (int)strcspn(host, "/?#");
}

static cadre_status of_untrusted(
    const struct http_call *call, const char *reason, struct cadre_error *error)
{
    const char *host = NULL;
    int length = host_of(call->request.url, &host);
    const char *file = call->http->ca_file;
    bool known = call->issuer[0] != '\0';
    if (call->watched && !known) { /* the chain is good */
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the certificate of %.*s is that of another host (%s): use a name that it has, or give "
            "the host a certificate with this one",
            length, host, reason);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the certificate of %.*s%s%s%s is not trusted (%s): AWS_CA_BUNDLE%s%.200s%s is to name the "
        "file with its authority's certificate",
        length, host, known ? ", issued by " : "", call->issuer, known ? "," : "", reason,
        file != NULL ? ", now " : "", file != NULL ? file : "", file != NULL ? "," : "");
}

static cadre_status of_no_authorities(
    const struct http_call *call, const char *reason, struct cadre_error *error)
{
    const char *file = call->http->ca_file;
    if (file == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the authorities' certificates cannot be read (%s): install the package "
            "ca-certificates",
            reason);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%.200s, which AWS_CA_BUNDLE names, has no certificate that can be read (%s): it is to "
        "have "
        "those of authorities, as PEM",
        file, reason);
}

/* From https to what is no https. */
static cadre_status of_redirect(const struct http_call *call, struct cadre_error *error)
{
    const char *host = NULL;
    int length = host_of(call->request.url, &host);
    const char *location = http_header(&call->answer, "location");
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%.*s redirects to %.*s, which is not followed because others could read and change what "
        "comes: have it redirect to https, or name the https:// address of the object",
        length, host, (int)strcspn(location, ":/?#"), location);
}

static cadre_status of_curl(
    const struct http_call *call, bool *ret_may_pass, struct cadre_error *error)
{
    struct row row = {call->code, CADRE_INTERNAL, false};
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        row = rows[i].code == call->code ? rows[i] : row;
    }
    if (call->code == CURLE_UNSUPPORTED_PROTOCOL && call->answer.status == 0) {
        row = (struct row){call->code, CADRE_UNAVAILABLE, true}; /* what came is no HTTP/1 */
    }
    const char *host = NULL;
    int length = host_of(call->request.url, &host);
    const char *reason = call->reason[0] != '\0' ? call->reason : curl_easy_strerror(call->code);
    *ret_may_pass = row.may_pass;
    switch (call->code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return of_untrusted(call, reason, error);
    case CURLE_SSL_CACERT_BADFILE:
        return of_no_authorities(call, reason, error);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (http_header(&call->answer, "location") != NULL) {
            return of_redirect(call, error);
        }
        return cadre_error_set(error, row.status, "no answer from %.*s: %s", length, host, reason);
    case CURLE_PARTIAL_FILE:
        return cadre_error_set(
            error, row.status, "%.*s ended its answer early: %s", length, host, reason);
    default:
        return cadre_error_set(error, row.status, "no answer from %.*s: %s", length, host, reason);
    }
}

cadre_status http_result(
    const struct http_call *call, bool *ret_may_pass, struct cadre_error *error)
{
    CADRE_ASSERT(call->ended);
    const struct http_request *request = &call->request;
    const char *host = NULL;
    int length = host_of(request->url, &host);
    *ret_may_pass = false;
    switch (call->cause) {
    case HTTP_CUT:
        return CADRE_OK;
    case HTTP_BY_CURL:
        return call->code == CURLE_OK ? CADRE_OK : of_curl(call, ret_may_pass, error);
    case HTTP_STOPPED:
        return cadre_error_set(error, CADRE_CANCELLED, "the client of storage is being stopped");
    case HTTP_DEADLINE:
        *ret_may_pass = true;
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "%.*s did not answer in time", length, host);
    case HTTP_STALLED:
        *ret_may_pass = true;
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "%.*s stalled: less than 1 KiB/s for %.1f s", length, host,
            (double)request->stall_us / (double)CADRE_US_PER_S);
    case HTTP_TOO_SHORT:
        *ret_may_pass = true;
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "%.*s answered with %zu bytes instead of %zu", length, host, call->answer.to_bytes,
            request->to_bytes);
    case HTTP_TOO_LONG:
        *ret_may_pass = request->to != NULL && !request->to_most;
        return cadre_error_set(error, *ret_may_pass ? CADRE_UNAVAILABLE : CADRE_OUT_OF_RANGE,
            "%.*s answered with more than %zu bytes", length, host,
            request->to != NULL ? request->to_bytes : request->limit_bytes);
    case HTTP_HEADERS_TOO_LONG:
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%.*s answered with more than %zu bytes of headers", length, host, HTTP_HEADERS_BYTES);
    case HTTP_FORBIDDEN:
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "%.*s is an address of a host's metadata services, and no object store: set "
            "AWS_ENDPOINT_URL_S3 to that of the store",
            length, host);
    case HTTP_NO_MEMORY:
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the answer of %.*s", length, host);
    }
    CADRE_ASSERT(false);
    return CADRE_INTERNAL;
}

struct http_answer *http_answer_of(struct http_call *call)
{
    CADRE_ASSERT(call->ended);
    return &call->answer;
}
