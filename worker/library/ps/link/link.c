/* SPDX-License-Identifier: Apache-2.0
 * Frames over a connection that was admitted: sending, receiving, deadlines. Called by client/,
 * server/ and the runtime's closures/. */
#include "worker/library/ps/link/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/ps/link/frame.h"
#include "worker/library/ps/link/link_internal.h"

#define PIECES_MAX 64
#define POLL_US    (100 * CADRE_US_PER_MS) /* so often a waiting call asks goes_on() */

/* Over loopback, more bytes in flight fall out of the cache: a fifth more CPU for the same bytes.
 * Between machines the kernel's own size is used. */
#define LOOPBACK_SEND_BYTES (512 << 10)

/* A machine that vanished is noticed after 5 + 3 * 2 seconds when nothing is in flight to it. */
#define KEEP_IDLE_S     5
#define KEEP_INTERVAL_S 2
#define KEEP_COUNT      3

void link_tune(int fd)
{
    int on = 1;
    int idle_s = KEEP_IDLE_S;
    int interval_s = KEEP_INTERVAL_S;
    int count = KEEP_COUNT;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    struct mesh_sockaddr peer = {.bytes = sizeof peer.storage};
    int bytes = LOOPBACK_SEND_BYTES;
    if (getpeername(fd, (struct sockaddr *)&peer.storage, &peer.bytes) == 0 &&
        mesh_address_is_loopback(&peer)) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
}

struct link *link_new(int fd, const struct link_peer *peer, const char *who)
{
    struct link *link = malloc(sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->fd = fd;
    link->peer = *peer;
    link->receive_us = UINT64_MAX;
    link->begin = 0;
    link->end = 0;
    snprintf(link->who, sizeof link->who, "%s", who);
    pthread_mutex_init(&link->send_lock, NULL);
    return link;
}

void link_free(struct link *link)
{
    if (link != NULL) {
        close(link->fd);
        pthread_mutex_destroy(&link->send_lock);
        free(link);
    }
}

void link_shutdown(struct link *link)
{
    shutdown(link->fd, SHUT_RDWR);
}

const struct link_peer *link_peer(const struct link *link)
{
    return &link->peer;
}

const char *link_peer_name(const struct link *link)
{
    return link->who;
}

int link_fd(const struct link *link)
{
    return link->fd;
}

bool link_is_ended(const struct link *link)
{
    struct pollfd poller = {.fd = link->fd, .events = POLLRDHUP};
    return poll(&poller, 1, 0) > 0;
}

/* The error for a return value of -1. */
static cadre_status link_error(const struct link *link, int errnum, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_UNAVAILABLE, "the connection with %s is lost: %s",
        link->who, errnum == 0 ? "the other side ended it" : strerror(errnum));
}

/* ---- sending ---- */

/* Skips `sent` bytes; returns the first piece that is left. */
static struct iovec *skip_sent(struct iovec *piece, const struct iovec *end, size_t sent)
{
    while (piece < end && sent >= piece->iov_len) {
        sent -= piece->iov_len;
        piece++;
    }
    if (piece < end) {
        piece->iov_base = (char *)piece->iov_base + sent;
        piece->iov_len -= sent;
    }
    return piece;
}

/* Waits for room in the socket; false when goes_on() ended the wait. */
static bool await_room(int fd, const struct link_wait *wait, uint64_t since_us)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    return poll(&poller, 1, POLL_US / CADRE_US_PER_MS) > 0 ||
           wait->goes_on(wait->user, clock_monotonic_us() - since_us);
}

/* `wait` NULL: blocks until all is sent. Returns 0 or errno. */
static int send_all(int fd, struct iovec *pieces, size_t count, const struct link_wait *wait)
{
    const struct iovec *end = pieces + count;
    int flags = MSG_NOSIGNAL | (wait == NULL ? 0 : MSG_DONTWAIT);
    uint64_t since_us = 0; /* since when nothing was sent; 0: bytes were sent */
    for (struct iovec *piece = skip_sent(pieces, end, 0); piece < end;) {
        struct msghdr message = {.msg_iov = piece, .msg_iovlen = (size_t)(end - piece)};
        ssize_t sent = sendmsg(fd, &message, flags);
        if (sent < 0 && errno == EAGAIN && wait != NULL) {
            since_us = since_us == 0 ? clock_monotonic_us() : since_us;
            if (!await_room(fd, wait, since_us)) {
                return ETIMEDOUT;
            }
            continue;
        }
        if (sent < 0 && errno != EINTR) {
            return errno;
        }
        since_us = 0;
        piece = skip_sent(piece, end, sent < 0 ? 0 : (size_t)sent);
    }
    return 0;
}

cadre_status link_send(struct link *link, const struct frame *frame, const struct iovec *pieces,
    size_t count, struct cadre_error *error)
{
    return link_send_while(link, frame, pieces, count, NULL, error);
}

