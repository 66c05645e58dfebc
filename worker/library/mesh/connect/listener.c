/* SPDX-License-Identifier: Apache-2.0
 * The listening sockets and their table of unproven connections: accepting, answering and refusing
 * them. form.c calls mesh_listener_serve while a mesh forms. */
#include "worker/library/mesh/connect/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/mesh/connect/handshake.h"

/* Over loopback, more in flight than this falls out of the cache and slows both sides down. */
#define LOOPBACK_SEND_BYTES 131072
#define UNPACED             "reno" /* every Linux has it */

enum pending_state { PENDING_FREE, PENDING_CONNECTED, PENDING_GREETED, PENDING_CHALLENGED };

struct pending_connection {
    enum pending_state state;
    int fd;
    bool local;   /* came over the Unix socket */
    bool watched; /* in the epoll set */
    uint64_t since_us;
    size_t got;
    uint8_t hello_bytes[HANDSHAKE_HELLO_BYTES];
    uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES];
    uint8_t mac[HANDSHAKE_MAC_BYTES];
    struct handshake_hello hello;
};

struct mesh_listener {
    int fd;
    int local_fd; /* -1: tasks of this host come over TCP as well */
    int epoll_fd;
    pthread_mutex_t lock;
    struct pending_connection pending[LISTENER_PENDING_MAX];
};

void mesh_listener_tune(int fd, const struct mesh_sockaddr *address)
{
    int on = 1;
    int bytes = LOOPBACK_SEND_BYTES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (mesh_address_is_loopback(address)) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, UNPACED, sizeof UNPACED - 1);
    }
}

static cadre_status open_socket(struct mesh_listener *listener, struct mesh_sockaddr *address,
    const char *host, const struct port_range *ports, struct cadre_error *error)
{
    listener->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (listener->epoll_fd < 0) {
        return cadre_error_errno(error, errno, "open a socket for the mesh on %s", host);
    }
    CADRE_TRY(port_range_listen(
        ports, &address->storage, &address->bytes, host, "the mesh", &listener->fd, error));
    mesh_listener_tune(listener->fd, address);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, listener->fd, &event) != 0) {
        return cadre_error_errno(error, errno, "watch the mesh's socket on %s", host);
    }
    return CADRE_OK;
}

/* Listens on the Unix socket of `text`; false where the system does not allow it. */
static bool open_local(struct mesh_listener *listener, const char *text)
{
    struct mesh_sockaddr address = mesh_address_local(text);
    struct epoll_event event = {.events = EPOLLIN};
    listener->local_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->local_fd < 0) {
        return false;
    }
    bool good =
        !fault_point("mesh.listen_local") &&
        bind(listener->local_fd, (const struct sockaddr *)&address.storage, address.bytes) == 0 &&
        listen(listener->local_fd, SOMAXCONN) == 0 &&
        epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, listener->local_fd, &event) == 0;
    if (!good) {
        close(listener->local_fd);
        listener->local_fd = -1;
    }
    return good;
}

cadre_status mesh_listener_open(const char *host, const struct port_range *ports,
    struct mesh_listener **ret_listener, char ret_address[MESH_ADDRESS_BYTES],
    struct cadre_error *error)
{
    *ret_listener = NULL;
    struct mesh_sockaddr address;
    CADRE_TRY(mesh_address_from_host(host, &address, error));
    struct mesh_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a mesh listener");
    }
    listener->fd = -1;
    listener->local_fd = -1;
    listener->epoll_fd = -1;
    pthread_mutex_init(&listener->lock, NULL);
    cadre_status status = open_socket(listener, &address, host, ports, error);
    if (status != CADRE_OK) {
        mesh_listener_close(listener);
        return status;
    }
    uint8_t token[MESH_TOKEN_BYTES];
    bool drawn = RAND_bytes(token, sizeof token) == 1;
    mesh_address_format(&address, drawn ? token : NULL, ret_address);
    if (drawn && !open_local(listener, ret_address)) {
        mesh_address_format(&address, NULL, ret_address);
    }
    *ret_listener = listener;
    return CADRE_OK;
}

static void mesh_listener_close_pending(struct pending_connection *pending_connection)
{
    close(pending_connection->fd);
    *pending_connection = (struct pending_connection){.state = PENDING_FREE};
}

void mesh_listener_close(struct mesh_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    for (size_t i = 0; i < LISTENER_PENDING_MAX; i++) {
        if (listener->pending[i].state != PENDING_FREE) {
            mesh_listener_close_pending(&listener->pending[i]);
        }
    }
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    if (listener->local_fd >= 0) {
        close(listener->local_fd);
    }
    if (listener->epoll_fd >= 0) {
        close(listener->epoll_fd);
    }
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}

