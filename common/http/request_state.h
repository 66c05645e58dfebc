/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: a request from its first line to its end. */
#ifndef CADRE_HTTP_REQUEST_STATE_H
#define CADRE_HTTP_REQUEST_STATE_H

#include <microhttpd.h>

#include "common/http/request.h"
#include "common/http/visits.h"

/* Those of a server that are not over. */
struct http_requests {
    struct http_request *first;
    /* One that was suspended is answered: libmicrohttpd is to be run soon. */
    void (*on_answer)(void *user);
    void *user;
};

struct http_request {
    struct http_request *next;
    struct http_request *before;
    struct http_requests *all;
    struct MHD_Connection *connection; /* NULL: it is over */
    struct visit *visit;               /* NULL: there was no memory for one */
    const char *rest;
    bool has_headers;
    bool acts;         /* it is a POST, with this body: */
    char *body;        /* HTTP_BODY_MAX bytes; NULL: it has none */
    size_t body_bytes; /* also those that were dropped, because they are more */
    bool asked;        /* a page has it, and is to answer it */
    bool answered;     /* it was, with this response: */
    bool suspended;    /* its connection is, until then */
    struct http_response *response;
    struct cadre_error refused; /* what is wrong with its target; code OK: nothing */
    struct http_target target;
};

/* A new request of the server, from the raw target of its request line; NULL: out of
 * memory. */
struct http_request *http_request_new(
    struct http_requests *all, struct MHD_Connection *connection, const char *raw);

/* Adds bytes of its body; false: no memory, or so many that the connection is to be closed. */
bool http_request_add_body(struct http_request *request, const char *bytes, size_t size);

/* The page answered, or did not yet: sends the answer, or suspends the connection until then. */
enum MHD_Result http_request_go_on(struct http_request *request, struct visits *visits);

/* The server is about to close the connection: an answer that comes later is dropped. */
void http_request_give_up(struct http_request *request);

/* Its connection is over, or goes on to its next request. */
void http_request_end(struct http_request *request);

#endif
