/* SPDX-License-Identifier: Apache-2.0
 * The acceptor's side: a thread, and connections that have not proved the key yet. Each is read as
 * far as its bytes go; the thread waits for none. Called by the runtime's ps_job/ and server.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/library/crash/crash.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/link/link_internal.h"

#define LINK_PENDING_MAX        256
#define LINK_PENDING_TIMEOUT_US (5 * CADRE_US_PER_S)
#define FDS_LOW_MS              100 /* until accept is tried again when there are no descriptors */

enum stage { STAGE_HELLO, STAGE_MAC, STAGE_GREETING };

struct pending_connection {
    int fd; /* non-blocking */
    enum stage stage;
    uint64_t since_us;
    size_t got; /* bytes of this stage that were received */
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES];
    uint8_t bytes[GREETING_BYTES]; /* of proof, then greeting */
    uint32_t slot;
};

struct link_listener {
    int fd;
    int wake_fd;
    bool started;
    pthread_t thread;
    atomic_bool closing;
    pthread_mutex_t terms_lock;
    struct link_terms terms; /* under the lock */
    struct link_admission admission;
    size_t count;
    struct pending_connection pending[LINK_PENDING_MAX];
};

/* ---- one connection without a proof ---- */

enum fate { FATE_WAITS, FATE_DROPPED, FATE_TAKEN };

static bool link_listener_say(
    const struct pending_connection *pending_connection, const uint8_t *bytes, size_t count)
{
    return send(pending_connection->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)count;
}

static enum fate link_listener_challenge(
    struct link_listener *listener, struct pending_connection *pending_connection)
{
    const struct link_terms *terms = &listener->terms;
    struct handshake_hello hello;
    uint8_t reply[HANDSHAKE_REPLY_BYTES] = {0};
    if (!mesh_handshake_hello_read(pending_connection->hello, &hello)) {
        return FATE_DROPPED;
    }
    if (hello.generation != terms->generation.number || hello.nonce != terms->generation.nonce ||
        hello.to_rank != terms->slot || hello.roster != 0) {
        (void)link_listener_say(pending_connection, reply, sizeof reply);
        return FATE_DROPPED;
    }
    if (mesh_handshake_reply_make(terms->key, pending_connection->hello, reply, NULL) != CADRE_OK ||
        !link_listener_say(pending_connection, reply, sizeof reply)) {
        return FATE_DROPPED;
    }
    memcpy(pending_connection->challenge, reply, sizeof pending_connection->challenge);
    pending_connection->slot = hello.from_rank;
    pending_connection->stage = STAGE_MAC;
    return FATE_WAITS;
}

static enum fate link_listener_judge(
    struct link_listener *listener, struct pending_connection *pending_connection)
{
    if (!mesh_handshake_mac_valid(listener->terms.key, HANDSHAKE_CONNECTOR,
            pending_connection->hello, pending_connection->challenge, pending_connection->bytes)) {
        return FATE_DROPPED;
    }
    pending_connection->stage = STAGE_GREETING;
    return FATE_WAITS;
}

static enum fate link_listener_admit(
    struct link_listener *listener, struct pending_connection *pending_connection)
{
    const struct link_terms *terms = &listener->terms;
    const struct link_admission *admission = &listener->admission;
    struct link_peer peer = {.slot = pending_connection->slot};
    struct cadre_error error = {0};
    char who[LINK_NAME_BYTES];
    uint8_t welcome[HANDSHAKE_MAC_BYTES + GREETING_BYTES];
    link_slot_name(&terms->ps_job, peer.slot, who);
    mesh_handshake_mac(terms->key, HANDSHAKE_WELCOME, pending_connection->hello,
        pending_connection->challenge, welcome);
    link_greeting_write(terms, welcome + HANDSHAKE_MAC_BYTES);
    if (!link_greeting_read(pending_connection->bytes, &peer) ||
        !link_listener_say(pending_connection, welcome, sizeof welcome)) {
        return FATE_DROPPED;
    }
    if (link_greeting_check(terms, &peer, who, &error) != CADRE_OK) {
        if (admission->refused != NULL) {
            admission->refused(admission->user, &peer, &error);
        }
        return FATE_DROPPED;
    }
    struct link *link = link_new(pending_connection->fd, &peer, who);
    if (link == NULL) {
        return FATE_DROPPED;
    }
    fcntl(link->fd, F_SETFL, fcntl(link->fd, F_GETFL) & ~O_NONBLOCK);
    admission->admit(admission->user, link);
    return FATE_TAKEN;
}

