/* SPDX-License-Identifier: Apache-2.0
 * Mutual TLS of servers and channels: the files, read again when they change, and the identity
 * of the other end of a call.
 * Each end checks that the other one's certificate is of the cluster's CA and valid now; a
 * channel demands the role coordinator of its server. No end checks host names: a server with a
 * coordinator's key of this cluster is its coordinator on any host, and a certificate need not
 * be made again when a host moves. */
#ifndef CADRE_RPC_TLS_H
#define CADRE_RPC_TLS_H

#include "common/rpc/call.h"
#include "common/rpc/loop.h"
#include "common/rpc/tls_options.h"
#include "common/tls/material.h"

struct rpc_tls;

enum rpc_tls_event {
    RPC_TLS_RELOADED,      /* new files are in use, for connections from here on */
    RPC_TLS_RELOAD_FAILED, /* new files are wrong; the old ones stay in use */
    RPC_TLS_EXPIRES,       /* less than 30 days left: reported once a day; each hour on the last */
    RPC_TLS_EXPIRED,
    RPC_TLS_REFUSED /* a server refused a handshake; once per peer and minute */
};

/* `text` is a sentence for the log, valid until return. Called from the loop. */
typedef void rpc_tls_event_fn(enum rpc_tls_event event, const char *text, void *user);

/* Writes it as log_event() of the subsystem "tls": the callback that daemons use. */
void rpc_tls_log(enum rpc_tls_event event, const char *text, void *user);

/* Reads the files. *ret_tls is NULL, with OK, when the options name nothing: no TLS then.
 * `role`, unless it is TLS_ROLE_NONE, is the role that the certificate must have.
 * INVALID_ARGUMENT when the options name some files but not all three; else as
 * tls_material_read(). `on_event` may be NULL. The files are checked every second while the loop
 * runs and read when they were changed. */
cadre_status rpc_tls_open(struct rpc_loop *loop, const struct rpc_tls_options *options,
    enum tls_role role, rpc_tls_event_fn *on_event, void *user, struct rpc_tls **ret_tls,
    struct cadre_error *error);

/* The same for channels to servers that are not Cadre's: such a server's certificate is to be of
 * the CA in `options->ca` and to name the host that is connected to. `cert` and `key` are given
 * both or not at all; `dir` is not used. *ret_tls is NULL, with OK, without a CA: no TLS then. */
cadre_status rpc_tls_open_foreign(struct rpc_loop *loop, const struct rpc_tls_options *options,
    rpc_tls_event_fn *on_event, void *user, struct rpc_tls **ret_tls, struct cadre_error *error);

/* Reads the files again now, as SIGHUP does: reports RELOADED or RELOAD_FAILED. NULL is fine. */
void rpc_tls_reload(struct rpc_tls *tls);

/* Before rpc_loop_close(), when the servers and channels that use it were closed. NULL is fine. */
void rpc_tls_close(struct rpc_tls *tls);

/* What is in use now; valid until the loop runs again. */
const struct tls_material *rpc_tls_material(const struct rpc_tls *tls);

/* Seconds until the certificate in use, or its CA, expires; negative afterwards. */
int64_t rpc_tls_expires_in_s(const struct rpc_tls *tls);

/* Grows with every reload. */
uint64_t rpc_tls_generation(const struct rpc_tls *tls);

/* Who is at the other end of a server's call: TLS_ROLE_LOCAL on Unix sockets and on loopback
 * without TLS. Valid as long as the call. */
const struct tls_identity *rpc_call_identity(const struct rpc_call *call);

/* When the certificate ends that the client of a server's call showed, as Unix time; UINT64_MAX: it
 * showed none, which is TLS_ROLE_LOCAL. */
uint64_t rpc_call_certificate_ends_s(const struct rpc_call *call);

#endif
