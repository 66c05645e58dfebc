/* SPDX-License-Identifier: Apache-2.0
 * An answer: made once, sent to any number of requests. */
#ifndef CADRE_HTTP_RESPONSE_H
#define CADRE_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/http/exposition.h"

#define HTTP_TYPE_TEXT    "text/plain; charset=utf-8"
#define HTTP_TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define HTTP_TYPE_JSON    "application/json"

struct http_content {
    unsigned status;
    const char *type; /* Content-Type */
    const char *bytes;
    size_t size;
    /* NULL: the bytes outlive the response. Else it calls this with them in the end, also when it
     * cannot be made. */
    void (*release)(void *bytes);
    const char *etag;  /* with its quotes: may be kept, and is asked for again each time; NULL: may
                          not be kept at all */
    const char *allow; /* of a status 405: the methods; NULL: GET and HEAD */
    bool closes;       /* the connection behind it, as monitors expect */
    /* "Cadre-Poll-Ms": a browser that polls should wait so long until it asks again; 0: as it
     * does with few connections. */
    uint32_t poll_ms;
};

struct http_response;

/* A response with the headers that keep browsers from doing more with it than showing it; NULL: out
 * of memory. Its owner has one reference to it. */
struct http_response *http_response_new(const struct http_content *content);

/* A response of one line of text. */
struct http_response *http_response_text(unsigned status, bool closes, const char *text);

/* What was written; takes the text over. The connection closes. */
struct http_response *http_response_exposition(
    unsigned status, const char *type, struct exposition *text);

/* One reference more. */
struct http_response *http_response_share(struct http_response *response);
/* One less; accepts NULL. */
void http_response_release(struct http_response *response);

/* Bytes of its content. */
size_t http_response_bytes(const struct http_response *response);

/* The status for a request that ended so. */
unsigned http_status_of(cadre_status status);

#endif