static enum fate link_listener_advance(
    struct link_listener *listener, struct pending_connection *pending_connection)
{
    static const size_t sizes[] = {
        [STAGE_HELLO] = HANDSHAKE_HELLO_BYTES,
        [STAGE_MAC] = HANDSHAKE_MAC_BYTES,
        [STAGE_GREETING] = GREETING_BYTES,
    };
    enum fate fate = FATE_WAITS;
    while (fate == FATE_WAITS) {
        enum stage stage = pending_connection->stage;
        uint8_t *into =
            stage == STAGE_HELLO ? pending_connection->hello : pending_connection->bytes;
        ssize_t got = recv(pending_connection->fd, into + pending_connection->got,
            sizes[stage] - pending_connection->got, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return FATE_WAITS;
        }
        if (got <= 0) {
            return FATE_DROPPED;
        }
        pending_connection->got += (size_t)got;
        if (pending_connection->got == sizes[stage]) {
            pending_connection->got = 0;
            fate = stage == STAGE_HELLO ? link_listener_challenge(listener, pending_connection)
                   : stage == STAGE_MAC ? link_listener_judge(listener, pending_connection)
                                        : link_listener_admit(listener, pending_connection);
        }
    }
    return fate;
}

/* ---- all of them ---- */

/* The last one moves to the index of the removed one. */
static void link_listener_forget(struct link_listener *listener, size_t i, enum fate fate)
{
    if (fate == FATE_DROPPED) {
        close(listener->pending[i].fd);
    }
    listener->pending[i] = listener->pending[--listener->count];
}

/* The oldest connection is closed: an honest task connects again. */
static void make_room(struct link_listener *listener)
{
    size_t oldest = 0;
    for (size_t i = 1; i < listener->count; i++) {
        bool silent = listener->pending[i].stage == STAGE_HELLO;
        bool oldest_silent = listener->pending[oldest].stage == STAGE_HELLO;
        bool older = listener->pending[i].since_us < listener->pending[oldest].since_us;
        oldest = silent != oldest_silent ? (silent ? i : oldest) : (older ? i : oldest);
    }
    link_listener_forget(listener, oldest, FATE_DROPPED);
}

/* False: there are no descriptors now. */
static bool accept_waiting(struct link_listener *listener, uint64_t now_us)
{
    for (size_t i = 0; i < LINK_PENDING_MAX; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
        }
        if (listener->count == LINK_PENDING_MAX) {
            make_room(listener);
        }
        link_tune(fd);
        listener->pending[listener->count++] =
            (struct pending_connection){.fd = fd, .stage = STAGE_HELLO, .since_us = now_us};
    }
    return true;
}

static int wait_ms(const struct link_listener *listener, uint64_t now_us)
{
    uint64_t first_us = UINT64_MAX;
    for (size_t i = 0; i < listener->count; i++) {
        uint64_t since_us = listener->pending[i].since_us;
        first_us = since_us < first_us ? since_us : first_us;
    }
    if (first_us == UINT64_MAX) {
        return -1;
    }
    uint64_t over_us = first_us + LINK_PENDING_TIMEOUT_US;
    return over_us <= now_us ? 0 : (int)((over_us - now_us) / CADRE_US_PER_MS + 1);
}

static void serve_pending(
    struct link_listener *listener, const struct pollfd *pollers, uint64_t now_us)
{
    /* Backwards, because a removal moves the last one to its index, which was served already. */
    for (size_t i = listener->count; i-- > 0;) {
        struct pending_connection *pending_connection = &listener->pending[i];
        enum fate fate = pollers[i].revents != 0
                             ? link_listener_advance(listener, pending_connection)
                             : FATE_WAITS;
        if (fate == FATE_WAITS &&
            now_us - pending_connection->since_us >= LINK_PENDING_TIMEOUT_US) {
            fate = FATE_DROPPED;
        }
        if (fate != FATE_WAITS) {
            link_listener_forget(listener, i, fate);
        }
    }
}

