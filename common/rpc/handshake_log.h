/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: tells of handshakes that a server refused, with the peer's address. */
#ifndef CADRE_RPC_HANDSHAKE_LOG_H
#define CADRE_RPC_HANDSHAKE_LOG_H

#include "common/rpc/loop.h"
#include "common/rpc/tls.h"

/* gRPC writes a line when a handshake fails, but not whose. The connection that is gone a moment
 * later was it. One server of a process is watched: the first that asks; NULL for the others. */
struct rpc_handshake_log;
struct rpc_handshake_log *rpc_handshake_log_open(struct rpc_loop *loop, struct rpc_tls *tls);
void rpc_handshake_log_add_port(struct rpc_handshake_log *handshake_log, int port);
void rpc_handshake_log_close(struct rpc_handshake_log *handshake_log);

/* A line of gRPC's log, from any thread. */
void rpc_handshake_log_line(const char *line);

#endif
