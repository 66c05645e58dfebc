/* SPDX-License-Identifier: Apache-2.0
 * The connections of the first task that are not authenticated yet. cluster_server.c polls and
 * serves them; cluster_lead.c receives those that are authenticated. */
#include "worker/library/runtime/cluster/cluster_pending.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"

#define PAUSE_US (100 * CADRE_US_PER_MS)

void cluster_pending_init(
    struct cluster_pending *pending, const struct cluster_member *member, uint64_t restored)
{
    *pending = (struct cluster_pending){.member = member, .restored = restored};
    for (size_t i = 0; i < CLUSTER_PENDING_MAX; i++) {
        pending->rows[i].fd = -1;
    }
}

static void cluster_pending_forget(struct pending_connection *pending_connection)
{
    CADRE_ASSERT(pending_connection->fd >= 0);
    close(pending_connection->fd);
    pending_connection->fd = -1;
}

void cluster_pending_clear(struct cluster_pending *pending)
{
    for (size_t i = 0; i < CLUSTER_PENDING_MAX; i++) {
        if (pending->rows[i].fd >= 0) {
            cluster_pending_forget(&pending->rows[i]);
        }
    }
}

/* Silent strangers are dropped first, then the oldest: an honest task connects again. */
static bool gives_way_before(const struct pending_connection *a, const struct pending_connection *b)
{
    return a->challenged != b->challenged ? !a->challenged : a->since_us < b->since_us;
}

static struct pending_connection *make_room(struct cluster_pending *pending)
{
    struct pending_connection *victim = &pending->rows[0];
    for (size_t i = 0; i < CLUSTER_PENDING_MAX; i++) {
        struct pending_connection *pending_connection = &pending->rows[i];
        if (pending_connection->fd < 0) {
            return pending_connection;
        }
        victim = gives_way_before(pending_connection, victim) ? pending_connection : victim;
    }
    cluster_pending_forget(victim);
    return victim;
}

/* Ends it without an answer. */
static void cluster_pending_dismiss(
    struct cluster_pending *pending, struct pending_connection *pending_connection, const char *why)
{
    if (pending_connection->challenged) {
        snprintf(pending->refusal, sizeof pending->refusal,
            "a program that greeted as task %" PRIu32 " was refused: %.180s",
            pending_connection->hello.member_id, why);
    } else {
        snprintf(
            pending->refusal, sizeof pending->refusal, "a connection was refused: %.180s", why);
    }
    cluster_pending_forget(pending_connection);
}

static bool cluster_pending_answer(struct cluster_pending *pending,
    struct pending_connection *pending_connection, const struct greeting_answer *received)
{
    uint8_t bytes[GREETING_ANSWER_BYTES];
    greeting_answer_write(received, pending->member->key, GREETING_ACCEPTOR,
        pending_connection->hello_bytes, pending_connection->challenge, bytes);
    return send(pending_connection->fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof bytes;
}

/* Why this hello is not of our cluster; the text is for its program. OK: it may be. */
static cadre_status hello_check(const struct cluster_pending *pending,
    const struct greeting_hello *hello, char text[GREETING_TEXT_BYTES])
{
    const struct cluster_member *member = pending->member;
    char first[CLUSTER_MEMBER_TEXT_BYTES];
    cluster_member_text(member, 0, first);
    if (hello->frame_version != TASK_FRAME_VERSION) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s uses version %d of the frames between tasks, and this program version %" PRIu32
            "; build both with the same version of Cadre",
            first, TASK_FRAME_VERSION, hello->frame_version);
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->keyed != member->keyed) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s was started %s CADRE_CLUSTER_KEY_FILE and this program %s; start all with the same "
            "file",
            first, member->keyed ? "with a" : "without a", hello->keyed ? "with one" : "without");
        return CADRE_UNAUTHENTICATED;
    }
    if (hello->tasks != member->tasks || hello->member_id >= member->tasks ||
        memcmp(hello->cluster, member->cluster, sizeof hello->cluster) != 0) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s was started with another cluster than this program (%" PRIu32 " and %" PRIu32
            " tasks); give all the same chief and worker addresses",
            first, member->tasks, hello->tasks);
        return CADRE_FAILED_PRECONDITION;
    }
    bool follows = hello->restored == RESTORED_BY_FIRST_TASK;
    if (follows && pending->restored == 0) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s goes on from no checkpoint, this program from one of a folder; give all the "
            "same CADRE_RESTORE, or none",
            first);
        return CADRE_FAILED_PRECONDITION;
    }
    if (!follows && hello->restored != pending->restored) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s goes on from step %" PRIu64 ", and this program from step %" PRIu64
            "; give all the same checkpoint in CADRE_RESTORE, or none",
            first, pending->restored, hello->restored);
        return CADRE_FAILED_PRECONDITION;
    }
    return CADRE_OK;
}

