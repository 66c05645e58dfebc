/* SPDX-License-Identifier: Apache-2.0
 * A request has two owners: its connection, from the request line to the last byte of the answer,
 * and the page that was asked, until it answers. The second one to let it go releases it. */
#include "common/http/request_state.h"

#include <stdlib.h>
#include <string.h>

#include "common/http/response_queue.h"
#include "common/http/server.h"
#include "common/pure/assert.h"

/* Of all answers together that are being sent: clients that read slowly keep theirs in memory. */
#define ANSWERS_BYTES ((size_t)128 * 1024 * 1024)

/* More of a body is not read to its end. */
#define BODY_READ_MAX ((size_t)1024 * 1024)

struct http_request *http_request_new(
    struct http_requests *all, struct MHD_Connection *connection, const char *raw)
{
    struct http_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        return NULL;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->connection = connection;
    request->visit = info != NULL ? info->socket_context : NULL;
    (void)http_target_parse(raw, &request->target, &request->refused);
    request->rest = "";
    request->all = all;
    request->next = all->first;
    if (request->next != NULL) {
        request->next->before = request;
    }
    all->first = request;
    return request;
}

static void http_request_free(struct http_request *request)
{
    http_response_release(request->response);
    free(request->body);
    free(request);
}

const char *http_request_rest(const struct http_request *request)
{
    return request->rest;
}

const struct http_target *http_request_target(const struct http_request *request)
{
    return &request->target;
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    CADRE_ASSERT(request->connection != NULL);
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool http_request_acts(const struct http_request *request)
{
    return request->acts;
}

const char *http_request_body(const struct http_request *request, size_t *ret_size)
{
    *ret_size = request->body != NULL ? request->body_bytes : 0;
    return request->body != NULL ? request->body : "";
}

bool http_request_add_body(struct http_request *request, const char *bytes, size_t size)
{
    if (request->body == NULL) {
        request->body = malloc(HTTP_BODY_MAX);
    }
    size_t used = request->body_bytes < HTTP_BODY_MAX ? request->body_bytes : HTTP_BODY_MAX;
    if (request->body == NULL || request->body_bytes + size > BODY_READ_MAX) {
        return false;
    }
    memcpy(request->body + used, bytes, size < HTTP_BODY_MAX - used ? size : HTTP_BODY_MAX - used);
    request->body_bytes += size;
    return true;
}

const char *http_request_certificate(const struct http_request *request)
{
    CADRE_ASSERT(request->connection != NULL);
    const struct visit *visit = request->visit;
    return visit != NULL && visit->trust == VISIT_TRUSTED ? visit->uri : NULL;
}

bool http_request_is_over(const struct http_request *request)
{
    return request->connection == NULL;
}

void http_answer(struct http_request *request, struct http_response *response)
{
    CADRE_ASSERT(request->asked && !request->answered);
    request->asked = false;
    request->answered = true;
    request->response = response;
    if (request->connection == NULL) {
        http_request_free(request);
    } else if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->connection);
        request->all->on_answer(request->all->user);
    }
}

enum MHD_Result http_request_go_on(struct http_request *request, struct visits *visits)
{
    if (!request->answered) {
        request->suspended = true;
        MHD_suspend_connection(request->connection);
        return MHD_YES;
    }
    size_t bytes = request->response != NULL ? http_response_bytes(request->response) : 0;
    visit_sends(visits, request->visit, bytes, ANSWERS_BYTES);
    return http_response_queue(request->response, request->connection);
}

void http_request_give_up(struct http_request *request)
{
    if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->connection);
    }
}

void http_request_end(struct http_request *request)
{
    if (request->before != NULL) {
        request->before->next = request->next;
    } else {
        request->all->first = request->next;
    }
    if (request->next != NULL) {
        request->next->before = request->before;
    }
    request->connection = NULL;
    request->visit = NULL;
    if (!request->asked) {
        http_request_free(request);
    }
}