int mesh_listener_fd(const struct mesh_listener *listener)
{
    return listener->epoll_fd;
}

/* Connections that sent no hello give way first, then the oldest one: a task that is refused
 * connects again. */
static bool gives_way_before(const struct pending_connection *a, const struct pending_connection *b)
{
    bool a_silent = a->state == PENDING_CONNECTED;
    bool b_silent = b->state == PENDING_CONNECTED;
    return a_silent != b_silent ? a_silent : a->since_us < b->since_us;
}

static struct pending_connection *make_room(struct mesh_listener *listener)
{
    struct pending_connection *victim = &listener->pending[0];
    for (size_t i = 0; i < LISTENER_PENDING_MAX; i++) {
        struct pending_connection *pending_connection = &listener->pending[i];
        if (pending_connection->state == PENDING_FREE) {
            return pending_connection;
        }
        if (gives_way_before(pending_connection, victim)) {
            victim = pending_connection;
        }
    }
    mesh_listener_close_pending(victim);
    return victim;
}

/* Reads, but never beyond `size` bytes; true when they are all there. *ret_lost: they will never
 * be. */
static bool read_fully(int fd, uint8_t *bytes, size_t size, size_t *got, bool *ret_lost)
{
    ssize_t count = recv(fd, bytes + *got, size - *got, MSG_DONTWAIT);
    if (count > 0) {
        *got += (size_t)count;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        *ret_lost = true;
    }
    return *got == size;
}

static void mesh_listener_watch(
    struct mesh_listener *listener, struct pending_connection *pending_connection, bool on)
{
    if (pending_connection->watched != on) {
        struct epoll_event event = {.events = EPOLLIN};
        int verb = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
        pending_connection->watched =
            epoll_ctl(listener->epoll_fd, verb, pending_connection->fd, &event) == 0 && on;
    }
}

static void mesh_listener_refuse(struct pending_connection *pending_connection,
    char refusal[LISTENER_REFUSAL_BYTES], const char *why)
{
    if (pending_connection->state == PENDING_CONNECTED) {
        snprintf(refusal, LISTENER_REFUSAL_BYTES, "a connection was refused: %s", why);
    } else {
        snprintf(refusal, LISTENER_REFUSAL_BYTES,
            "a connection for rank %" PRIu32 " of generation %" PRIu64 " was refused: %s",
            pending_connection->hello.from_rank, pending_connection->hello.generation, why);
    }
    mesh_listener_close_pending(pending_connection);
}

/* Of the same generation, and not of the mesh that is formed with these terms. */
static bool of_another_mesh(const struct handshake_hello *hello, const struct listener_terms *terms)
{
    return hello->generation == terms->generation && hello->nonce != terms->nonce;
}

/* The hello is complete: answer it, let it wait for another mesh of this generation or of a newer
 * one, or refuse it (protocol, rule 13). */
