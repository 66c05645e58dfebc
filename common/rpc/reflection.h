/* SPDX-License-Identifier: Apache-2.0
 * grpc.reflection.v1 and v1alpha: describes to generic tools (grpcurl, grpc_cli) what a server
 * serves, so that they need no .proto files. */
#ifndef CADRE_RPC_REFLECTION_H
#define CADRE_RPC_REFLECTION_H

#include "common/rpc/server.h"

#define RPC_REFLECTION_METHODS 2

struct rpc_reflection;

/* Serves the files, and all services in them, that `set` holds: a serialized
 * google.protobuf.FileDescriptorSet, which must outlive it. INVALID_ARGUMENT: it is none. */
cadre_status rpc_reflection_open(const void *set, size_t size,
    struct rpc_reflection **ret_reflection, struct cadre_error *error);

/* To be called after the on_gone of its server; NULL is fine. */
void rpc_reflection_close(struct rpc_reflection *reflection);

/* Writes the RPC_REFLECTION_METHODS entries of the server's table. */
void rpc_reflection_methods(struct rpc_reflection *reflection, struct rpc_method *ret_methods);

#endif
