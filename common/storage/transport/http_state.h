/* SPDX-License-Identifier: Apache-2.0
 * What the files of the transport share. */
#ifndef CADRE_STORAGE_TRANSPORT_HTTP_STATE_H
#define CADRE_STORAGE_TRANSPORT_HTTP_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <curl/curl.h>

#include "common/storage/transport/http.h"

#define HTTP_SOCKETS_MAX  8 /* of one request: two of connecting, one of the resolver, spares */
#define HTTP_ISSUER_BYTES 160

enum http_sink { HTTP_SINK_UNDECIDED, HTTP_SINK_CALLER, HTTP_SINK_MEMORY };

/* Why our own callbacks or clocks ended a request. */
enum http_cause {
    HTTP_BY_CURL,
    HTTP_STOPPED,
    HTTP_DEADLINE,
    HTTP_STALLED,
    HTTP_TOO_LONG, /* more of a body than there is room for */
    HTTP_TOO_SHORT,
    HTTP_HEADERS_TOO_LONG,
    HTTP_NO_MEMORY,
    HTTP_FORBIDDEN, /* an address that is not connected to */
    HTTP_CUT        /* enough was read of a body that is not wanted: no failure */
};

/* One connection: curl's handles, which keep it open between requests, and the request it is used
 * for. Of one thread from http_lane_take() to http_lane_give(). */
struct http_call {
    struct http *http;
    CURL *easy; /* NULL: it was not used yet */
    CURLM *multi;
    struct http_call *next_free;
    bool apart;

    /* What curl waits for. */
    struct {
        curl_socket_t fd;
        short events; /* of poll(2) */
    } sockets[HTTP_SOCKETS_MAX];
    unsigned socket_count;
    uint64_t timer_us; /* when it wants to be called; CADRE_TIME_NEVER */

    struct http_request request;
    struct curl_slist *headers;
    size_t body_sent;
    bool added; /* to the multi handle */
    bool ended;
    CURLcode code;
    enum http_cause cause;
    char reason[CURL_ERROR_SIZE];
    bool forbidden; /* one of its addresses was passed over */
    bool watched;   /* its chain of certificates is: what is wrong with that has an issuer */
    char issuer[HTTP_ISSUER_BYTES]; /* of a certificate that is not trusted; "": not known */
    enum http_sink sink;
    struct http_answer answer;
    size_t headers_room, body_room;
    uint64_t moved_bytes, mark_bytes, mark_us; /* since when so little moved */
};

/* A thread that waits for a connection. */
struct http_waiter {
    struct http_waiter *next;
    struct http_call *given;
    pthread_cond_t changed;
};

struct http {
    char *ca_file;
    char *ca_bytes; /* NULL: ca_file is read */
    size_t ca_size;
    bool no_metadata;
    int stop_fd; /* an eventfd that can be read once it is stopped */
    atomic_bool stopped;
    _Atomic uint64_t moved_bytes; /* of bodies */
    pthread_mutex_t mutex;        /* of what follows */
    struct http_call *free;
    struct http_waiter *first, *last;
    unsigned connections;
    struct http_call calls[]; /* `connections` */
};

/* A connection that nothing uses, prepared; see http_begin() for how it waits. */
cadre_status http_lane_take(struct http *http, uint64_t deadline_us, bool must_wait,
    struct http_call **ret_call, struct cadre_error *error);
/* One beyond those that are counted. */
cadre_status http_lane_make(
    struct http *http, struct http_call **ret_call, struct cadre_error *error);
/* Gives it back, to the first one that waits. */
void http_lane_give(struct http_call *call);

/* Sets curl's options for `call->request`, and has it begin. */
cadre_status http_call_prepare(struct http_call *call, struct cadre_error *error);
/* Has the authority of a certificate that is not trusted kept in call->issuer. */
void http_tls_watch(struct http_call *call);
/* It has its result. `code` is of HTTP_BY_CURL. */
void http_call_conclude(struct http_call *call, CURLcode code, enum http_cause cause);

#endif
