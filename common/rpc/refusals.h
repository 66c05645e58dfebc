/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: tells of handshakes that a server refused, with the peer's address. */
#ifndef CADRE_RPC_REFUSALS_H
#define CADRE_RPC_REFUSALS_H

#include "common/rpc/loop.h"
#include "common/rpc/tls.h"

/* gRPC writes a line when a handshake fails, but not whose. The connection that is gone a moment
 * later was it. One server of a process is watched: the first that asks; NULL for the others. */
struct rpc_refusals;
struct rpc_refusals *rpc_refusals_open(struct rpc_loop *loop, struct rpc_tls *tls);
void rpc_refusals_add_port(struct rpc_refusals *refusals, int port);
void rpc_refusals_close(struct rpc_refusals *refusals);

/* A line of gRPC's log, from any thread. */
void rpc_refusals_see(const char *line);

#endif
