/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http: /metrics and /healthz. */
#ifndef CADRE_COORDINATOR_DAEMON_METRICS_H
#define CADRE_COORDINATOR_DAEMON_METRICS_H

#include "common/base/error.h"
#include "common/rpc/tls.h"

struct daemon;

/* Opens the table of counted calls, and the pages if --http is given. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
/* Closes both; also after a failed metrics_open(). */
void metrics_close(struct daemon *daemon);
/* Logs an event of the TLS files; new files are used by the pages, too. `user`: the daemon. */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);
/* Counts a call: see server_open(). `user`: the daemon. */
void metrics_call_end(void *user, const char *path, cadre_status status);

#endif
