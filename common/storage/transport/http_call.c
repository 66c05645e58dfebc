/* SPDX-License-Identifier: Apache-2.0
 * One request as libcurl sees it: its options, the bytes that go out, the headers and bytes that
 * come in. The callbacks run in the thread that waits, from curl_multi_socket_action(). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/transport/http_state.h"
#include "common/storage/transport/metadata_address.h"

#define BUFFER_BYTES 131072L /* curl's, of each direction */

static bool begins_with(const char *text, size_t size, const char *with)
{
    size_t length = strlen(with);
    return size >= length && strncasecmp(text, with, length) == 0;
}

/* --- headers --- */

/* "HTTP/1.1 206 Partial Content" begins the headers of a response: those before it were of one
 * that redirected, or of "100 Continue". */
static void begin_headers(struct http_call *call, const char *text, size_t size)
{
    struct http_answer *answer = &call->answer;
    answer->status = 0;
    answer->headers_bytes = 0;
    const char *space = memchr(text, ' ', size);
    for (; space != NULL && space + 1 < text + size && isdigit((unsigned char)space[1]); space++) {
        if (answer->status < 1000) {
            answer->status = answer->status * 10 + (space[1] - '0');
        }
    }
}

/* Appends "name: value", terminated, the name in lower case. */
static bool add_header(struct http_call *call, const char *text, size_t size, size_t name_bytes)
{
    struct http_answer *answer = &call->answer;
    if (size + 1 > HTTP_HEADERS_BYTES - answer->headers_bytes) {
        call->cause = HTTP_HEADERS_TOO_LONG;
        return false;
    }
    if (answer->headers == NULL) {
        answer->headers = fault_point("storage.memory") ? NULL : malloc(HTTP_HEADERS_BYTES);
        if (answer->headers == NULL) {
            call->cause = HTTP_NO_MEMORY;
            return false;
        }
    }
    char *to = answer->headers + answer->headers_bytes;
    for (size_t i = 0; i < size; i++) {
        to[i] = i < name_bytes ? (char)tolower((unsigned char)text[i]) : text[i];
    }
    to[size] = '\0';
    answer->headers_bytes += size + 1;
    return true;
}

/* curl's prototype; anything but `size` ends the request. */
static size_t on_header(char *text, size_t one, size_t size, void *user)
{
    (void)one;
    struct http_call *call = user;
    call->moved_bytes += size;
    size_t length = size;
    while (length > 0 && strchr("\r\n \t", text[length - 1]) != NULL) {
        length--;
    }
    if (begins_with(text, length, "HTTP/")) {
        begin_headers(call, text, length);
        return size;
    }
    const char *colon = memchr(text, ':', length);
    if (colon == NULL || memchr(text, '\0', length) != NULL) {
        return size;
    }
    return add_header(call, text, length, (size_t)(colon - text)) ? size : 0;
}

const char *http_header(const struct http_answer *answer, const char *name)
{
    size_t length = strlen(name);
    const char *end = answer->headers + answer->headers_bytes;
    for (const char *at = answer->headers; at != NULL && at < end; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            const char *value = at + length + 1;
            return value + strspn(value, " \t");
        }
    }
    return NULL;
}

void http_answer_free(struct http_answer *answer)
{
    free(answer->headers);
    free(answer->body);
    *answer = (struct http_answer){0};
}

/* --- the body that comes --- */

static bool is_success(const struct http_answer *answer)
{
    return answer->status >= 200 && answer->status <= 299;
}

static void choose_sink(struct http_call *call)
{
    const struct http_request *request = &call->request;
    bool wanted = request->to != NULL && is_success(&call->answer) &&
                  (request->is_wanted == NULL || request->is_wanted(request->user, &call->answer));
    call->answer.wanted = wanted;
    call->sink = wanted ? HTTP_SINK_CALLER : HTTP_SINK_MEMORY;
}

