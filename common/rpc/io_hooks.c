/* SPDX-License-Identifier: Apache-2.0
 * Replaces epoll_ctl(), recvmsg(), sendmsg(), SSL_read() and SSL_write() for gRPC, and passes the
 * bytes of each accepted connection through http2_filter.c. Keeps a caller for each identity. */
#include "common/rpc/io_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/pure/assert.h"
#include "common/rpc/http2_filter.h"
#include "common/rpc/sockets.h"
#include "common/tls/certificate.h"

/* A caller: the role and name of a certificate, over all connections with it; without one, a
 * connection. */
struct known_caller {
    struct rpc_caller caller; /* first, for the connections */
    struct known_caller *next;
    struct tls_identity identity; /* TLS_ROLE_NONE: of one connection */
    unsigned connections;
};

struct connection {
    struct known_caller *known;
    struct rpc_http2_filter *filter;
};

/* More than a process may have descriptors. Pages that are not used take no memory. */
#define DESCRIPTORS_MAX (1 << 20)

/* The lock guards all of it. Whether there is a connection can be read without the lock: a
 * process that was forked meanwhile closes descriptors, and may find the lock held for ever. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t message_bytes_max;
static struct known_caller *callers;
static _Atomic(struct connection *) by_descriptor[DESCRIPTORS_MAX];

void rpc_io_hooks_use(int epoll_set)
{
    rpc_sockets_use(epoll_set);
}

void rpc_io_hooks_limit(size_t bytes_max)
{
    pthread_mutex_lock(&lock);
    if (bytes_max > message_bytes_max) {
        message_bytes_max = bytes_max;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- connections and their callers; with the lock ---- */

static struct known_caller *caller_of(const struct tls_identity *identity)
{
    struct known_caller *known = identity->role == TLS_ROLE_NONE ? NULL : callers;
    while (known != NULL && (known->identity.role != identity->role ||
                                strcmp(known->identity.name, identity->name) != 0)) {
        known = known->next;
    }
    if (known == NULL && (known = calloc(1, sizeof *known)) != NULL) {
        *known = (struct known_caller){
            .caller.message_bytes_max = message_bytes_max, .next = callers, .identity = *identity};
        callers = known;
    }
    return known;
}

static void caller_unref(struct known_caller *known)
{
    if (known == NULL || --known->connections > 0) {
        return;
    }
    struct known_caller **at = &callers;
    while (*at != known) {
        at = &(*at)->next;
    }
    *at = known->next;
    free(known);
}

static void connection_close(struct connection *connection)
{
    if (connection != NULL) {
        rpc_http2_filter_close(connection->filter);
        caller_unref(connection->known);
        free(connection);
    }
}

/* NULL without memory: the connection is not filtered then. */
static struct connection *connection_open(const struct tls_identity *identity)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct known_caller *known = connection == NULL ? NULL : caller_of(identity);
    if (known != NULL) {
        known->connections++;
        connection->known = known;
        connection->filter = rpc_http2_filter_open(&known->caller);
    }
    if (connection != NULL && connection->filter == NULL) {
        connection_close(connection);
        return NULL;
    }
    return connection;
}

/* ---- without TLS: by descriptor ---- */

static struct connection *connection_of(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX ? atomic_load(&by_descriptor[fd]) : NULL;
}

static void io_hooks_forget(int fd)
{
    if (connection_of(fd) != NULL) {
        connection_close(atomic_exchange(&by_descriptor[fd], NULL));
    }
}

void rpc_io_hooks_watch(int fd)
{
    static const struct tls_identity no_role;
    pthread_mutex_lock(&lock);
    io_hooks_forget(fd);
    if (message_bytes_max > 0 && fd < DESCRIPTORS_MAX) {
        atomic_store(&by_descriptor[fd], connection_open(&no_role));
    }
    pthread_mutex_unlock(&lock);
}

static bool filter_message(
    struct connection *connection, const struct msghdr *message, size_t count)
{
    bool is_within_limits = true;
    for (size_t i = 0; i < message->msg_iovlen && count > 0 && is_within_limits; i++) {
        const struct iovec *part = &message->msg_iov[i];
        size_t take = part->iov_len < count ? part->iov_len : count;
        is_within_limits = rpc_http2_filter_received(connection->filter, part->iov_base, take);
        count -= take;
    }
    return is_within_limits;
}

/* Replace libc's and OpenSSL's functions for gRPC; they have other names here because the
 * headers declare the originals. */
ssize_t rpc_recvmsg(int fd, struct msghdr *message, int flags) __asm__("recvmsg")
    __attribute__((visibility("default")));
ssize_t rpc_sendmsg(int fd, const struct msghdr *message, int flags) __asm__("sendmsg")
    __attribute__((visibility("default")));