static void mesh_listener_greet(struct mesh_listener *listener,
    struct pending_connection *pending_connection, const struct listener_terms *terms,
    char refusal[LISTENER_REFUSAL_BYTES])
{
    const struct handshake_hello *hello = &pending_connection->hello;
    if (hello->generation > terms->generation || of_another_mesh(hello, terms)) {
        mesh_listener_watch(listener, pending_connection, false);
        return;
    }
    if (hello->generation < terms->generation) {
        mesh_listener_refuse(pending_connection, refusal, "it is of another generation");
        return;
    }
    if (hello->roster != terms->roster || hello->to_rank != terms->rank ||
        !terms->expects(terms->user, hello->from_rank, pending_connection->local)) {
        mesh_listener_refuse(pending_connection, refusal, "it has another roster");
        return;
    }
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    if (mesh_handshake_reply_make(terms->key, pending_connection->hello_bytes, reply, NULL) !=
            CADRE_OK ||
        send(pending_connection->fd, reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            (ssize_t)sizeof reply) {
        mesh_listener_refuse(pending_connection, refusal, "the challenge could not be sent");
        return;
    }
    memcpy(pending_connection->challenge, reply, sizeof pending_connection->challenge);
    pending_connection->state = PENDING_CHALLENGED;
    pending_connection->got = 0;
    mesh_listener_watch(listener, pending_connection, true);
}

/* The proof is complete: admit or refuse. */
static void mesh_listener_check_proof(struct mesh_listener *listener,
    struct pending_connection *pending_connection, const struct listener_terms *terms,
    char refusal[LISTENER_REFUSAL_BYTES])
{
    if (pending_connection->hello.generation != terms->generation) {
        mesh_listener_refuse(pending_connection, refusal, "it is of another generation");
        return;
    }
    if (!mesh_handshake_mac_valid(terms->key, HANDSHAKE_CONNECTOR, pending_connection->hello_bytes,
            pending_connection->challenge, pending_connection->mac)) {
        mesh_listener_refuse(pending_connection, refusal, "it did not prove the generation's key");
        return;
    }
    uint8_t welcome[HANDSHAKE_MAC_BYTES];
    mesh_handshake_mac(terms->key, HANDSHAKE_WELCOME, pending_connection->hello_bytes,
        pending_connection->challenge, welcome);
    if (send(pending_connection->fd, welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof welcome) {
        mesh_listener_refuse(
            pending_connection, refusal, "it closed the connection before the welcome was sent");
        return;
    }
    mesh_listener_watch(listener, pending_connection, false);
    int fd = pending_connection->fd;
    uint32_t rank = pending_connection->hello.from_rank;
    bool local = pending_connection->local;
    *pending_connection = (struct pending_connection){.state = PENDING_FREE};
    terms->admit(terms->user, rank, local, fd);
}

/* Advances one unproven connection as far as it goes now. */
static void mesh_listener_advance(struct mesh_listener *listener,
    struct pending_connection *pending_connection, const struct listener_terms *terms,
    char refusal[LISTENER_REFUSAL_BYTES])
{
    bool lost = false;
    if (pending_connection->state == PENDING_CONNECTED &&
        read_fully(pending_connection->fd, pending_connection->hello_bytes,
            sizeof pending_connection->hello_bytes, &pending_connection->got, &lost)) {
        if (!mesh_handshake_hello_read(
                pending_connection->hello_bytes, &pending_connection->hello)) {
            mesh_listener_refuse(
                pending_connection, refusal, "it does not use the mesh's protocol, version 2");
            return;
        }
        pending_connection->state = PENDING_GREETED;
    }
    if (pending_connection->state == PENDING_GREETED) {
        mesh_listener_greet(listener, pending_connection, terms, refusal);
    }
    bool own = !of_another_mesh(&pending_connection->hello, terms);
    if (pending_connection->state == PENDING_CHALLENGED) {
        mesh_listener_watch(listener, pending_connection, own);
    }
    if (pending_connection->state == PENDING_CHALLENGED && own &&
        read_fully(pending_connection->fd, pending_connection->mac, sizeof pending_connection->mac,
            &pending_connection->got, &lost)) {
        mesh_listener_check_proof(listener, pending_connection, terms, refusal);
    }
    if (lost) {
        mesh_listener_refuse(
            pending_connection, refusal, "it ended before it proved the generation's key");
    }
}

/* Errors of accept that concern one connection, not this process. */
static bool is_passing(int errnum)
{
    return errnum == ECONNABORTED || errnum == EINTR || errnum == EPROTO || errnum == EPERM;
}

static cadre_status accept_waiting(
    struct mesh_listener *listener, bool local, uint64_t now_us, struct cadre_error *error)
{
    int listening_fd = local ? listener->local_fd : listener->fd;
    /* Bounded, so that a flood of connections cannot keep the caller here. */
    for (size_t i = 0; listening_fd >= 0 && i < LISTENER_PENDING_MAX; i++) {
        int fd = accept4(listening_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && is_passing(errno)) {
            continue;
        }
        if (fd < 0 && errno == EAGAIN) {
            break;
        }
        if (fd < 0) {
            return cadre_error_errno(error, errno, "accept a connection of the mesh");
        }
        struct pending_connection *pending_connection = make_room(listener);
        *pending_connection = (struct pending_connection){
            .state = PENDING_CONNECTED, .fd = fd, .local = local, .since_us = now_us};
        mesh_listener_watch(listener, pending_connection, true);
    }
    return CADRE_OK;
}

cadre_status mesh_listener_serve(struct mesh_listener *listener, const struct listener_terms *terms,
    uint64_t now_us, char refusal[LISTENER_REFUSAL_BYTES], struct cadre_error *error)
{
    pthread_mutex_lock(&listener->lock);
    cadre_status status = accept_waiting(listener, true, now_us, error);
    if (status == CADRE_OK) {
        status = accept_waiting(listener, false, now_us, error);
    }
    for (size_t i = 0; i < LISTENER_PENDING_MAX; i++) {
        struct pending_connection *pending_connection = &listener->pending[i];
        if (pending_connection->state != PENDING_FREE) {
            mesh_listener_advance(listener, pending_connection, terms, refusal);
        }
        /* Checked after the chance to be admitted, because the listener may not have been served
         * for longer than the time limit. */
        if (pending_connection->state != PENDING_FREE &&
            now_us - pending_connection->since_us > LISTENER_TIMEOUT_US) {
            mesh_listener_refuse(pending_connection, refusal, "it was silent for too long");
        }
    }
    pthread_mutex_unlock(&listener->lock);
    return status;
}