/* Where the next bytes of the body go, and how many. */
static char *next_room(const struct http_call *call, size_t *ret_room)
{
    const struct http_request *request = &call->request;
    size_t done = call->answer.to_bytes;
    if (request->to_pieces == NULL) {
        *ret_room = request->to_bytes - done;
        return (char *)request->to + done;
    }
    size_t inside = done % request->piece_bytes;
    *ret_room = request->piece_bytes - inside;
    return (char *)request->to_pieces[done / request->piece_bytes] + inside;
}

static bool body_to_caller(struct http_call *call, const char *bytes, size_t size)
{
    struct http_answer *answer = &call->answer;
    if (size > call->request.to_bytes - answer->to_bytes) {
        call->cause = HTTP_TOO_LONG;
        return false;
    }
    while (size > 0) {
        size_t room = 0;
        char *to = next_room(call, &room);
        size_t count = size < room ? size : room;
        memcpy(to, bytes, count);
        answer->to_bytes += count;
        bytes += count;
        size -= count;
    }
    return true;
}

static bool body_to_memory(struct http_call *call, const char *bytes, size_t size)
{
    struct http_answer *answer = &call->answer;
    size_t left = call->request.limit_bytes - answer->body_bytes;
    size_t kept = size < left ? size : left;
    if (answer->body_bytes + kept + 1 > call->body_room) {
        size_t room = call->body_room < 4096 ? 4096 : call->body_room * 2;
        room = room < answer->body_bytes + kept + 1 ? answer->body_bytes + kept + 1 : room;
        char *grown = fault_point("storage.memory") ? NULL : realloc(answer->body, room);
        if (grown == NULL) {
            call->cause = HTTP_NO_MEMORY;
            return false;
        }
        answer->body = grown;
        call->body_room = room;
    }
    memcpy(answer->body + answer->body_bytes, bytes, kept);
    answer->body_bytes += kept;
    answer->body[answer->body_bytes] = '\0';
    if (kept < size) {
        bool is_result = is_success(answer) && call->request.to == NULL;
        call->cause = is_result ? HTTP_TOO_LONG : HTTP_CUT;
        return false;
    }
    return true;
}

/* curl's prototype; anything but `size` ends the request. */
static size_t on_body(char *bytes, size_t one, size_t size, void *user)
{
    (void)one;
    struct http_call *call = user;
    call->moved_bytes += size;
    atomic_fetch_add(&call->http->moved_bytes, size);
    if (call->sink == HTTP_SINK_UNDECIDED) {
        choose_sink(call);
    }
    bool taken = call->sink == HTTP_SINK_CALLER ? body_to_caller(call, bytes, size)
                                                : body_to_memory(call, bytes, size);
    return taken ? size : 0;
}

/* --- the body that goes --- */

static size_t on_send(char *to, size_t one, size_t room, void *user)
{
    struct http_call *call = user;
    size_t left = call->request.body_bytes - call->body_sent;
    size_t size = one * room < left ? one * room : left;
    if (size > 0) {
        memcpy(to, (const char *)call->request.body + call->body_sent, size);
    }
    call->body_sent += size;
    call->moved_bytes += size;
    atomic_fetch_add(&call->http->moved_bytes, size);
    return size;
}

/* An open connection turned out to be closed: curl sends the body again over another one. */
static int on_seek(void *user, curl_off_t offset, int whence)
{
    struct http_call *call = user;
    if (whence != SEEK_SET || offset < 0 || (size_t)offset > call->request.body_bytes) {
        return CURL_SEEKFUNC_FAIL;
    }
    call->body_sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* --- the connection --- */

/* curl's prototype: is called for each address of a host until one can be connected to. Programs
 * that this one starts have no use for its connections; curl itself would let them have these. */
static curl_socket_t on_open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct http_call *call = user;
    bool is_checked = call->http->no_metadata && !call->apart;
    if (is_checked && metadata_address_is(&address->addr)) {
        call->forbidden = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

/* --- options --- */

static void set_method(struct http_call *call)
{
    const struct http_request *request = &call->request;
    CURL *easy = call->easy;
    if (strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (strcmp(request->method, "PUT") == 0) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_bytes);
    } else if (strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    } else if (strcmp(request->method, "GET") != 0) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

static void set_limits(struct http_call *call)
{
    const struct http_request *request = &call->request;
    CURL *easy = call->easy;
    uint64_t connect_us = HTTP_CONNECT_US;
    if (request->stall_us > 0 && request->stall_us * 3 / 4 < connect_us) {
        connect_us = request->stall_us * 3 / 4;
    }
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_us / CADRE_US_PER_MS) + 1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->redirects_max > 0 ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)request->redirects_max);
    bool tls = begins_with(request->url, strlen(request->url), "https:");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
}

