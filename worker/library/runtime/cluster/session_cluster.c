/* SPDX-License-Identifier: Apache-2.0
 * The session of a task of a cluster: the first task starts its server first; all greet it, and
 * then exchange frames as with a daemon. */
#include "worker/library/runtime/cluster/session_cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"

#define GREETING_US (10 * CADRE_US_PER_S)
#define VERDICT_US                                                                                 \
    (10 * CADRE_US_PER_S) /* beyond the wait: the first task reports which tasks are missing       \
                           */
#define WARN_US        (10 * CADRE_US_PER_S)
#define RETRY_FIRST_MS 20
#define RETRY_MAX_MS   500

struct session_cluster {
    struct session base;
    struct cluster_server *server; /* of the first task */
    struct session *socket;
};

/* Of this process: the server that is open when the process ends. */
static struct cluster_server *_Atomic open_server;

static struct session_cluster *cluster_of(struct session *session)
{
    return (struct session_cluster *)session;
}

static cadre_status cluster_start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    struct session *socket = cluster_of(session)->socket;
    CADRE_ASSERT(socket != NULL);
    return socket->ops->start(socket, events, error);
}

static void cluster_send(struct session *session, const struct task_up *up)
{
    struct session *socket = cluster_of(session)->socket;
    socket->ops->send(socket, up);
}

static bool cluster_take(struct session *session, struct task_down *ret_down)
{
    struct session *socket = cluster_of(session)->socket;
    return socket->ops->take(socket, ret_down);
}

static void cluster_close(struct session *session)
{
    if (session != NULL) {
        struct session_cluster *cluster = cluster_of(session);
        if (cluster->socket != NULL) {
            cluster->socket->ops->close(cluster->socket);
        }
        atomic_store(&open_server, NULL);
        cluster_server_close(cluster->server);
        free(cluster);
    }
}

static const struct session_ops cluster_ops = {
    .name = "cluster",
    .start = cluster_start,
    .send = cluster_send,
    .take = cluster_take,
    .close = cluster_close,
};

/* --- greeting the first task --- */

/* One greeting: with which task, and until when it waits. */
struct greeting {
    const struct cluster_member *member;
    uint64_t restored;
    uint64_t end_us; /* of the waiting for all tasks */
    char first[CLUSTER_MEMBER_TEXT_BYTES];
};

/* Waits for the descriptor to be ready for `events`; DEADLINE_EXCEEDED at `until_us`. */
static cadre_status session_cluster_await(
    int fd, short events, uint64_t until_us, struct cadre_error *error)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= until_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED, "it does not answer");
        }
        struct pollfd waited = {.fd = fd, .events = events};
        uint64_t left_ms = (until_us - now_us) / CADRE_US_PER_MS + 1;
        int count = poll(&waited, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (count > 0) {
            return CADRE_OK;
        }
    }
}

static cadre_status session_cluster_receive(
    int fd, void *bytes, size_t size, uint64_t until_us, struct cadre_error *error)
{
    for (size_t got = 0; got < size;) {
        CADRE_TRY(session_cluster_await(fd, POLLIN, until_us, error));
        ssize_t count = recv(fd, (uint8_t *)bytes + got, size - got, 0);
        if (count == 0) {
            return cadre_error_set(error, CADRE_UNAVAILABLE, "it closed the connection");
        }
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return cadre_error_set(error, CADRE_UNAVAILABLE, "%s", strerror(errno));
        }
        got += count > 0 ? (size_t)count : 0;
    }
    return CADRE_OK;
}

/* So few bytes fit a new connection's buffer. */
static cadre_status session_cluster_transmit(
    int fd, const void *bytes, size_t size, struct cadre_error *error)
{
    return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size
               ? CADRE_OK
               : cadre_error_set(error, CADRE_UNAVAILABLE, "%s", strerror(errno));
}

static cadre_status connect_first(
    const struct greeting *greeting, int *ret_fd, struct cadre_error *error)
{
    char host[CADRE_CLUSTER_ADDRESS_BYTES];
    uint16_t port;
    int errnum = 0;
    socklen_t bytes = sizeof errnum;
    struct cluster_address address = greeting->member->own;
    *ret_fd = -1;
    if (greeting->member->member_id != 0) {
        CADRE_TRY(
            cluster_address_parse(cluster_member_address(greeting->member, 0), host, &port, error));
        CADRE_TRY(cluster_address_resolve(host, port, &address, error));
    }
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(cluster_address_connect(&address, &fd, error));
    CADRE_TRY(session_cluster_await(fd, POLLOUT, clock_monotonic_us() + GREETING_US, error));
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &bytes) != 0 || errnum != 0) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s", strerror(errnum));
    }
    cluster_address_tune(fd);
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

static cadre_status check_answer(const struct greeting *greeting, const uint8_t *bytes,
    enum greeting_role role, const uint8_t *hello, const uint8_t *challenge,
    struct greeting_answer *ret_answer, struct cadre_error *error)
{
    const struct cluster_member *member = greeting->member;
    if (!greeting_answer_read(bytes, ret_answer)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "what answers as %s is not a task of Cadre; is the address right, and the port free of "
            "others?",
            greeting->first);
    }
    /* A refusal is accepted without a key, because it can do no harm. */
    if (role == GREETING_ACCEPTOR && ret_answer->code != CADRE_OK) {
        return cadre_error_set(error, ret_answer->code, "%s", ret_answer->text);
    }
    if (!greeting_answer_valid(bytes, member->key, role, hello,
            role == GREETING_ACCEPTOR ? ret_answer->challenge : challenge)) {
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "%s did not prove that it has this task's key; give all tasks the same "
            "CADRE_CLUSTER_KEY_FILE",
            greeting->first);
    }
    return ret_answer->code == CADRE_OK
               ? CADRE_OK
               : cadre_error_set(error, ret_answer->code, "%s", ret_answer->text);
}

