/* SPDX-License-Identifier: Apache-2.0
 * Begin, wait, end. One ppoll(2) over all that the calls of this thread wait for, and over the
 * descriptor that says that the client stops. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/transport/http_state.h"

cadre_status http_begin(struct http *http, const struct http_request *request, bool must_wait,
    struct http_call **ret_call, struct cadre_error *error)
{
    struct http_call *call = NULL;
    *ret_call = NULL;
    CADRE_TRY(request->apart ? http_lane_make(http, &call, error)
                             : http_lane_take(http, request->deadline_us, must_wait, &call, error));
    if (call == NULL) {
        return CADRE_OK;
    }
    call->request = *request;
    call->body_sent = 0;
    call->added = false;
    call->ended = false;
    call->code = CURLE_OK;
    call->cause = HTTP_BY_CURL;
    call->reason[0] = '\0';
    call->forbidden = false;
    call->sink = HTTP_SINK_UNDECIDED;
    call->body_room = 0;
    call->moved_bytes = 0;
    call->mark_bytes = 0;
    CADRE_ASSERT(call->answer.body == NULL);
    cadre_status status = http_call_prepare(call, error);
    if (status != CADRE_OK) {
        http_end(call);
        return status;
    }
    *ret_call = call;
    return CADRE_OK;
}

void http_end(struct http_call *call)
{
    if (call == NULL) {
        return;
    }
    if (call->added) {
        curl_multi_remove_handle(call->multi, call->easy);
        call->added = false;
    }
    curl_easy_reset(call->easy); /* it points to what is the caller's */
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    http_answer_free(&call->answer);
    http_lane_give(call);
}

/* --- the wait --- */

/* Whether it moved enough since the mark; sets the next mark. */
static bool has_stalled(struct http_call *call, uint64_t now_us)
{
    uint64_t stall_us = call->request.stall_us;
    if (stall_us == 0 || now_us - call->mark_us < stall_us) {
        return false;
    }
    uint64_t moved = call->moved_bytes - call->mark_bytes;
    uint64_t wanted = HTTP_SLOWEST_BYTES_S * (now_us - call->mark_us) / CADRE_US_PER_S;
    call->mark_bytes = call->moved_bytes;
    call->mark_us = now_us;
    return moved < wanted;
}

/* Concludes it where its result is there, or its time is over. */
static void call_turn(struct http_call *call, uint64_t now_us)
{
    if (now_us >= call->timer_us) {
        int running = 0;
        call->timer_us = CADRE_TIME_NEVER;
        curl_multi_socket_action(call->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    int left = 0;
    const CURLMsg *message = curl_multi_info_read(call->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE) {
        http_call_conclude(call, message->data.result, HTTP_BY_CURL);
    } else if (http_is_stopped(call->http)) {
        http_call_conclude(call, CURLE_OK, HTTP_STOPPED);
    } else if (now_us >= call->request.deadline_us) {
        http_call_conclude(call, CURLE_OK, HTTP_DEADLINE);
    } else if (has_stalled(call, now_us)) {
        http_call_conclude(call, CURLE_OK, HTTP_STALLED);
    }
}

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t wakes_us(const struct http_call *call)
{
    const struct http_request *request = &call->request;
    uint64_t at_us = earlier_of(call->timer_us, request->deadline_us);
    return request->stall_us == 0 ? at_us : earlier_of(at_us, call->mark_us + request->stall_us);
}

struct poll_set {
    struct pollfd fds[1 + HTTP_CALLS_MAX * HTTP_SOCKETS_MAX];
    struct http_call *owners[1 + HTTP_CALLS_MAX * HTTP_SOCKETS_MAX];
    nfds_t count;
};

static void poll_add(struct poll_set *set, struct http_call *call)
{
    for (unsigned i = 0; i < call->socket_count; i++) {
        set->owners[set->count] = call;
        set->fds[set->count++] =
            (struct pollfd){.fd = call->sockets[i].fd, .events = call->sockets[i].events};
    }
}

static void poll_wait(struct poll_set *set, uint64_t until_us)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    left_us = earlier_of(left_us, UINT64_C(3600) * CADRE_US_PER_S);
    const struct timespec left = {.tv_sec = (time_t)(left_us / CADRE_US_PER_S),
        .tv_nsec = (long)(left_us % CADRE_US_PER_S * 1000)};
    if (ppoll(set->fds, set->count, &left, NULL) <= 0) {
        return;
    }
    for (nfds_t i = 1; i < set->count; i++) {
        short events = set->fds[i].revents;
        int running = 0;
        if (events != 0) {
            int bits = ((events & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                       ((events & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((events & (POLLERR | POLLNVAL)) != 0 ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(set->owners[i]->multi, set->fds[i].fd, bits, &running);
        }
    }
}

static size_t wait_for_one(
    struct http *http, struct http_call *const *calls, size_t count, uint64_t until_us)
{
    for (;;) {
        struct poll_set set;
        set.fds[0] = (struct pollfd){.fd = http->stop_fd, .events = POLLIN};
        set.count = 1;
        uint64_t now_us = clock_monotonic_us();
        uint64_t wake_us = until_us;
        for (size_t i = 0; i < count; i++) {
            if (calls[i] == NULL) {
                continue;
            }
            if (!calls[i]->ended) {
                call_turn(calls[i], now_us);
            }
            if (calls[i]->ended) {
                return i;
            }
            wake_us = earlier_of(wake_us, wakes_us(calls[i]));
            poll_add(&set, calls[i]);
        }
        if (now_us >= until_us || http_is_stopped(http)) {
            return count;
        }
        poll_wait(&set, wake_us);
    }
}

size_t http_wait(struct http *http, struct http_call *const *calls, size_t count, uint64_t until_us)
{
    CADRE_ASSERT(count <= HTTP_CALLS_MAX);
    /* A peer that closes its connection must not end the program: OpenSSL may write with write(2).
     */
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    size_t which = wait_for_one(http, calls, count, until_us);
    if (sigismember(&before, SIGPIPE) == 0) {
        const struct timespec none = {0};
        while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR) {
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return which;
}
