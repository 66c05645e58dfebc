/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: the server as its calls and its listeners see it. */
#ifndef CADRE_RPC_SERVER_STATE_H
#define CADRE_RPC_SERVER_STATE_H

#include <sys/stat.h>

#include "common/rpc/address.h"
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
    void (*on_finish)(struct rpc_call *call, const char *path, void *user);
    void *on_finish_user;
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

/* Inside common/rpc only: the file of a Unix socket that a server listens on, from the check
 * that no other server does to its removal. */

struct rpc_socket_file {
    struct rpc_socket_file *next;
    char path[sizeof((struct sockaddr_un){0}.sun_path)];
    int folder_fd;    /* locked between begin and end: two servers that start at once do not remove
                         each other */
    mode_t old_umask; /* between begin and end: no client can connect before the mode is right */
    dev_t device;     /* which file is ours */
    ino_t inode;
};

/* Makes way for a socket at the address: locks its folder, and removes a socket that no server
 * listens on. ALREADY_EXISTS when one does, or when the path is something else. To be followed by
 * the bind and rpc_socket_file_end(). */
cadre_status rpc_socket_file_begin(struct rpc_socket_file *ret_socket_file,
    const struct rpc_address *address, struct cadre_error *error);

/* After the bind: sets who may connect and records which file it is. With `bound` false it only
 * releases the lock. */
cadre_status rpc_socket_file_end(struct rpc_socket_file *socket_file, bool bound,
    const struct rpc_socket_access *access, struct cadre_error *error);

/* Removes the file if it is still the one that was bound. */
void rpc_socket_file_remove(const struct rpc_socket_file *socket_file);

#endif
