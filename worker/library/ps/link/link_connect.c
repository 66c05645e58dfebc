/* SPDX-License-Identifier: Apache-2.0
 * The connector's side: an address, the proofs, the greeting, all before one deadline. Called by
 * client/, server_backup.c and the runtime's closures/. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/ps/link/link.h"
#include "worker/library/ps/link/link_internal.h"

struct dialing {
    int fd; /* non-blocking */
    uint64_t deadline_us;
    uint64_t wait_timeout_us;
    char who[LINK_NAME_BYTES]; /* "ps 1 on 10.0.0.2:4000" */
    struct cadre_error *error;
};

static cadre_status link_connect_lost(const struct dialing *dialing, int errnum)
{
    if (errnum == 0) {
        return cadre_error_set(dialing->error, CADRE_UNAVAILABLE,
            "%s ended the connection before it was admitted", dialing->who);
    }
    return cadre_error_set(
        dialing->error, CADRE_UNAVAILABLE, "connect to %s: %s", dialing->who, strerror(errnum));
}

static cadre_status link_connect_await(const struct dialing *dialing, short events)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= dialing->deadline_us) {
            return cadre_error_set(dialing->error, CADRE_DEADLINE_EXCEEDED,
                "%s did not admit this task within %" PRIu64 " ms", dialing->who,
                dialing->wait_timeout_us / CADRE_US_PER_MS);
        }
        uint64_t left_ms = (dialing->deadline_us - now_us) / CADRE_US_PER_MS + 1;
        struct pollfd poller = {.fd = dialing->fd, .events = events};
        int ready = poll(&poller, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
        if (ready > 0) {
            return CADRE_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return link_connect_lost(dialing, errno);
        }
    }
}

static cadre_status link_connect_say(
    const struct dialing *dialing, const uint8_t *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(dialing->fd, bytes + done, count - done, MSG_NOSIGNAL);
        if (sent > 0) {
            done += (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            return link_connect_lost(dialing, errno);
        } else {
            CADRE_TRY(link_connect_await(dialing, POLLOUT));
        }
    }
    return CADRE_OK;
}

static cadre_status link_connect_receive(
    const struct dialing *dialing, uint8_t *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t got = recv(dialing->fd, bytes + done, count - done, 0);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return link_connect_lost(dialing, got == 0 ? 0 : errno);
        } else {
            CADRE_TRY(link_connect_await(dialing, POLLIN));
        }
    }
    return CADRE_OK;
}

static cadre_status link_connect_dial(
    const struct dialing *dialing, const struct mesh_sockaddr *address)
{
    int on_way = connect(dialing->fd, (const struct sockaddr *)&address->storage, address->bytes);
    if (on_way != 0 && errno != EINPROGRESS) {
        return link_connect_lost(dialing, errno);
    }
    if (on_way != 0) {
        CADRE_TRY(link_connect_await(dialing, POLLOUT));
    }
    int errnum = 0;
    socklen_t size = sizeof errnum;
    getsockopt(dialing->fd, SOL_SOCKET, SO_ERROR, &errnum, &size);
    return errnum == 0 ? CADRE_OK : link_connect_lost(dialing, errnum);
}

static cadre_status link_connect_unproved(const struct dialing *dialing)
{
    return cadre_error_set(dialing->error, CADRE_PERMISSION_DENIED,
        "%s did not prove the key of this generation; another process has its address, or it is "
        "of another generation",
        dialing->who);
}

/* The acceptor knows no task of this generation and answers with zeros instead of a proof. */
static bool is_refusal(const uint8_t reply[HANDSHAKE_REPLY_BYTES])
{
    uint8_t any = 0;
    for (size_t i = 0; i < HANDSHAKE_REPLY_BYTES; i++) {
        any |= reply[i];
    }
    return any == 0;
}

static cadre_status link_connect_prove(const struct dialing *dialing,
    const struct link_terms *terms, uint32_t to_slot, struct link_peer *ret_peer)
{
    uint8_t hello[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t mac[HANDSHAKE_MAC_BYTES + GREETING_BYTES];
    uint8_t welcome[HANDSHAKE_MAC_BYTES + GREETING_BYTES];
    const struct handshake_hello fields = link_hello(terms, terms->slot, to_slot);
    CADRE_TRY(mesh_handshake_hello_make(&fields, hello, dialing->error));
    CADRE_TRY(link_connect_say(dialing, hello, sizeof hello));
    CADRE_TRY(link_connect_receive(dialing, reply, sizeof reply));
    if (is_refusal(reply)) {
        return cadre_error_set(dialing->error, CADRE_PERMISSION_DENIED,
            "%s refuses this task: it is of another generation than %" PRIu64, dialing->who,
            terms->generation.number);
    }
    if (!mesh_handshake_mac_valid(
            terms->key, HANDSHAKE_ACCEPTOR, hello, reply, reply + HANDSHAKE_CHALLENGE_BYTES)) {
        return link_connect_unproved(dialing);
    }
    mesh_handshake_mac(terms->key, HANDSHAKE_CONNECTOR, hello, reply, mac);
    link_greeting_write(terms, mac + HANDSHAKE_MAC_BYTES);
    CADRE_TRY(link_connect_say(dialing, mac, sizeof mac));
    CADRE_TRY(link_connect_receive(dialing, welcome, sizeof welcome));
    *ret_peer = (struct link_peer){.slot = to_slot};
    if (!mesh_handshake_mac_valid(terms->key, HANDSHAKE_WELCOME, hello, reply, welcome) ||
        !link_greeting_read(welcome + HANDSHAKE_MAC_BYTES, ret_peer)) {
        return link_connect_unproved(dialing);
    }
    return link_greeting_check(terms, ret_peer, dialing->who, dialing->error);
}

static cadre_status connect_by(const struct dialing *dialing, const struct link_terms *terms,
    const struct mesh_sockaddr *address, uint32_t to_slot, struct link **ret_link)
{
    struct link_peer peer;
    CADRE_TRY(link_connect_dial(dialing, address));
    link_tune(dialing->fd);
    CADRE_TRY(link_connect_prove(dialing, terms, to_slot, &peer));
    fcntl(dialing->fd, F_SETFL, fcntl(dialing->fd, F_GETFL) & ~O_NONBLOCK);
    *ret_link = link_new(dialing->fd, &peer, dialing->who);
    if (*ret_link == NULL) {
        return cadre_error_set(dialing->error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a connection with %s", dialing->who);
    }
    return CADRE_OK;
}

cadre_status link_connect(const struct link_terms *terms, const char *who, const char *address,
    uint32_t to_slot, uint64_t wait_timeout_us, struct link **ret_link, struct cadre_error *error)
{
    *ret_link = NULL;
    struct mesh_sockaddr to;
    uint64_t now_us = clock_monotonic_us();
    struct dialing dialing = {
        .deadline_us =
            wait_timeout_us > UINT64_MAX - now_us ? UINT64_MAX : now_us + wait_timeout_us,
        .wait_timeout_us = wait_timeout_us,
        .error = error,
    };
    snprintf(dialing.who, sizeof dialing.who, "%s on %s", who, address);
    cadre_status status = mesh_address_parse(address, &to, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "connect to %s", who);
    }
    dialing.fd = socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (dialing.fd < 0) {
        return cadre_error_errno(error, errno, "open a socket for %s", dialing.who);
    }
    status = connect_by(&dialing, terms, &to, to_slot, ret_link);
    if (status != CADRE_OK) {
        close(dialing.fd);
    }
    return status;
}
