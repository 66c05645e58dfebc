/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: the server as its calls and its listeners see it. */
#ifndef CADRE_RPC_SERVER_STATE_H
#define CADRE_RPC_SERVER_STATE_H

#include "common/rpc/call_state.h"
#include "common/rpc/server.h"

struct rpc_server_call;
struct rpc_socket_file;
struct rpc_tls_port;
struct rpc_handshake_log;

struct rpc_server {
    struct rpc_loop *loop;
    grpc_server *grpc;
    struct rpc_method *methods;
    size_t method_count;
    size_t calls_max, send_queue_bytes_max;
    void (*on_call_end)(void *user, const char *path, cadre_status status);
    void *on_call_end_user;
    struct rpc_server_call *calls; /* all that are not freed yet */
    size_t call_count;
    struct rpc_socket_file *socket_files; /* the socket files */
    rpc_authorize_fn *authorize;
    void *authorize_user;
    struct rpc_tls *tls;
    struct rpc_tls_port *tls_ports;
    struct rpc_handshake_log *handshake_log;

    struct rpc_request *requests;
    unsigned requests_posted;
    bool started;

    struct rpc_stop *stop; /* from the shutdown on */
};

/* What gRPC hands over for a new call. The metadata array's entries belong to the call. */
struct rpc_incoming {
    grpc_call *grpc;
    grpc_slice path;
    grpc_metadata_array metadata;
};

/* Makes a call of `incoming`, and calls its method's on_open or refuses it. */
void rpc_server_call_open(struct rpc_server *server, struct rpc_incoming *incoming);

/* Calls on_shutdown of the call's method. */
void rpc_server_call_notify_shutdown(struct rpc_server_call *call);

/* The next of the server's calls; NULL behind the last. */
struct rpc_server_call *rpc_server_call_next(struct rpc_server_call *call);
/* The part that both ends share. */
struct rpc_call *rpc_server_call_base(struct rpc_server_call *call);

/* To be called when a call's memory was freed. */
void rpc_server_call_freed(struct rpc_server *server);

#endif
