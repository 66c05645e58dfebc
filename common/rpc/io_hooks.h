/* SPDX-License-Identifier: Apache-2.0
 * For main() of a server: where this is linked in, the bytes between gRPC and its clients pass
 * through http2_filter.h. gRPC has no place for that, so the functions are replaced by which it
 * gets them: recvmsg() and sendmsg() of what accept4() gave it, SSL_read() and SSL_write() of
 * servers. Everything else that the process does with these goes on as without it. */
#ifndef CADRE_RPC_IO_HOOKS_H
#define CADRE_RPC_IO_HOOKS_H

#include <stddef.h>

/* The longest message that a server of this process takes; the longest of all calls counts. Before
 * the server listens. */
void rpc_io_hooks_limit(size_t message_bytes_max);

/* A connection was accepted. */
void rpc_io_hooks_watch(int fd);

#endif
