/* SPDX-License-Identifier: Apache-2.0
 * A request, as a page sees it, and its answer: at once or later. */
#ifndef CADRE_HTTP_REQUEST_H
#define CADRE_HTTP_REQUEST_H

#include "common/http/response.h"
#include "common/http/target.h"

struct http_request;

/* What follows the page's path: "3/logs" of "/api/jobs/3/logs" on the page "/api/jobs/". */
const char *http_request_rest(const struct http_request *request);

/* Its path and arguments; lives until it is answered. */
const struct http_target *http_request_target(const struct http_request *request);

/* The value of a header; NULL: it has none. Only while the page's serve() runs. */
const char *http_request_header(const struct http_request *request, const char *name);

/* Whether it is a POST; else it is a GET or HEAD. */
bool http_request_acts(const struct http_request *request);

/* The body of a POST, "" where it has none; lives until it is answered. */
const char *http_request_body(const struct http_request *request, size_t *ret_size);

/* The first URI of the certificate that its client showed, "" where that has none; NULL: the server
 * asks for no certificate, as on loopback. Only while the page's serve() runs. */
const char *http_request_certificate(const struct http_request *request);

/* Answers it, exactly once, on the loop's thread; takes over the reference to the response. NULL:
 * there was no memory for one, and the connection is closed. Where the client has gone meanwhile
 * nothing is sent. The request is released. */
void http_answer(struct http_request *request, struct http_response *response);

/* Whether its client has gone, or the server is being closed: an answer would not be sent. A client
 * that goes while the answer is made is noticed only then. */
bool http_request_is_over(const struct http_request *request);

#endif
