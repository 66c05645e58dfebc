/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/sockets.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/rpc/loop_state.h"
#include "common/rpc/window_updates.h"

/* More than a process may have descriptors. Pages that are not used take no memory. */
#define DESCRIPTORS_MAX (1 << 20)

/* What gRPC asks for when it adds a socket. */
#define WANTED ((uint32_t)EPOLLIN | (uint32_t)EPOLLOUT | (uint32_t)EPOLLET)

/* gRPC sends 260 at once at most; of more only so many would be sent, and the rest after them. */
#define BUFFERS_MAX 300

/* A connection that sends more than this at once may well fill the socket again. */
#define SMALL_BYTES 4096

/* By one thread at a time: gRPC has an order for what it does with a socket. The thread sanitizer
 * does not see that order (loop_state.h). */
struct rpc_socket {
    struct epoll_event added; /* as gRPC added it */
    bool reports_room;        /* the kernel wakes gRPC when there is room */
    struct rpc_window_updates updates;
    uint8_t due[RPC_WINDOW_UPDATES_MAX * RPC_WINDOW_UPDATE_BYTES]; /* to be sent first */
    size_t due_bytes;
};

static atomic_int grpc_set = -1;
static _Atomic(struct rpc_socket *) by_descriptor[DESCRIPTORS_MAX];

void rpc_sockets_use(int epoll_set)
{
    atomic_store(&grpc_set, epoll_set);
}

static struct rpc_socket *socket_of(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX ? atomic_load(&by_descriptor[fd]) : NULL;
}

void rpc_sockets_closing(int fd)
{
    if (socket_of(fd) != NULL) {
        struct rpc_socket *closed = atomic_exchange(&by_descriptor[fd], NULL);
        RPC_TAG_ACQUIRE(closed);
        free(closed);
    }
}

int rpc_sockets_control(int epoll_set, int how, int fd, struct epoll_event *event)
{
    int done = (int)syscall(SYS_epoll_ctl, epoll_set, how, fd, event);
    bool is_grpc = done == 0 && how == EPOLL_CTL_ADD && epoll_set == atomic_load(&grpc_set) &&
                   (event->events & WANTED) == WANTED;
    if (is_grpc && fd >= 0 && fd < DESCRIPTORS_MAX) {
        rpc_sockets_closing(fd);
        struct rpc_socket *added = calloc(1, sizeof *added); /* without memory as gRPC has it */
        if (added != NULL) {
            added->added = *event;
            added->reports_room = true;
            RPC_TAG_RELEASE(added);
            atomic_store(&by_descriptor[fd], added);
        }
    }
    return done;
}

/* What is there already is reported at once. */
static void report_room(struct rpc_socket *socket, int fd, bool reports)
{
    struct epoll_event event = socket->added;
    if (!reports) {
        event.events &= ~(uint32_t)EPOLLOUT;
    }
    if (syscall(SYS_epoll_ctl, atomic_load(&grpc_set), EPOLL_CTL_MOD, fd, &event) == 0) {
        socket->reports_room = reports;
    }
}

/* What is due, then the message. Counts only the message; while not all that was due is sent, the
 * socket is full. */
static ssize_t send_behind_due(
    struct rpc_socket *socket, int fd, const struct msghdr *message, int flags)
{
    struct iovec buffers[1 + BUFFERS_MAX];
    struct msghdr whole = *message;
    size_t count = message->msg_iovlen < BUFFERS_MAX ? message->msg_iovlen : BUFFERS_MAX;
    buffers[0] = (struct iovec){.iov_base = socket->due, .iov_len = socket->due_bytes};
    memcpy(buffers + 1, message->msg_iov, count * sizeof *buffers);
    whole.msg_iov = buffers;
    whole.msg_iovlen = 1 + count;
    ssize_t sent = syscall(SYS_sendmsg, fd, &whole, flags);
    if (sent <= 0) {
        return sent;
    }
    size_t of_due = (size_t)sent < socket->due_bytes ? (size_t)sent : socket->due_bytes;
    socket->due_bytes -= of_due;
    memmove(socket->due, socket->due + of_due, socket->due_bytes);
    if ((size_t)sent == of_due) {
        errno = EAGAIN;
        return -1;
    }
    return sent - (ssize_t)of_due;
}

static size_t bytes_of(const struct msghdr *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        bytes += message->msg_iov[i].iov_len;
    }
    return bytes;
}

static ssize_t socket_send(
    struct rpc_socket *socket, int fd, const struct msghdr *message, int flags)
{
    size_t whole = bytes_of(message);
    if (socket->due_bytes == 0) {
        if (rpc_window_updates_keep(&socket->updates, message->msg_iov, message->msg_iovlen)) {
            return (ssize_t)whole;
        }
        socket->due_bytes = rpc_window_updates_take(&socket->updates, socket->due);
    }
    ssize_t sent = socket->due_bytes > 0 ? send_behind_due(socket, fd, message, flags)
                                         : syscall(SYS_sendmsg, fd, message, flags);
    if (sent > 0) {
        rpc_window_updates_sent(
            &socket->updates, message->msg_iov, message->msg_iovlen, (size_t)sent);
    }
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        report_room(socket, fd, true);
        errno = EAGAIN;
    } else if (socket->reports_room && sent == (ssize_t)whole && whole <= SMALL_BYTES) {
        report_room(socket, fd, false);
    }
    return sent;
}

ssize_t rpc_sockets_send(int fd, const struct msghdr *message, int flags)
{
    struct rpc_socket *socket = socket_of(fd);
    if (socket == NULL) {
        return syscall(SYS_sendmsg, fd, message, flags);
    }
    RPC_TAG_ACQUIRE(socket);
    ssize_t sent = socket_send(socket, fd, message, flags);
    RPC_TAG_RELEASE(socket);
    return sent;
}