int rpc_close(int fd) __asm__("close") __attribute__((visibility("default")));
int rpc_epoll_ctl(int epoll_set, int how, int fd, struct epoll_event *event) __asm__("epoll_ctl")
    __attribute__((visibility("default")));
int rpc_ssl_read(SSL *ssl, void *bytes, int room) __asm__("SSL_read")
    __attribute__((visibility("default")));
int rpc_ssl_write(SSL *ssl, const void *bytes, int count) __asm__("SSL_write")
    __attribute__((visibility("default")));

ssize_t rpc_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
    if (got <= 0 || connection_of(fd) == NULL || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0) {
        return got;
    }
    pthread_mutex_lock(&lock);
    struct connection *connection = connection_of(fd);
    if (connection != NULL && !filter_message(connection, message, (size_t)got)) {
        got = -1;
        errno = ECONNRESET;
    } else if (connection != NULL && !rpc_http2_filter_is_active(connection->filter)) {
        io_hooks_forget(fd);
    }
    pthread_mutex_unlock(&lock);
    return got;
}

int rpc_epoll_ctl(int epoll_set, int how, int fd, struct epoll_event *event)
{
    return rpc_sockets_control(epoll_set, how, fd, event);
}

ssize_t rpc_sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = rpc_sockets_send(fd, message, flags);
    if (sent <= 0 || connection_of(fd) == NULL) {
        return sent;
    }
    pthread_mutex_lock(&lock);
    struct connection *connection = connection_of(fd);
    size_t left = (size_t)sent;
    for (size_t i = 0; connection != NULL && i < message->msg_iovlen && left > 0; i++) {
        const struct iovec *part = &message->msg_iov[i];
        size_t take = part->iov_len < left ? part->iov_len : left;
        rpc_http2_filter_sent(connection->filter, part->iov_base, take);
        left -= take;
    }
    pthread_mutex_unlock(&lock);
    return sent;
}

/* The number may be a client's next. */
int rpc_close(int fd)
{
    if (connection_of(fd) != NULL) {
        pthread_mutex_lock(&lock);
        io_hooks_forget(fd);
        pthread_mutex_unlock(&lock);
    }
    rpc_sockets_closing(fd);
    return (int)syscall(SYS_close, fd);
}

/* ---- with TLS: by OpenSSL's object ---- */

static int ssl_index = -1; /* index among the application data of an SSL */
static pthread_once_t ssl_index_once = PTHREAD_ONCE_INIT;

static void ssl_gone(
    void *ssl, void *own, CRYPTO_EX_DATA *data, int index, long number, void *pointer)
{
    (void)ssl;
    (void)data;
    (void)index;
    (void)number;
    (void)pointer;
    pthread_mutex_lock(&lock);
    connection_close(own);
    pthread_mutex_unlock(&lock);
}

static void make_ssl_index(void)
{
    ssl_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, ssl_gone);
    CADRE_ASSERT(ssl_index >= 0);
}

/* NULL for a client's, and where no server of ours is. */
static struct connection *connection_of_ssl(SSL *ssl)
{
    struct tls_identity identity = {0};
    if (message_bytes_max == 0 || SSL_is_server(ssl) == 0) {
        return NULL;
    }
    (void)pthread_once(&ssl_index_once, make_ssl_index);
    struct connection *connection = SSL_get_ex_data(ssl, ssl_index);
    if (connection == NULL) {
        X509 *certificate = SSL_get0_peer_certificate(ssl);
        if (certificate != NULL) {
            (void)tls_certificate_identity(certificate, &identity, NULL);
        }
        connection = connection_open(&identity);
        if (connection != NULL && SSL_set_ex_data(ssl, ssl_index, connection) != 1) {
            connection_close(connection);
            connection = NULL;
        }
    }
    return connection;
}

int rpc_ssl_read(SSL *ssl, void *bytes, int room)
{
    size_t got = 0;
    int done = SSL_read_ex(ssl, bytes, (size_t)room, &got);
    if (done != 1) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    struct connection *connection = connection_of_ssl(ssl);
    bool is_within_limits =
        connection == NULL || rpc_http2_filter_received(connection->filter, bytes, got);
    pthread_mutex_unlock(&lock);
    if (!is_within_limits) {
        ERR_raise(ERR_LIB_SSL, SSL_R_LENGTH_TOO_LONG);
        return -1;
    }
    return (int)got;
}

int rpc_ssl_write(SSL *ssl, const void *bytes, int count)
{
    size_t sent = 0;
    if (SSL_write_ex(ssl, bytes, (size_t)count, &sent) != 1) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    struct connection *connection = connection_of_ssl(ssl);
    if (connection != NULL) {
        rpc_http2_filter_sent(connection->filter, bytes, sent);
    }
    pthread_mutex_unlock(&lock);
    return (int)sent;
}