/* One attempt. UNAVAILABLE and DEADLINE_EXCEEDED before the verdict: it may be tried again. */
static cadre_status session_cluster_greet(const struct greeting *greeting, int fd,
    struct greeting_answer *ret_verdict, bool *ret_received, struct cadre_error *error)
{
    const struct cluster_member *member = greeting->member;
    CADRE_ASSERT(member->member_id < member->tasks);
    uint8_t hello[GREETING_HELLO_BYTES];
    uint8_t bytes[GREETING_ANSWER_BYTES];
    uint8_t mac[GREETING_MAC_BYTES];
    struct greeting_answer answer;
    struct greeting_hello received = {.frame_version = TASK_FRAME_VERSION,
        .member_id = member->member_id,
        .tasks = member->tasks,
        .keyed = member->keyed,
        .restored = greeting->restored};
    memcpy(received.cluster, member->cluster, sizeof received.cluster);
    CADRE_TRY(greeting_challenge(received.challenge, error));
    greeting_hello_write(&received, hello);
    CADRE_TRY(session_cluster_transmit(fd, hello, sizeof hello, error));
    CADRE_TRY(session_cluster_receive(
        fd, bytes, sizeof bytes, clock_monotonic_us() + GREETING_US, error));
    *ret_received = true;
    CADRE_TRY(check_answer(greeting, bytes, GREETING_ACCEPTOR, hello, NULL, &answer, error));
    greeting_mac(member->key, hello, answer.challenge, mac);
    *ret_received = false;
    CADRE_TRY(session_cluster_transmit(fd, mac, sizeof mac, error));
    CADRE_TRY(
        session_cluster_receive(fd, bytes, sizeof bytes, greeting->end_us + VERDICT_US, error));
    *ret_received = true;
    return check_answer(
        greeting, bytes, GREETING_VERDICT, hello, answer.challenge, ret_verdict, error);
}

static cadre_status meet_once(const struct greeting *greeting, int *ret_fd,
    struct greeting_answer *ret_verdict, bool *ret_received, struct cadre_error *error)
{
    *ret_received = false;
    *ret_fd = -1;
    CADRE_CLOSE_AT_EXIT int fd = -1;
    CADRE_TRY(connect_first(greeting, &fd, error));
    CADRE_TRY(session_cluster_greet(greeting, fd, ret_verdict, ret_received, error));
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

/* Until the verdict, or the end of the wait. A refusal by the first task is final. */
static cadre_status session_cluster_meet(const struct greeting *greeting, int *ret_fd,
    struct greeting_answer *ret_verdict, struct cadre_error *error)
{
    uint64_t warn_us = clock_monotonic_us() + WARN_US;
    int pause_ms = RETRY_FIRST_MS;
    for (;;) {
        bool received = false;
        struct cadre_error refusal = {0};
        cadre_status status = meet_once(greeting, ret_fd, ret_verdict, &received, &refusal);
        uint64_t now_us = clock_monotonic_us();
        bool again = status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED;
        if (status == CADRE_OK || received || !again) {
            *error = refusal;
            return status;
        }
        if (now_us >= greeting->end_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "%s could not be reached within %" PRIu64
                " s (CADRE_CLUSTER_WAIT_S): %s; start one program for each task of the cluster",
                greeting->first, greeting->member->wait_us / CADRE_US_PER_S, refusal.text);
        }
        if (now_us >= warn_us) {
            warn_us = UINT64_MAX;
            show_warning("%s is not reached yet: %s; this task tries for up to %" PRIu64
                         " s (CADRE_CLUSTER_WAIT_S)",
                greeting->first, refusal.text, greeting->member->wait_us / CADRE_US_PER_S);
        }
        poll(NULL, 0, pause_ms);
        pause_ms = pause_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : pause_ms * 2;
    }
}

static cadre_status session_cluster_join(struct session_cluster *cluster,
    const struct cluster_member *member, uint64_t restored, struct cadre_error *error)
{
    int fd;
    struct greeting_answer verdict;
    char who[CLUSTER_MEMBER_TEXT_BYTES + 64];
    struct greeting greeting = {
        .member = member, .restored = restored, .end_us = clock_monotonic_us() + member->wait_us};
    cluster_member_text(member, 0, greeting.first);
    CADRE_TRY(session_cluster_meet(&greeting, &fd, &verdict, error));
    cluster->base.slot = verdict.slot;
    cluster->base.incarnation = verdict.incarnation;
    snprintf(who, sizeof who, "%s, which runs the coordinator,", greeting.first);
    return session_socket_adopt(
        fd, who, member->keyed ? member->key : NULL, &cluster->socket, error);
}

void session_cluster_exit(void)
{
    struct cluster_server *server = atomic_exchange(&open_server, NULL);
    if (server != NULL) {
        cluster_server_stop(server);
    }
}

cadre_status session_cluster_open(const struct cluster_member *member, uint64_t restored,
    struct session **ret_session, struct cadre_error *error)
{
    CADRE_ASSERT(member->member_id < member->tasks);
    struct session_cluster *cluster = calloc(1, sizeof *cluster);
    *ret_session = NULL;
    if (cluster == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the cluster");
    }
    cluster->base.ops = &cluster_ops;
    cadre_status status = CADRE_OK;
    if (member->member_id == 0) {
        status = cluster_server_open(member, restored, &cluster->server, error);
    }
    if (status == CADRE_OK) {
        atomic_store(&open_server, cluster->server);
        status = session_cluster_join(cluster, member, restored, error);
    }
    if (status != CADRE_OK) {
        cluster_close(&cluster->base);
        return status;
    }
    *ret_session = &cluster->base;
    return CADRE_OK;
}