/* libcurl reads the bytes when it connects, and they stay as long as the connections. */
static void set_authorities(struct http_call *call)
{
    const struct http *http = call->http;
    if (http->ca_bytes != NULL) {
        struct curl_blob blob = {
            .data = http->ca_bytes, .len = http->ca_size, .flags = CURL_BLOB_NOCOPY};
        curl_easy_setopt(call->easy, CURLOPT_CAINFO_BLOB, &blob);
        curl_easy_setopt(call->easy, CURLOPT_PROXY_CAINFO_BLOB, &blob);
    } else if (http->ca_file != NULL) {
        curl_easy_setopt(call->easy, CURLOPT_CAINFO, http->ca_file);
        curl_easy_setopt(call->easy, CURLOPT_PROXY_CAINFO, http->ca_file);
    }
    http_tls_watch(call);
}

static void set_options(struct http_call *call)
{
    const struct http_request *request = &call->request;
    CURL *easy = call->easy;
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* a key may have ".." */
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "cadre/" CADRE_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(
        easy, CURLOPT_QUICK_EXIT, 1L); /* no wait for a resolver that does not answer */
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set_authorities(call);
    if (request->no_proxy) {
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    }
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
}

static bool append_header(struct http_call *call, const char *header)
{
    struct curl_slist *grown =
        fault_point("storage.memory") ? NULL : curl_slist_append(call->headers, header);
    if (grown == NULL) {
        return false;
    }
    call->headers = grown;
    return true;
}

cadre_status http_call_prepare(struct http_call *call, struct cadre_error *error)
{
    const struct http_request *request = &call->request;
    /* Without it curl says that a POST is a form. */
    bool good = strcmp(request->method, "POST") != 0 || append_header(call, "Content-Type:");
    for (size_t i = 0; i < request->header_count && good; i++) {
        good = append_header(call, request->headers[i]);
    }
    if (!good) {
        return cadre_error_errno(error, ENOMEM, "cannot send a request");
    }
    set_options(call);
    set_method(call);
    set_limits(call);
    call->mark_us = clock_monotonic_us();
    CURLMcode code = fault_point("storage.handle") ? CURLM_OUT_OF_MEMORY
                                                   : curl_multi_add_handle(call->multi, call->easy);
    if (code != CURLM_OK) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "cannot send a request: %s",
            curl_multi_strerror(code));
    }
    call->added = true;
    return CADRE_OK;
}

void http_call_conclude(struct http_call *call, CURLcode code, enum http_cause cause)
{
    CADRE_ASSERT(!call->ended);
    CADRE_ASSERT(call->added);
    curl_multi_remove_handle(call->multi, call->easy);
    call->added = false;
    call->ended = true;
    call->code = code;
    if (call->cause == HTTP_BY_CURL) { /* else a callback knows better */
        call->cause = cause;
    }
    if (call->cause == HTTP_BY_CURL && code == CURLE_COULDNT_CONNECT && call->forbidden) {
        call->cause = HTTP_FORBIDDEN;
    }
    if (call->cause != HTTP_BY_CURL || code != CURLE_OK) {
        return;
    }
    if (call->sink == HTTP_SINK_UNDECIDED) {
        choose_sink(call);
    }
    if (call->sink == HTTP_SINK_CALLER && !call->request.to_most &&
        call->answer.to_bytes != call->request.to_bytes) {
        call->cause = HTTP_TOO_SHORT;
    }
}
