/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/cluster/cluster_strangers.h"

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

void cluster_strangers_init(
    struct cluster_strangers *strangers, const struct cluster_member *member, uint64_t restored)
{
    *strangers = (struct cluster_strangers){.member = member, .restored = restored};
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        strangers->rows[i].fd = -1;
    }
}

static void forget(struct stranger *stranger)
{
    CADRE_ASSERT(stranger->fd >= 0);
    close(stranger->fd);
    stranger->fd = -1;
}

void cluster_strangers_clear(struct cluster_strangers *strangers)
{
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        if (strangers->rows[i].fd >= 0) {
            forget(&strangers->rows[i]);
        }
    }
}

/* Silent strangers give way first, then whoever has been there longest: an honest task connects
 * again. */
static bool gives_way_before(const struct stranger *a, const struct stranger *b)
{
    return a->challenged != b->challenged ? !a->challenged : a->since_us < b->since_us;
}

static struct stranger *make_room(struct cluster_strangers *strangers)
{
    struct stranger *victim = &strangers->rows[0];
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        struct stranger *stranger = &strangers->rows[i];
        if (stranger->fd < 0) {
            return stranger;
        }
        victim = gives_way_before(stranger, victim) ? stranger : victim;
    }
    forget(victim);
    return victim;
}

/* Ends it without a word. */
static void dismiss(struct cluster_strangers *strangers, struct stranger *stranger, const char *why)
{
    if (stranger->challenged) {
        snprintf(strangers->trouble, sizeof strangers->trouble,
            "a program that said it was task %" PRIu32 " was refused: %.180s",
            stranger->hello.place, why);
    } else {
        snprintf(
            strangers->trouble, sizeof strangers->trouble, "a connection was refused: %.180s", why);
    }
    forget(stranger);
}

static bool answer(struct cluster_strangers *strangers, struct stranger *stranger,
    const struct greeting_answer *said)
{
    uint8_t bytes[GREETING_ANSWER_BYTES];
    greeting_answer_write(said, strangers->member->key, GREETING_ACCEPTOR, stranger->hello_bytes,
        stranger->challenge, bytes);
    return send(stranger->fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof bytes;
}

/* Why this hello is none of our cluster's; the text is for its program. OK: it may be. */
static cadre_status hello_check(const struct cluster_strangers *strangers,
    const struct greeting_hello *hello, char text[GREETING_TEXT_BYTES])
{
    const struct cluster_member *member = strangers->member;
    char first[CLUSTER_MEMBER_TEXT_BYTES];
    cluster_member_text(member, 0, first);
    if (hello->frame_version != TASK_FRAME_VERSION) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s speaks version %d of the frames between tasks, and this program version %" PRIu32
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
    if (hello->tasks != member->tasks || hello->place >= member->tasks ||
        memcmp(hello->cluster, member->cluster, sizeof hello->cluster) != 0) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s was started with another cluster than this program (%" PRIu32 " and %" PRIu32
            " tasks); give all the same chief and worker addresses",
            first, member->tasks, hello->tasks);
        return CADRE_FAILED_PRECONDITION;
    }
    bool follows = hello->restored == RESTORED_AS_THE_FIRST;
    if (follows && strangers->restored == 0) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s goes on from no checkpoint, and this program from one of a folder; give all the "
            "same CADRE_RESTORE, or none",
            first);
        return CADRE_FAILED_PRECONDITION;
    }
    if (!follows && hello->restored != strangers->restored) {
        snprintf(text, GREETING_TEXT_BYTES,
            "%s goes on from step %" PRIu64 ", and this program from step %" PRIu64
            "; give all the same checkpoint in CADRE_RESTORE, or none",
            first, strangers->restored, hello->restored);
        return CADRE_FAILED_PRECONDITION;
    }
    return CADRE_OK;
}