static void cluster_pending_greet(
    struct cluster_pending *pending, struct pending_connection *pending_connection)
{
    struct cadre_error error;
    struct greeting_answer received = {.code = CADRE_OK};
    if (!greeting_hello_read(pending_connection->hello_bytes, &pending_connection->hello)) {
        cluster_pending_dismiss(
            pending, pending_connection, "it does not use the cluster's protocol, version 1");
        return;
    }
    if (greeting_challenge(pending_connection->challenge, &error) != CADRE_OK) {
        cluster_pending_dismiss(pending, pending_connection, error.text);
        return;
    }
    pending_connection->challenged = true;
    pending_connection->got = 0;
    received.code = hello_check(pending, &pending_connection->hello, received.text);
    if (!cluster_pending_answer(pending, pending_connection, &received)) {
        cluster_pending_dismiss(pending, pending_connection, "the challenge could not be sent");
    } else if (received.code != CADRE_OK) {
        cluster_pending_dismiss(pending, pending_connection, received.text);
    }
}

static void cluster_pending_judge(
    struct cluster_pending *pending, struct pending_connection *pending_connection)
{
    CADRE_ASSERT(pending_connection->challenged);
    CADRE_ASSERT(pending_connection->hello.member_id <
                 pending->member->tasks); /* greet has refused others */
    if (!greeting_mac_valid(pending->member->key, pending_connection->hello_bytes,
            pending_connection->challenge, pending_connection->mac)) {
        cluster_pending_dismiss(
            pending, pending_connection, "it did not prove that it has the cluster's key");
        return;
    }
    struct authenticated_peer authenticated = {
        .fd = pending_connection->fd, .member_id = pending_connection->hello.member_id};
    memcpy(authenticated.hello_bytes, pending_connection->hello_bytes,
        sizeof authenticated.hello_bytes);
    memcpy(authenticated.challenge, pending_connection->challenge, sizeof authenticated.challenge);
    pending_connection->fd = -1;
    pending->authenticated(&authenticated, pending->user);
}

/* Reads, but never more than `size` bytes; true when they are complete. *ret_lost: they never will
 * be. */
static bool read_fully(
    struct pending_connection *pending_connection, uint8_t *bytes, size_t size, bool *ret_lost)
{
    CADRE_ASSERT(pending_connection->got < size);
    ssize_t count = recv(pending_connection->fd, bytes + pending_connection->got,
        size - pending_connection->got, MSG_DONTWAIT);
    if (count > 0) {
        pending_connection->got += (size_t)count;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        *ret_lost = true;
    }
    CADRE_ASSERT(pending_connection->got <= size);
    return pending_connection->got == size;
}

/* Serves one connection as far as its bytes go. */
static void cluster_pending_advance(
    struct cluster_pending *pending, struct pending_connection *pending_connection, uint64_t now_us)
{
    bool lost = false;
    if (!pending_connection->challenged &&
        read_fully(pending_connection, pending_connection->hello_bytes,
            sizeof pending_connection->hello_bytes, &lost)) {
        cluster_pending_greet(pending, pending_connection);
    }
    if (pending_connection->fd >= 0 && pending_connection->challenged &&
        read_fully(
            pending_connection, pending_connection->mac, sizeof pending_connection->mac, &lost)) {
        cluster_pending_judge(pending, pending_connection);
    }
    if (pending_connection->fd >= 0 && lost) {
        cluster_pending_dismiss(
            pending, pending_connection, "it ended before it proved that it has the cluster's key");
    } else if (pending_connection->fd >= 0 &&
               now_us - pending_connection->since_us > CLUSTER_PENDING_TIMEOUT_US) {
        cluster_pending_dismiss(pending, pending_connection, "it was silent for too long");
    }
}

void cluster_pending_serve(struct cluster_pending *pending, int listen_fd, uint64_t now_us)
{
    /* Bounded, so that a flood cannot keep the caller here. */
    for (size_t i = 0; i < CLUSTER_PENDING_MAX && now_us >= pending->pause_us; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            bool passes = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
            pending->pause_us = passes ? 0 : now_us + PAUSE_US;
            break;
        }
        struct pending_connection *pending_connection = make_room(pending);
        *pending_connection = (struct pending_connection){.fd = fd, .since_us = now_us};
        cluster_address_tune(fd);
    }
    for (size_t i = 0; i < CLUSTER_PENDING_MAX; i++) {
        if (pending->rows[i].fd >= 0) {
            cluster_pending_advance(pending, &pending->rows[i], now_us);
        }
    }
}

size_t cluster_pending_poll(
    const struct cluster_pending *pending, struct pollfd *polled, uint64_t *ret_until_us)
{
    size_t count = 0;
    *ret_until_us = UINT64_MAX;
    for (size_t i = 0; i < CLUSTER_PENDING_MAX; i++) {
        const struct pending_connection *pending_connection = &pending->rows[i];
        if (pending_connection->fd >= 0) {
            uint64_t until_us = pending_connection->since_us + CLUSTER_PENDING_TIMEOUT_US;
            *ret_until_us = until_us < *ret_until_us ? until_us : *ret_until_us;
            polled[count++] = (struct pollfd){.fd = pending_connection->fd, .events = POLLIN};
        }
    }
    return count;
}
