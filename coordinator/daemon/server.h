/* SPDX-License-Identifier: Apache-2.0
 * The server on every --listen address, with all methods. */
#ifndef CADRE_COORDINATOR_DAEMON_SERVER_H
#define CADRE_COORDINATOR_DAEMON_SERVER_H

#include "common/base/error.h"
#include "common/rpc/tls.h"

struct daemon;

/* Takes calls when it returns OK. on_call_end(daemon, path, status) on the loop when a call ends:
 * `path` is one of server_method(), or an unknown one. */
cadre_status server_open(struct daemon *daemon,
    void (*on_call_end)(void *user, const char *path, cadre_status status),
    struct cadre_error *error);

/* This coordinator leads: by its health, too. */
cadre_status server_note_serving(struct daemon *daemon, struct cadre_error *error);

/* The paths of the methods, i from 0 until NULL. */
const char *server_method(size_t i);

/* ---- The pages of --http: /metrics and /healthz ---- */

/* Opens the table of counted calls, and the pages if --http is given. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
/* Closes both; also after a failed metrics_open(). */
void metrics_close(struct daemon *daemon);
/* Logs an event of the TLS files; new files are used by the pages, too. `user`: the daemon. */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);
/* Counts a call: see server_open(). `user`: the daemon. */
void metrics_call_end(void *user, const char *path, cadre_status status);

#endif
