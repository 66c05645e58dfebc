/* SPDX-License-Identifier: Apache-2.0
 * Requests by HTTP/1.1 with TLS, each in the thread that asks for it: the only user of libcurl. A
 * request is begun, waited for, perhaps with others of the same thread, and ended; it holds one
 * connection of the transport meanwhile, which stays open afterwards for the next request. Nothing
 * is repeated here, and nothing is known of what is asked for.
 *
 * What runs out of time: connecting after HTTP_CONNECT_US; a request that moved less than
 * HTTP_SLOWEST_BYTES_S during `stall_us`; each at its deadline. http_stop() ends all at once.
 *
 * Proxies are those of the process's environment (https_proxy, no_proxy, ...), as curl reads it. */
#ifndef CADRE_STORAGE_TRANSPORT_HTTP_H
#define CADRE_STORAGE_TRANSPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define HTTP_CONNECT_US      UINT64_C(10000000)
#define HTTP_SLOWEST_BYTES_S UINT64_C(1024)
#define HTTP_HEADERS_BYTES   ((size_t)32 << 10) /* of an answer; more of them are an error */
#define HTTP_CALLS_MAX       8                  /* of one thread, at a time */

struct http;

struct http_options {
    unsigned connections; /* at a time; 1 or more */
    const char *ca_file;  /* NULL: the system's authorities; copied */
    const char *ca_bytes; /* what is in it, copied; NULL: libcurl reads it at each connection */
    size_t ca_size;
    bool no_metadata; /* no connection to what metadata_address.h lists, but for calls `apart` */
};

/* RESOURCE_EXHAUSTED: no memory, no descriptor. On success *ret_http is the caller's to close. */
cadre_status http_open(
    const struct http_options *options, struct http **ret_http, struct cadre_error *error);
/* Ends all requests, also those begun from now on, with CANCELLED. Any thread. */
void http_stop(struct http *http);
/* Whether that was called. */
bool http_is_stopped(const struct http *http);
/* Bytes of all bodies that came and went, whatever became of their requests. Any thread. */
uint64_t http_moved_bytes(const struct http *http);
/* Closes the connections. NULL is allowed. No request is under way. */
void http_close(struct http *http);

/* What came back. */
struct http_answer {
    int status;    /* of the last response, after what redirected; 0: none yet */
    char *headers; /* "name: value" with a zero byte behind each; lower-case names */
    size_t headers_bytes;
    char *body; /* what did not go to `to`; a zero byte that is not counted follows it */
    size_t body_bytes;
    size_t to_bytes; /* written to `to` */
    bool wanted;     /* the body went to `to` */
};

/* Valid as long as the answer; NULL: there is none of that name, which is in lower case. */
const char *http_header(const struct http_answer *answer, const char *name);
/* A zeroed one is fine. */
void http_answer_free(struct http_answer *answer);

/* All that it points to stays the caller's, and as it is, until http_end(). */
struct http_request {
    const char *method;   /* "GET", "HEAD", "PUT", "POST", "DELETE" */
    const char *url;      /* sent as it is */
    char *const *headers; /* "name: value" */
    size_t header_count;
    const void *body; /* of PUT and POST */
    size_t body_bytes;
    uint64_t deadline_us; /* clock_monotonic_us() */
    uint64_t stall_us;    /* 0: none but the deadline */

    /* The body of a status 2xx goes to `to`, if it is set and `is_wanted` says so, which looks at
     * status and headers; it has `to_bytes` bytes, or with `to_most` no more than these. */
    void *to;
    size_t to_bytes;
    /* NULL, or where the body goes in pieces of `piece_bytes`, of which the last may be shorter;
     * `to` is the first of them. */
    void *const *to_pieces;
    size_t piece_bytes;
    bool to_most;
    bool (*is_wanted)(void *user, const struct http_answer *answer); /* NULL: all are */
    void *user;
    /* All else goes to memory: more than this of a status 2xx is OUT_OF_RANGE, of others cut. */
    size_t limit_bytes;

    unsigned redirects_max; /* followed without a change from https to http; 0: none */
    bool no_proxy;
    bool apart; /* over a connection of its own, beyond the transport's, closed afterwards */
};

struct http_call;

/* Begins a request, over a connection that is free, or that becomes free before the deadline: those
 * that wait for one get it in the order in which they came. `must_wait` false: *ret_call is NULL,
 * with OK, where none is free. On success the call is the caller's to end. UNAVAILABLE: no
 * connection became free; CANCELLED; RESOURCE_EXHAUSTED: no memory. */
cadre_status http_begin(struct http *http, const struct http_request *request, bool must_wait,
    struct http_call **ret_call, struct cadre_error *error);
/* Waits until one of the calls has its result, and returns its index; `count`: `until_us` is
 * reached, or http_stop() was called and there is none. Some may be NULL; `count` is
 * HTTP_CALLS_MAX or less. All were begun by this thread. */
size_t http_wait(
    struct http *http, struct http_call *const *calls, size_t count, uint64_t until_us);
/* Of a call that has its result: OK: an answer came, of whatever status, whole. UNAVAILABLE with
 * *ret_may_pass: it did not, or not whole, which may be another time's luck. All else is not to be
 * repeated: FAILED_PRECONDITION (TLS), OUT_OF_RANGE (too long), PERMISSION_DENIED (`no_metadata`),
 * CANCELLED, RESOURCE_EXHAUSTED. */
cadre_status http_result(
    const struct http_call *call, bool *ret_may_pass, struct cadre_error *error);
/* Its answer, as far as it came. Valid until the end of the call. */
struct http_answer *http_answer_of(struct http_call *call);
/* Frees it; one without a result is broken off. NULL is allowed. */
void http_end(struct http_call *call);

#endif
