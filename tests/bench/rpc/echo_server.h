/* SPDX-License-Identifier: Apache-2.0
 * The echo as common/rpc's server. */
#ifndef CADRE_BENCH_ECHO_SERVER_H
#define CADRE_BENCH_ECHO_SERVER_H

#include "common/rpc/tls.h"

/* Serves on the loop, on a loopback port and, where `unix_address` is not NULL, there too. Returns
 * the port; ends the program when it cannot. */
int echo_server_open(struct rpc_loop *loop, const char *unix_address, struct rpc_tls *tls);

#endif
