/* SPDX-License-Identifier: Apache-2.0
 * The client of every gRPC echo here, on common/rpc: the same for all servers. */
#ifndef CADRE_BENCH_ECHO_CLIENT_H
#define CADRE_BENCH_ECHO_CLIENT_H

#include "rounds.h"

#include "common/rpc/tls.h"

#define ECHO_UNARY "/bench.Echo/Unary"
#define ECHO_CHAT  "/bench.Echo/Chat"

/* Keeps `concurrency` messages under way on one new connection until `end_us`: as unary calls, or
 * on as many streams that stay open. */
void echo_drive(struct rpc_loop *loop, const char *address, struct rpc_tls *tls, bool streams,
    int concurrency, uint64_t end_us, struct samples *samples);

/* Until `end_us`, and at least once: opens a channel, sends a unary message, closes the channel
 * when it is back. */
void echo_join(struct rpc_loop *loop, const char *address, struct rpc_tls *tls, uint64_t end_us,
    struct samples *samples);

#endif
