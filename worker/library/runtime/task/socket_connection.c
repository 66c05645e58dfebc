/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/wire/frame.h"
#include "worker/library/runtime/task/socket_mailbox.h"

static cadre_status wait_until(int fd, short events, const char *path, int stop_fd,
    uint64_t deadline_us, struct cadre_error *error)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= deadline_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "the worker daemon at %s does not answer; is it stopped or overloaded?", path);
        }
        struct pollfd waited[2] = {{.fd = fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
        uint64_t left_ms = (deadline_us - now_us) / CADRE_US_PER_MS + 1;
        int count = poll(waited, 2, left_ms > 60000 ? 60000 : (int)left_ms);
        if (count < 0 && errno != EINTR) {
            return cadre_error_errno(error, errno, "wait for the worker daemon at %s", path);
        }
        if (count > 0 && waited[1].revents != 0) {
            return cadre_error_set(
                error, CADRE_CANCELLED, "connecting to the worker daemon at %s was stopped", path);
        }
        if (count > 0 && waited[0].revents != 0) {
            return CADRE_OK;
        }
    }
}

static cadre_status connect_to(
    const char *path, int fd, int stop_fd, uint64_t deadline_us, struct cadre_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the socket path '%.64s...' is longer than %zu bytes", path,
            sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    /* A Unix socket whose backlog is full returns EAGAIN: retried shortly after. */
    while (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        if (errno == EAGAIN || errno == EINTR) {
            uint64_t soon_us = clock_monotonic_us() + 10 * CADRE_US_PER_MS;
            cadre_status status = wait_until(
                -1, 0, path, stop_fd, soon_us < deadline_us ? soon_us : deadline_us, error);
            if (status != CADRE_DEADLINE_EXCEEDED || clock_monotonic_us() >= deadline_us) {
                return status;
            }
            continue;
        }
        int errnum = errno;
        cadre_error_errno(error, errnum, "connect to the worker daemon at %s (CADRE_SOCKET)", path);
        /* Whatever is wrong with the path, no daemon can be reached there. */
        return error == NULL ? CADRE_UNAVAILABLE : (error->code = CADRE_UNAVAILABLE);
    }
    return CADRE_OK;
}

static cadre_status socket_connection_gone(const char *path, int errnum, struct cadre_error *error)
{
    if (errnum == 0 || errnum == EPIPE || errnum == ECONNRESET) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the worker daemon at %s closed the connection before its preamble", path);
    }
    return cadre_error_errno(error, errnum, "greet the worker daemon at %s", path);
}

/* Of the descriptors that a message brought, the first ones are kept, in their order. */
static void keep_descriptors(struct msghdr *message, int fds[MAILBOX_DESCRIPTORS], size_t *count)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        bool rights = header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS;
        size_t came = rights ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (size_t i = 0; i < came; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            if (*count < MAILBOX_DESCRIPTORS) {
                fds[(*count)++] = fd;
            } else {
                close(fd);
            }
        }
    }
}

/* As recv(). A daemon sends the descriptors of mailboxes with its preamble; another version's, and
 * another peer, sends none. */
static ssize_t receive(
    int fd, uint8_t *bytes, size_t size, int fds[MAILBOX_DESCRIPTORS], size_t *count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MAILBOX_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got >= 0) {
        keep_descriptors(&message, fds, count);
    }
    return got;
}

static cadre_status socket_connection_exchange(int fd, const char *path, int stop_fd,
    uint64_t deadline_us, int fds[MAILBOX_DESCRIPTORS], struct cadre_error *error)
{
    size_t came = 0;
    uint8_t ours[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(ours);
    /* Eight bytes always fit an empty socket buffer. */
    if (send(fd, ours, sizeof ours, MSG_NOSIGNAL) != (ssize_t)sizeof ours) {
        return socket_connection_gone(path, errno, error);
    }
    uint8_t theirs[FRAME_PREAMBLE_BYTES];
    size_t got = 0;
    while (got < sizeof theirs) {
        cadre_status status = wait_until(fd, POLLIN, path, stop_fd, deadline_us, error);
        if (status != CADRE_OK) {
            return status;
        }
        ssize_t size = receive(fd, theirs + got, sizeof theirs - got, fds, &came);
        if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
            return socket_connection_gone(path, size == 0 ? 0 : errno, error);
        }
        got += size > 0 ? (size_t)size : 0;
    }
    return frame_preamble_check(theirs, "the worker daemon", error);
}

cadre_status socket_connection_open(const char *path, int stop_fd, uint64_t deadline_us,
    int *ret_fd, struct socket_mailbox *ret_mailbox, struct cadre_error *error)
{
    int fds[MAILBOX_DESCRIPTORS] = {-1, -1, -1, -1};
    CADRE_ASSERT(path != NULL);
    CADRE_ASSERT(deadline_us > 0);
    *ret_fd = -1;
    *ret_mailbox = (struct socket_mailbox){.arrived_fd = -1, .released_fd = -1};
    CADRE_CLOSE_AT_EXIT int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "make a Unix socket");
    }
    cadre_status status = connect_to(path, fd, stop_fd, deadline_us, error);
    if (status == CADRE_OK) {
        status = socket_connection_exchange(fd, path, stop_fd, deadline_us, fds, error);
    }
    socket_mailbox_open(ret_mailbox, fds);
    if (status != CADRE_OK) {
        socket_mailbox_close(ret_mailbox);
    } else {
        *ret_fd = fd;
        fd = -1;
    }
    return status;
}
