/* SPDX-License-Identifier: Apache-2.0
 * grpc.health.v1: reports to probes whether the server and its services take calls. */
#ifndef CADRE_RPC_STANDARD_SERVICES_H
#define CADRE_RPC_STANDARD_SERVICES_H

#include "common/rpc/server.h"

#define RPC_HEALTH_METHODS      2
#define RPC_HEALTH_SERVICES_MAX 16
#define RPC_HEALTH_NAME_MAX     127

struct rpc_health;

/* Has one service at first: "", the server as a whole, not serving. */
struct rpc_health *rpc_health_open(void);

/* To be called after the on_gone of its server; NULL is fine. */
void rpc_health_close(struct rpc_health *health);

/* Writes the RPC_HEALTH_METHODS entries of the server's table. */
void rpc_health_methods(struct rpc_health *health, struct rpc_method *ret_methods);

/* Sets whether `service` ("" or "package.Service") takes calls, and sends that to the clients
 * that watch it. A new name is added; RESOURCE_EXHAUSTED beyond RPC_HEALTH_SERVICES_MAX,
 * INVALID_ARGUMENT for a name that is too long. */
cadre_status rpc_health_set(
    struct rpc_health *health, const char *service, bool serving, struct cadre_error *error);

/* grpc.reflection.v1 and v1alpha: describes to generic tools (grpcurl, grpc_cli) what a server
 * serves, so that they need no .proto files. */

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
