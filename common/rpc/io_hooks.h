/* SPDX-License-Identifier: Apache-2.0
 * The functions of the system that gRPC reads and writes with; it has no hook of its own, so they
 * are replaced in each program. Its sockets are handled as sockets.h says: epoll_ctl(), sendmsg().
 * The bytes between a server and its clients pass through http2_filter.h: recvmsg() and sendmsg()
 * of what accept4() gave it, SSL_read() and SSL_write() of servers. Other uses of these functions
 * in the process behave as without it. */
#ifndef CADRE_RPC_IO_HOOKS_H
#define CADRE_RPC_IO_HOOKS_H

#include <stddef.h>

/* The set in which gRPC waits, or -1: unknown. */
void rpc_io_hooks_use(int epoll_set);

/* The longest message that a server of this process takes; the longest of all calls counts. Before
 * the server listens. */
void rpc_io_hooks_limit(size_t message_bytes_max);

/* A connection was accepted. */
void rpc_io_hooks_watch(int fd);

/* For main() of a server: gRPC's C core closes a listener for ever when accept() finds no free
 * descriptor. Where this is linked in, accept4() refuses such a connection instead, by a
 * descriptor that is kept for that, and the listener stays. */

/* Keeps the descriptor. Before the first server; without it accept4() is the system's. */
void rpc_accept_reserve_fd(void);

#endif
