/* SPDX-License-Identifier: Apache-2.0
 * After what time a silent peer counts as dead. Both ends are set from here, because pings that
 * one end sends faster than the other allows end the connection. */
#ifndef CADRE_RPC_KEEPALIVE_H
#define CADRE_RPC_KEEPALIVE_H

#include <stdint.h>

/* Of a channel. */
#define RPC_KEEPALIVE_IDLE_US    UINT64_C(2000000)
#define RPC_KEEPALIVE_TIMEOUT_US UINT64_C(5000000)

/* Of a server. Thousands of clients that connect at once keep its one thread busy for many
 * seconds, in which answers to its own pings lie unread: with a shorter time it would cut
 * clients that it has just accepted, and all would connect again, for ever. */
#define RPC_KEEPALIVE_SERVER_IDLE_US    UINT64_C(20000000)
#define RPC_KEEPALIVE_SERVER_TIMEOUT_US UINT64_C(40000000)

/* Of a channel whose stream has heartbeats: a host that vanished does not acknowledge these,
 * which TCP notices within the timeout, whatever the idle time. So the idle time can be as long
 * as a server may take to answer at all. */
#define RPC_KEEPALIVE_HEARTBEATS_IDLE_US UINT64_C(60000000)

/* A peer is given up `idle_us` + `timeout_us` after its last byte, or `timeout_us` after the first
 * byte that its host does not acknowledge (TCP_USER_TIMEOUT). The two together must be longer than
 * the longest legal stall of the peer's loop. Zeros mean the defaults above. */
struct rpc_keepalive {
    uint64_t idle_us;
    uint64_t timeout_us;
};

#endif
