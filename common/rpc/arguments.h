/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: gRPC's channel arguments of both ends, in one file so that they fit
 * each other. */
#ifndef CADRE_RPC_ARGUMENTS_H
#define CADRE_RPC_ARGUMENTS_H

#include "common/rpc/call.h"

#include <stdbool.h>
#include <stddef.h>

#include <grpc/grpc.h>

#define RPC_ARGUMENTS_MAX 24

struct rpc_arguments {
    grpc_arg list[RPC_ARGUMENTS_MAX];
    grpc_channel_args args; /* the arguments for gRPC; points into this object */
};

/* The arguments of a server; the limits are those of its options. */
void rpc_arguments_server(struct rpc_arguments *ret_arguments,
    const struct rpc_keepalive *keepalive, size_t message_bytes_max, size_t metadata_bytes_max,
    size_t streams_max);

/* The arguments of a channel; `pings_idle`: a server without a call is pinged, too. */
void rpc_arguments_client(struct rpc_arguments *ret_arguments,
    const struct rpc_keepalive *keepalive, size_t message_bytes_max, size_t metadata_bytes_max,
    bool pings_idle);
/* The name of the server, where it is not that of the address: "localhost:80". It is the caller's,
 * and stays as long as the arguments. */
void rpc_arguments_add_authority(struct rpc_arguments *arguments, char *authority);

#endif
