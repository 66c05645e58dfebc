/* SPDX-License-Identifier: Apache-2.0
 * The sockets that gRPC waits for, and how its bytes are sent on them: without writes that only
 * open a window (window_updates.h), and without waking it each time that the other end has read.
 * gRPC asks for an event whenever a socket has room; a Unix socket has one after every message.
 * Here there is one only when a write did not fit. Called by io_hooks.c in place of the system's
 * functions, from any thread, for one socket by one thread at a time. */
#ifndef CADRE_RPC_SOCKETS_H
#define CADRE_RPC_SOCKETS_H

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The set in which gRPC waits; the sockets that are added to it are handled here. */
void rpc_sockets_use(int epoll_set);

/* As epoll_ctl(), sendmsg() and close(); the latter before the descriptor is closed. */
int rpc_sockets_control(int epoll_set, int how, int fd, struct epoll_event *event);
/* See rpc_sockets_control(). */
ssize_t rpc_sockets_send(int fd, const struct msghdr *message, int flags);
/* See rpc_sockets_control(). */
void rpc_sockets_closing(int fd);

#endif