cadre_status link_send_while(struct link *link, const struct frame *frame,
    const struct iovec *pieces, size_t count, const struct link_wait *wait,
    struct cadre_error *error)
{
    uint8_t header[FRAME_BYTES];
    struct iovec all[PIECES_MAX + 1] = {{.iov_base = header, .iov_len = sizeof header}};
    uint64_t bytes = 0;
    CADRE_ASSERT(count <= PIECES_MAX);
    for (size_t i = 0; i < count; i++) {
        all[i + 1] = pieces[i];
        bytes += pieces[i].iov_len;
    }
    CADRE_ASSERT(bytes == frame->bytes);
    frame_write(frame, header);
    pthread_mutex_lock(&link->send_lock);
    int errnum = send_all(link->fd, all, count + 1, wait);
    pthread_mutex_unlock(&link->send_lock);
    if (errnum == ETIMEDOUT && wait != NULL) {
        return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED, "%s takes nothing", link->who);
    }
    return errnum == 0 ? CADRE_OK : link_error(link, errnum, error);
}

/* ---- receiving ---- */

void link_set_patience(struct link *link, uint64_t wait_timeout_us)
{
    if (link->receive_us != wait_timeout_us) {
        bool bounded =
            wait_timeout_us != UINT64_MAX && wait_timeout_us / CADRE_US_PER_S < INT32_MAX;
        struct timeval limit = {0};
        if (bounded) {
            limit.tv_sec = (time_t)(wait_timeout_us / CADRE_US_PER_S);
            limit.tv_usec = (suseconds_t)(wait_timeout_us % CADRE_US_PER_S);
        }
        setsockopt(link->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        link->receive_us = wait_timeout_us;
    }
}

static ssize_t read_some(struct link *link, void *bytes, size_t count, bool wait)
{
    ssize_t got = recv(link->fd, bytes, count, wait ? 0 : MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (got == 0) {
        errno = 0;
        return -1;
    }
    return got;
}

ssize_t link_read(struct link *link, void *bytes, size_t count, bool wait)
{
    size_t there = link->end - link->begin;
    if (there == 0) {
        return read_some(link, bytes, count, wait);
    }
    size_t taken = there < count ? there : count;
    memcpy(bytes, link->ahead + link->begin, taken);
    link->begin += taken;
    return (ssize_t)taken;
}

int link_read_ahead(struct link *link, size_t count, bool wait)
{
    size_t there = link->end - link->begin;
    if (there >= count) {
        return 1;
    }
    memmove(link->ahead, link->ahead + link->begin, there);
    link->begin = 0;
    link->end = there;
    while (link->end < count) {
        ssize_t got =
            read_some(link, link->ahead + link->end, sizeof link->ahead - link->end, wait);
        if (got <= 0) {
            return (int)got;
        }
        link->end += (size_t)got;
    }
    return 1;
}

cadre_status link_receive(
    struct link *link, uint64_t wait_timeout_us, struct frame *ret_frame, struct cadre_error *error)
{
    bool endless = wait_timeout_us == UINT64_MAX;
    uint64_t began_us = endless || wait_timeout_us == 0 ? 0 : clock_monotonic_us();
    for (uint64_t left_us = wait_timeout_us;;) {
        if (left_us > 0) {
            link_set_patience(link, left_us);
        }
        int there = link_read_ahead(link, FRAME_BYTES, left_us > 0);
        if (there < 0) {
            return link_error(link, errno, error);
        }
        if (there > 0) {
            frame_read(link->ahead + link->begin, ret_frame);
            link->begin += FRAME_BYTES;
            return CADRE_OK;
        }
        /* The clock is read only here: a frame that arrives in time costs one system call. */
        uint64_t waited_us = endless || wait_timeout_us == 0 ? 0 : clock_monotonic_us() - began_us;
        if (!endless && waited_us >= wait_timeout_us) {
            return cadre_error_set(
                error, CADRE_DEADLINE_EXCEEDED, "%s sent nothing in time", link->who);
        }
        left_us = endless ? wait_timeout_us : wait_timeout_us - waited_us;
    }
}

cadre_status link_receive_while(struct link *link, const struct link_wait *wait,
    struct frame *ret_frame, struct cadre_error *error)
{
    uint64_t silent_us = 0;
    cadre_status status;
    do {
        status = link_receive(link, POLL_US, ret_frame, error);
        silent_us += POLL_US;
    } while (status == CADRE_DEADLINE_EXCEEDED && wait->goes_on(wait->user, silent_us));
    return status;
}

cadre_status link_receive_bytes(
    struct link *link, void *bytes, size_t count, struct cadre_error *error)
{
    return link_receive_bytes_while(link, bytes, count, NULL, error);
}

cadre_status link_receive_bytes_while(struct link *link, void *bytes, size_t count,
    const struct link_wait *wait, struct cadre_error *error)
{
    uint64_t silent_us = 0;
    if (wait != NULL) {
        link_set_patience(link, POLL_US);
    }
    for (size_t done = 0; done < count;) {
        ssize_t got = link_read(link, (char *)bytes + done, count - done, true);
        if (got < 0) {
            return link_error(link, errno, error);
        }
        silent_us = got > 0 ? 0 : silent_us + POLL_US;
        if (got == 0 && wait != NULL && !wait->goes_on(wait->user, silent_us)) {
            return cadre_error_set(
                error, CADRE_DEADLINE_EXCEEDED, "%s sent nothing in time", link->who);
        }
        done += (size_t)got;
    }
    return CADRE_OK;
}
