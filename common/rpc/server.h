/* SPDX-License-Identifier: Apache-2.0
 * A server: a table of methods, the addresses it listens on, and an orderly end. */
#ifndef CADRE_RPC_SERVER_H
#define CADRE_RPC_SERVER_H

#include "common/rpc/call.h"
#include "common/rpc/loop.h"

#include <sys/types.h>

struct rpc_server;
struct rpc_tls;

/* What a method does with its calls. Each may be NULL. `user` is the method's. Order: on_open, then
 * any of the middle ones, on_closed exactly once and last. After rpc_call_finish() or
 * rpc_call_abort() only on_drained and on_closed follow. */
struct rpc_server_ops {
    /* The call came in; metadata and peer can be looked at. Nothing was read yet. */
    void (*on_open)(struct rpc_call *call, void *user);
    /* One message, contiguous, at most request_bytes_max long. `data` is valid until return.
     * Never NULL, also when empty. */
    void (*on_message)(struct rpc_call *call, const void *data, size_t length, void *user);
    /* The client sends no more; the call waits for rpc_call_finish(). Only for methods whose client
     * streams. */
    void (*on_half_close)(struct rpc_call *call, void *user);
    /* The send queue became empty. */
    void (*on_drained)(struct rpc_call *call, void *user);
    /* The server began to shut down: a long-lived stream ends itself here, or is aborted at the end
     * of the grace. */
    void (*on_shutdown)(struct rpc_call *call, void *user);
    /* The call has ended and its pointer is not valid any more. `cancelled` when the client
     * disconnected or cancelled, its deadline passed, or this end aborted; false when the
     * finishing status was sent. */
    void (*on_closed)(struct rpc_call *call, bool cancelled, void *user);
};

struct rpc_method {
    const char *path; /* "/package.Service/Method" */
    bool client_streams, server_streams;
    size_t request_bytes_max; /* a longer message is answered with RESOURCE_EXHAUSTED */
    const struct rpc_server_ops *ops;
    void *user;
};

/* Whether `call` may use `method`: OK, or the status and `error` of the refusal. */
typedef cadre_status rpc_authorize_fn(
    struct rpc_call *call, const char *method, void *user, struct cadre_error *error);

/* Zero means the default that is named. */
struct rpc_server_options {
    /* The table is copied; paths, ops and users stay the program's and outlive the server. */
    const struct rpc_method *methods;
    size_t method_count;
    size_t calls_max; /* live calls of all clients; 16384. More: RESOURCE_EXHAUSTED */
    size_t streams_per_connection_max; /* 512; a client delays the calls beyond it */
    size_t metadata_bytes_max;         /* per call; 16 KiB. More ends that client's connection */
    size_t send_queue_bytes_max;       /* per call; 4 MiB */
    struct rpc_keepalive keepalive;
    struct rpc_tls *tls; /* of TCP addresses; outlives the server. NULL: loopback only, in plain */
    rpc_authorize_fn *authorize; /* called once a call, before its on_open; NULL: all clients may
                                  * call all methods */
    void *authorize_user;
    /* NULL, or called within rpc_call_finish() for a call that was not refused: the last moment for
     * rpc_call_set_trailer(). `path` is the method's. */
    void (*on_finish)(struct rpc_call *call, const char *path, void *user);
    void *on_finish_user;
    /* NULL, or called for each call that ended, after its on_closed: `path` is the method's of
     * the table, NULL of a call that was refused before it had one; CANCELLED: the client
     * disconnected, or its connection broke. */
    void (*on_call_end)(void *user, const char *path, cadre_status status);
    void *on_call_end_user;
};

/* Makes a server that listens nowhere yet. INVALID_ARGUMENT for a path that is not "/x/y" or is
 * there twice. */
cadre_status rpc_server_open(struct rpc_loop *loop, const struct rpc_server_options *options,
    struct rpc_server **ret_server, struct cadre_error *error);

/* Who may connect to a Unix socket: its owner (0600), or the group too (0660). */
struct rpc_socket_access {
    bool group_may_connect;
    gid_t group;
};

/* Listens on "unix:/path", "127.0.0.1:PORT", "localhost:PORT" or "[::1]:PORT", with TLS on any
 * ADDRESS:PORT ("0.0.0.0" and "[::]" mean all); port 0 chooses one. Several times, and before
 * rpc_server_start(). `ret_port` (may be NULL) gets the port, 0 for a Unix socket; `access` is
 * for Unix sockets, NULL for the owner only. A socket file on which no server listens any more
 * is replaced. INVALID_ARGUMENT: not an address, or not a loopback one without TLS.
 * ALREADY_EXISTS: a server listens there, or the path is no socket. PERMISSION_DENIED,
 * NOT_FOUND: by the system. */
cadre_status rpc_server_listen(struct rpc_server *server, const char *address,
    const struct rpc_socket_access *access, int *ret_port, struct cadre_error *error);

/* Begins to take calls. */
void rpc_server_start(struct rpc_server *server);

/* Begins the end: listening stops (socket files are removed), new calls are refused, each open
 * call gets on_shutdown. When all calls have ended, or `grace_us` passed and the rest was
 * aborted with UNAVAILABLE, the loop calls on_gone(user) (may be NULL). The server belongs to
 * the loop from here on: do not touch it. */
void rpc_server_shutdown(
    struct rpc_server *server, uint64_t grace_us, rpc_loop_fn *on_gone, void *user);

/* The same at once, without a grace and without on_gone; NULL is fine. */
void rpc_server_close(struct rpc_server *server);

/* The open calls, refused ones included. */
size_t rpc_server_call_count(const struct rpc_server *server);

#endif
