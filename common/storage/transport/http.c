/* SPDX-License-Identifier: Apache-2.0
 * The transport and its connections: who has which, and who waits for one. A connection is a pair
 * of curl's handles: the multi handle keeps one connection open between requests, and two threads
 * never use it at the same time. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/transport/http_state.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_began = CURLE_FAILED_INIT;

static void begin_curl(void)
{
    curl_began = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool keep_authorities(struct http *http, const struct http_options *options)
{
    http->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
    if (options->ca_bytes != NULL) {
        http->ca_bytes = malloc(options->ca_size + 1);
        if (http->ca_bytes == NULL) {
            return false;
        }
        memcpy(http->ca_bytes, options->ca_bytes, options->ca_size);
        http->ca_size = options->ca_size;
    }
    return options->ca_file == NULL || http->ca_file != NULL;
}

cadre_status http_open(
    const struct http_options *options, struct http **ret_http, struct cadre_error *error)
{
    CADRE_ASSERT(options->connections > 0);
    pthread_once(&curl_once, begin_curl);
    if (curl_began != CURLE_OK) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "cannot begin to use libcurl: %s",
            curl_easy_strerror(curl_began));
    }
    struct http *http =
        fault_point("storage.memory")
            ? NULL
            : calloc(1, sizeof *http + options->connections * sizeof http->calls[0]);
    if (http == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot open connections for storage");
    }
    http->stop_fd = -1;
    http->no_metadata = options->no_metadata;
    http->connections = options->connections;
    pthread_mutex_init(&http->mutex, NULL);
    for (unsigned i = options->connections; i > 0; i--) {
        http->calls[i - 1].http = http;
        http->calls[i - 1].next_free = http->free;
        http->free = &http->calls[i - 1];
    }
    if (!keep_authorities(http, options)) {
        http_close(http);
        return cadre_error_errno(error, ENOMEM, "cannot open connections for storage");
    }
    http->stop_fd = fault_point("storage.eventfd") ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->stop_fd < 0) {
        int errnum = errno != 0 ? errno : EMFILE;
        http_close(http);
        return cadre_error_errno(error, errnum, "cannot open connections for storage");
    }
    *ret_http = http;
    return CADRE_OK;
}

void http_stop(struct http *http)
{
    pthread_mutex_lock(&http->mutex);
    atomic_store(&http->stopped, true);
    /* Written once and read by no one, so it stays readable; all that wait look at it. */
    const uint64_t one = 1;
    ssize_t written = write(http->stop_fd, &one, sizeof one);
    CADRE_ASSERT(written == (ssize_t)sizeof one || errno == EAGAIN);
    for (struct http_waiter *waiter = http->first; waiter != NULL; waiter = waiter->next) {
        pthread_cond_signal(&waiter->changed);
    }
    pthread_mutex_unlock(&http->mutex);
}

uint64_t http_moved_bytes(const struct http *http)
{
    return atomic_load(&http->moved_bytes);
}

bool http_is_stopped(const struct http *http)
{
    return atomic_load(&http->stopped);
}

static void lane_close(struct http_call *call)
{
    CADRE_ASSERT(!call->added);
    curl_easy_cleanup(call->easy);
    curl_multi_cleanup(call->multi);
    call->easy = NULL;
    call->multi = NULL;
}

void http_close(struct http *http)
{
    if (http == NULL) {
        return;
    }
    CADRE_ASSERT(http->first == NULL);
    for (unsigned i = 0; i < http->connections; i++) {
        lane_close(&http->calls[i]);
    }
    if (http->stop_fd >= 0) {
        close(http->stop_fd);
    }
    pthread_mutex_destroy(&http->mutex);
    free(http->ca_bytes);
    free(http->ca_file);
    free(http);
}

/* --- what curl waits for --- */

