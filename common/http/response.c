/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/response.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/response_queue.h"

/* Nothing that an answer holds may be run or loaded from elsewhere, or be shown inside the page of
 * another site. */
#define CONTENT_SECURITY_POLICY                                                                    \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " \
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct http_response {
    unsigned references;
    unsigned status;
    size_t size;
    struct MHD_Response *mhd;
};

static void add_headers(struct MHD_Response *mhd, const struct http_content *content)
{
    static const char *const always[][2] = {{"Content-Security-Policy", CONTENT_SECURITY_POLICY},
        {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"}};
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        MHD_add_response_header(mhd, always[i][0], always[i][1]);
    }
    MHD_add_response_header(mhd, MHD_HTTP_HEADER_CONTENT_TYPE, content->type);
    MHD_add_response_header(
        mhd, MHD_HTTP_HEADER_CACHE_CONTROL, content->etag != NULL ? "no-cache" : "no-store");
    if (content->etag != NULL) {
        MHD_add_response_header(mhd, MHD_HTTP_HEADER_ETAG, content->etag);
    }
    if (content->closes) {
        MHD_add_response_header(mhd, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (content->poll_ms > 0) {
        char text[16];
        snprintf(text, sizeof text, "%u", (unsigned)content->poll_ms);
        MHD_add_response_header(mhd, "Cadre-Poll-Ms", text);
    }
    if (content->status == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(mhd, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    if (content->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(
            mhd, MHD_HTTP_HEADER_ALLOW, content->allow != NULL ? content->allow : "GET, HEAD");
    }
}

static void http_response_drop(const struct http_content *content)
{
    if (content->release != NULL) {
        content->release((void *)(uintptr_t)content->bytes);
    }
}

struct http_response *http_response_new(const struct http_content *content)
{
    struct http_response *response = calloc(1, sizeof *response);
    void *bytes = (void *)(uintptr_t)content->bytes;
    if (response != NULL) {
        response->mhd =
            content->release != NULL
                ? MHD_create_response_from_buffer_with_free_callback(
                      content->size, bytes, content->release)
                : MHD_create_response_from_buffer(content->size, bytes, MHD_RESPMEM_PERSISTENT);
    }
    if (response == NULL || response->mhd == NULL) {
        http_response_drop(content);
        free(response);
        return NULL;
    }
    response->references = 1;
    response->status = content->status;
    response->size = content->size;
    add_headers(response->mhd, content);
    return response;
}

struct http_response *http_response_text(unsigned status, bool closes, const char *text)
{
    size_t size = strlen(text);
    char *copy = malloc(size + 2);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, text, size);
    copy[size] = '\n';
    return http_response_new(&(const struct http_content){.status = status,
        .type = HTTP_TYPE_TEXT,
        .bytes = copy,
        .size = size + 1,
        .release = free,
        .closes = closes});
}

struct http_response *http_response_exposition(
    unsigned status, const char *type, struct exposition *text)
{
    struct exposition taken = *text;
    *text = (struct exposition){0};
    if (taken.failed || taken.text == NULL) {
        exposition_free(&taken);
        return NULL;
    }
    return http_response_new(&(const struct http_content){.status = status,
        .type = type,
        .bytes = taken.text,
        .size = taken.size,
        .release = free,
        .closes = true});
}

struct http_response *http_response_share(struct http_response *response)
{
    response->references++;
    return response;
}

void http_response_release(struct http_response *response)
{
    if (response != NULL && --response->references == 0) {
        MHD_destroy_response(response->mhd);
        free(response);
    }
}

size_t http_response_bytes(const struct http_response *response)
{
    return response->size;
}

enum MHD_Result http_response_queue(
    const struct http_response *response, struct MHD_Connection *connection)
{
    return response != NULL ? MHD_queue_response(connection, response->status, response->mhd)
                            : MHD_NO;
}

unsigned http_status_of(cadre_status status)
{
    switch (status) {
    case CADRE_OK:
        return MHD_HTTP_OK;
    case CADRE_INVALID_ARGUMENT:
    case CADRE_FAILED_PRECONDITION:
    case CADRE_OUT_OF_RANGE:
        return MHD_HTTP_BAD_REQUEST;
    case CADRE_UNAUTHENTICATED:
        return MHD_HTTP_UNAUTHORIZED;
    case CADRE_PERMISSION_DENIED:
        return MHD_HTTP_FORBIDDEN;
    case CADRE_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case CADRE_ALREADY_EXISTS:
    case CADRE_ABORTED:
        return MHD_HTTP_CONFLICT;
    case CADRE_RESOURCE_EXHAUSTED:
        return MHD_HTTP_TOO_MANY_REQUESTS;
    case CADRE_UNIMPLEMENTED:
        return MHD_HTTP_NOT_IMPLEMENTED;
    case CADRE_UNAVAILABLE:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    case CADRE_DEADLINE_EXCEEDED:
        return MHD_HTTP_GATEWAY_TIMEOUT;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}
