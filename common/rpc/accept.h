/* SPDX-License-Identifier: Apache-2.0
 * For main() of a server: gRPC's C core closes a listener for ever when accept() finds no free
 * descriptor. Where this is linked in, accept4() refuses such a connection instead, by a
 * descriptor that is kept for that, and the listener stays. */
#ifndef CADRE_RPC_ACCEPT_H
#define CADRE_RPC_ACCEPT_H

/* Keeps the descriptor. Before the first server; without it accept4() is the system's. */
void rpc_accept_reserve_fd(void);

#endif
