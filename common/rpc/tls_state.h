/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: TLS as servers and channels use it. */
#ifndef CADRE_RPC_TLS_STATE_H
#define CADRE_RPC_TLS_STATE_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "common/rpc/address.h"
#include "common/rpc/loop.h"
#include "common/rpc/tls.h"

/* Adds a user: the object is freed when it was closed and its last user was dropped. */
void rpc_tls_ref(struct rpc_tls *tls);
/* Drops a user. */
void rpc_tls_unref(struct rpc_tls *tls);

/* It is for servers that are not Cadre's. */
bool rpc_tls_is_foreign(const struct rpc_tls *tls);

/* The path of the certificate's file; "" without one. */
const char *rpc_tls_cert_file(const struct rpc_tls *tls);
/* The path of the CA's file. */
const char *rpc_tls_ca_file(const struct rpc_tls *tls);

/* Reports RPC_TLS_REFUSED with this text. */
void rpc_tls_report_refused(struct rpc_tls *tls, const char *text);

/* What one port of a server is bound with; gRPC fetches the files in use at each handshake.
 * `port` outlives the server. */
struct rpc_tls_port {
    struct rpc_tls_port *next;
    struct rpc_tls *tls;
    uint64_t generation; /* the generation that gRPC got last; 0: none */
};
/* The credentials of a port; the caller's to release. */
grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls_port *port);

/* For one connection of a channel, with the files in use now. */
grpc_channel_credentials *rpc_tls_channel_credentials(const struct rpc_tls *tls);

/* The identity of the client of a server's call; `tls` is the server's, may be NULL. */
void rpc_tls_identify(
    grpc_call *call, const struct rpc_tls *tls, struct tls_identity *ret_identity);

/* rpc_call_certificate_ends_s() of its call. */
uint64_t rpc_tls_peer_ends_s(grpc_call *call);

/* Inside common/rpc only: reports handshakes that a server refused, with the peer's address. */

/* gRPC's log names no peer when a handshake fails. The peer is the one whose connection has
 * disappeared a moment after. One server of a process is watched: the first; open returns NULL
 * for the others. */
struct rpc_handshake_log;
/* Starts to watch; to be closed before the loop. NULL: another server is watched. */
struct rpc_handshake_log *rpc_handshake_log_open(struct rpc_loop *loop, struct rpc_tls *tls);
/* Watches the connections to this port of the server, too. */
void rpc_handshake_log_add_port(struct rpc_handshake_log *handshake_log, int port);
/* Stops; NULL is fine. */
void rpc_handshake_log_close(struct rpc_handshake_log *handshake_log);

/* Takes a line of gRPC's log, from any thread. */
void rpc_handshake_log_receive(const char *text_line);

#endif