static void greet(struct cluster_strangers *strangers, struct stranger *stranger)
{
    struct cadre_error error;
    struct greeting_answer said = {.code = CADRE_OK};
    if (!greeting_hello_read(stranger->hello_bytes, &stranger->hello)) {
        dismiss(strangers, stranger, "it does not speak the cluster's protocol, version 1");
        return;
    }
    if (greeting_challenge(stranger->challenge, &error) != CADRE_OK) {
        dismiss(strangers, stranger, error.text);
        return;
    }
    stranger->challenged = true;
    stranger->got = 0;
    said.code = hello_check(strangers, &stranger->hello, said.text);
    if (!answer(strangers, stranger, &said)) {
        dismiss(strangers, stranger, "the challenge could not be sent");
    } else if (said.code != CADRE_OK) {
        dismiss(strangers, stranger, said.text);
    }
}

static void judge(struct cluster_strangers *strangers, struct stranger *stranger)
{
    CADRE_ASSERT(stranger->challenged);
    CADRE_ASSERT(stranger->hello.place < strangers->member->tasks); /* greet has refused others */
    if (!greeting_proof_valid(
            strangers->member->key, stranger->hello_bytes, stranger->challenge, stranger->proof)) {
        dismiss(strangers, stranger, "it did not prove that it has the cluster's key");
        return;
    }
    struct stranger_proved proved = {.fd = stranger->fd, .place = stranger->hello.place};
    memcpy(proved.hello_bytes, stranger->hello_bytes, sizeof proved.hello_bytes);
    memcpy(proved.challenge, stranger->challenge, sizeof proved.challenge);
    stranger->fd = -1;
    strangers->proved(&proved, strangers->user);
}

/* Reads, but never beyond `size` bytes; true when they are all there. *ret_lost tells that they
 * never will be. */
static bool read_fully(struct stranger *stranger, uint8_t *bytes, size_t size, bool *ret_lost)
{
    CADRE_ASSERT(stranger->got < size);
    ssize_t count = recv(stranger->fd, bytes + stranger->got, size - stranger->got, MSG_DONTWAIT);
    if (count > 0) {
        stranger->got += (size_t)count;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        *ret_lost = true;
    }
    CADRE_ASSERT(stranger->got <= size);
    return stranger->got == size;
}

/* Takes one as far as it goes now. */
static void advance(struct cluster_strangers *strangers, struct stranger *stranger, uint64_t now_us)
{
    bool lost = false;
    if (!stranger->challenged &&
        read_fully(stranger, stranger->hello_bytes, sizeof stranger->hello_bytes, &lost)) {
        greet(strangers, stranger);
    }
    if (stranger->fd >= 0 && stranger->challenged &&
        read_fully(stranger, stranger->proof, sizeof stranger->proof, &lost)) {
        judge(strangers, stranger);
    }
    if (stranger->fd >= 0 && lost) {
        dismiss(strangers, stranger, "it ended before it proved that it has the cluster's key");
    } else if (stranger->fd >= 0 && now_us - stranger->since_us > STRANGER_PATIENCE_US) {
        dismiss(strangers, stranger, "it was silent for too long");
    }
}

void cluster_strangers_serve(struct cluster_strangers *strangers, int listen_fd, uint64_t now_us)
{
    /* Bounded, so that a flood cannot keep the caller here. */
    for (size_t i = 0; i < STRANGERS_MAX && now_us >= strangers->pause_us; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            bool passes = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
            strangers->pause_us = passes ? 0 : now_us + PAUSE_US;
            break;
        }
        struct stranger *stranger = make_room(strangers);
        *stranger = (struct stranger){.fd = fd, .since_us = now_us};
        cluster_address_tune(fd);
    }
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        if (strangers->rows[i].fd >= 0) {
            advance(strangers, &strangers->rows[i], now_us);
        }
    }
}

size_t cluster_strangers_poll(
    const struct cluster_strangers *strangers, struct pollfd *polled, uint64_t *ret_until_us)
{
    size_t count = 0;
    *ret_until_us = UINT64_MAX;
    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        const struct stranger *stranger = &strangers->rows[i];
        if (stranger->fd >= 0) {
            uint64_t until_us = stranger->since_us + STRANGER_PATIENCE_US;
            *ret_until_us = until_us < *ret_until_us ? until_us : *ret_until_us;
            polled[count++] = (struct pollfd){.fd = stranger->fd, .events = POLLIN};
        }
    }
    return count;
}