static void *listen_loop(void *argument)
{
    struct link_listener *listener = argument;
    crash_thread("server listener", 0);
    struct pollfd pollers[LINK_PENDING_MAX + 2];
    bool accepts = true;
    while (!atomic_load(&listener->closing)) {
        size_t count = listener->count;
        for (size_t i = 0; i < count; i++) {
            pollers[i] = (struct pollfd){.fd = listener->pending[i].fd, .events = POLLIN};
        }
        pollers[count] = (struct pollfd){.fd = listener->wake_fd, .events = POLLIN};
        pollers[count + 1] = (struct pollfd){.fd = accepts ? listener->fd : -1, .events = POLLIN};
        int limit_ms = wait_ms(listener, clock_monotonic_us());
        if (!accepts && (limit_ms < 0 || limit_ms > FDS_LOW_MS)) {
            limit_ms = FDS_LOW_MS;
        }
        int ready = poll(pollers, count + 2, limit_ms);
        uint64_t now_us = clock_monotonic_us();
        if (ready >= 0) {
            pthread_mutex_lock(&listener->terms_lock);
            serve_pending(listener, pollers, now_us);
            pthread_mutex_unlock(&listener->terms_lock);
        }
        accepts = ready <= 0 || pollers[count + 1].revents == 0 || accept_waiting(listener, now_us);
    }
    return NULL;
}

/* ---- from outside ---- */

static cadre_status open_socket(struct link_listener *listener, struct mesh_sockaddr *address,
    const char *host, const struct port_range *ports, struct cadre_error *error)
{
    listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener->wake_fd < 0) {
        return cadre_error_errno(error, errno, "open a socket for the ps job on %s", host);
    }
    return port_range_listen(
        ports, &address->storage, &address->bytes, host, "the ps job", &listener->fd, error);
}

cadre_status link_listener_open(const char *host, const struct port_range *ports,
    struct link_listener **ret_listener, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error)
{
    _Static_assert(LIMIT_ADDRESS_BYTES == MESH_ADDRESS_BYTES, "both are an address as text");
    *ret_listener = NULL;
    struct mesh_sockaddr address;
    CADRE_TRY(mesh_address_from_host(host, &address, error));
    struct link_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a listener");
    }
    listener->fd = -1;
    listener->wake_fd = -1;
    pthread_mutex_init(&listener->terms_lock, NULL);
    cadre_status status = open_socket(listener, &address, host, ports, error);
    if (status != CADRE_OK) {
        link_listener_close(listener);
        return status;
    }
    mesh_address_format(&address, NULL, ret_address);
    *ret_listener = listener;
    return CADRE_OK;
}

cadre_status link_listener_start(struct link_listener *listener, const struct link_terms *terms,
    const struct link_admission *admission, struct cadre_error *error)
{
    listener->terms = *terms;
    listener->admission = *admission;
    int errnum = pthread_create(&listener->thread, NULL, listen_loop, listener);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "start the thread that admits tasks");
    }
    listener->started = true;
    return CADRE_OK;
}

void link_listener_set_terms(struct link_listener *listener, const struct link_terms *terms)
{
    pthread_mutex_lock(&listener->terms_lock);
    listener->terms = *terms;
    pthread_mutex_unlock(&listener->terms_lock);
}

void link_listener_close(struct link_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    if (listener->started) {
        atomic_store(&listener->closing, true);
        (void)eventfd_write(listener->wake_fd, 1);
        pthread_join(listener->thread, NULL);
    }
    while (listener->count > 0) {
        link_listener_forget(listener, listener->count - 1, FATE_DROPPED);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    if (listener->wake_fd >= 0) {
        close(listener->wake_fd);
    }
    pthread_mutex_destroy(&listener->terms_lock);
    free(listener);
}
