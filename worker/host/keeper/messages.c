/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/keeper/messages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union fd_room {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(sizeof(int) * KEEPER_FDS)];
};

int keeper_send(int socket, const struct keeper_message *packet, const int *fds, size_t fd_count)
{
    struct keeper_message sent_message = *packet;
    sent_message.version = KEEPER_VERSION;
    struct iovec bytes = {.iov_base = &sent_message, .iov_len = sizeof sent_message};
    union fd_room room = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof sent_message ? 0 : errno;
}

static void collect_fds(struct msghdr *message, int ret_fds[KEEPER_FDS])
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS) {
            size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(ret_fds, CMSG_DATA(at), sizeof(int) * (count < KEEPER_FDS ? count : KEEPER_FDS));
        }
    }
}

static int keeper_refuse(int errnum, int ret_fds[KEEPER_FDS])
{
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (ret_fds[i] >= 0) {
            close(ret_fds[i]);
            ret_fds[i] = -1;
        }
    }
    return errnum;
}

int keeper_receive(int socket, struct keeper_message *ret_packet, int ret_fds[KEEPER_FDS])
{
    struct iovec bytes = {.iov_base = ret_packet, .iov_len = sizeof *ret_packet};
    union fd_room room = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof room.bytes};
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        ret_fds[i] = -1;
    }
    ssize_t got;
    do {
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? EAGAIN : EPIPE;
    }
    collect_fds(&message, ret_fds);
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        return keeper_refuse(EMFILE, ret_fds);
    }
    if (got != (ssize_t)sizeof *ret_packet || ret_packet->version != KEEPER_VERSION) {
        return keeper_refuse(EPROTO, ret_fds);
    }
    return 0;
}