/* curl's prototype: is called from curl_multi_socket_action() in the thread that waits. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
    (void)easy;
    (void)of_socket;
    struct http_call *call = user;
    unsigned i = 0;
    while (i < call->socket_count && call->sockets[i].fd != fd) {
        i++;
    }
    if (what == CURL_POLL_REMOVE) {
        if (i < call->socket_count) {
            call->sockets[i] = call->sockets[--call->socket_count];
        }
        return 0;
    }
    if (i == HTTP_SOCKETS_MAX) {
        return -1;
    }
    if (i == call->socket_count) {
        call->socket_count++;
    }
    call->sockets[i].fd = fd;
    call->sockets[i].events =
        (short)((what != CURL_POLL_OUT ? POLLIN : 0) | (what != CURL_POLL_IN ? POLLOUT : 0));
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *user)
{
    (void)multi;
    struct http_call *call = user;
    call->timer_us = timeout_ms < 0 ? CADRE_TIME_NEVER
                                    : clock_monotonic_us() + (uint64_t)timeout_ms * CADRE_US_PER_MS;
    return 0;
}

static bool lane_open(struct http_call *call)
{
    if (call->easy != NULL) {
        return true;
    }
    call->timer_us = CADRE_TIME_NEVER;
    call->multi = fault_point("storage.handle") ? NULL : curl_multi_init();
    call->easy = call->multi == NULL || fault_point("storage.handle") ? NULL : curl_easy_init();
    if (call->easy == NULL) {
        lane_close(call);
        return false;
    }
    curl_multi_setopt(call->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(call->multi, CURLMOPT_SOCKETDATA, call);
    curl_multi_setopt(call->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(call->multi, CURLMOPT_TIMERDATA, call);
    curl_multi_setopt(call->multi, CURLMOPT_MAXCONNECTS, 1L);
    return true;
}

/* --- who has which --- */

/* Adds itself to the end of the row, and waits; the mutex is held. NULL: the deadline, or the stop.
 */
static struct http_call *lane_await(struct http *http, uint64_t deadline_us)
{
    struct http_waiter self = {.next = NULL};
    pthread_cond_init(&self.changed, NULL);
    struct http_waiter **end = http->last == NULL ? &http->first : &http->last->next;
    *end = &self;
    http->last = &self;
    int waited = 0;
    while (self.given == NULL && waited == 0 && !http_is_stopped(http)) {
        waited = thread_wait_until(&self.changed, &http->mutex, deadline_us);
    }
    if (self.given == NULL) { /* one that was given to has left the row */
        struct http_waiter *before = NULL;
        for (struct http_waiter *w = http->first; w != &self; w = w->next) {
            before = w;
        }
        *(before == NULL ? &http->first : &before->next) = self.next;
        http->last = http->last == &self ? before : http->last;
    }
    pthread_cond_destroy(&self.changed);
    return self.given;
}

static void lane_put(struct http_call *call)
{
    struct http *http = call->http;
    pthread_mutex_lock(&http->mutex);
    struct http_waiter *waiter = http->first;
    if (waiter != NULL) {
        waiter->given = call;
        http->first = waiter->next;
        http->last = http->first == NULL ? NULL : http->last;
        pthread_cond_signal(&waiter->changed);
    } else {
        call->next_free = http->free;
        http->free = call;
    }
    pthread_mutex_unlock(&http->mutex);
}

cadre_status http_lane_take(struct http *http, uint64_t deadline_us, bool must_wait,
    struct http_call **ret_call, struct cadre_error *error)
{
    *ret_call = NULL;
    pthread_mutex_lock(&http->mutex);
    struct http_call *call = NULL;
    if (!http_is_stopped(http)) {
        call = http->free; /* the last one that was used: its connection is open, most likely */
        if (call != NULL) {
            CADRE_ASSERT(http->first == NULL);
            http->free = call->next_free;
        } else if (must_wait) {
            call = lane_await(http, deadline_us);
        }
    }
    pthread_mutex_unlock(&http->mutex);
    if (call == NULL && http_is_stopped(http)) {
        return cadre_error_set(error, CADRE_CANCELLED, "the client of storage is being stopped");
    }
    if (call == NULL && must_wait) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "none of the %u connections became free in time: allow more of them, or a longer "
            "deadline",
            http->connections);
    }
    if (call != NULL && !lane_open(call)) {
        lane_put(call);
        return cadre_error_errno(error, ENOMEM, "cannot use libcurl");
    }
    *ret_call = call;
    return CADRE_OK;
}

cadre_status http_lane_make(
    struct http *http, struct http_call **ret_call, struct cadre_error *error)
{
    *ret_call = NULL;
    struct http_call *call = fault_point("storage.memory") ? NULL : calloc(1, sizeof *call);
    if (call != NULL) {
        call->http = http;
        call->apart = true;
    }
    if (call == NULL || !lane_open(call)) {
        free(call);
        return cadre_error_errno(error, ENOMEM, "cannot use libcurl");
    }
    *ret_call = call;
    return CADRE_OK;
}

void http_lane_give(struct http_call *call)
{
    if (call->apart) {
        lane_close(call);
        free(call);
    } else {
        lane_put(call);
    }
}
