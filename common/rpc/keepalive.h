/* SPDX-License-Identifier: Apache-2.0
 * How soon a silent peer is taken for dead. Both ends are set from here: pings that one end sends
 * faster than the other allows would end the connection. */
#ifndef CADRE_RPC_KEEPALIVE_H
#define CADRE_RPC_KEEPALIVE_H

#include <stdint.h>

#define RPC_KEEPALIVE_IDLE_US    UINT64_C(2000000)
#define RPC_KEEPALIVE_TIMEOUT_US UINT64_C(5000000)

/* A peer is given up `idle_us` + `timeout_us` after its last byte. The timeout must be longer than
 * the longest legal stall of the peer's loop. Zeros mean the two defaults above. */
struct rpc_keepalive {
    uint64_t idle_us;
    uint64_t timeout_us;
};

#endif
