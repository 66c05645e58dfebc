/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: reports handshakes that a server refused, with the peer's address. */
#ifndef CADRE_RPC_HANDSHAKE_LOG_H
#define CADRE_RPC_HANDSHAKE_LOG_H

#include "common/rpc/loop.h"
#include "common/rpc/tls.h"

/* gRPC's log names no peer when a handshake fails. The peer is the one whose connection has
 * disappeared a moment after. One server of a process is watched: the first; open returns NULL
 * for the others. */
struct rpc_handshake_log;
/* Starts to watch; to be closed before the loop. NULL: another server is watched. */
struct rpc_handshake_log *rpc_handshake_log_open(struct rpc_loop *loop, struct rpc_tls *tls);
/* Watches the connections to this port of the server, too. */
void rpc_handshake_log_add_port(struct rpc_handshake_log *handshake_log, int port);
/* Stops; NULL is fine. */
void rpc_handshake_log_close(struct rpc_handshake_log *handshake_log);

/* Takes a line of gRPC's log, from any thread. */
void rpc_handshake_log_receive(const char *text_line);

#endif
