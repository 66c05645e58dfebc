/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http: /metrics and /healthz. */
#ifndef CADRE_COORDINATOR_DAEMON_METRICS_H
#define CADRE_COORDINATOR_DAEMON_METRICS_H

#include "common/base/error.h"
#include "common/rpc/tls.h"

struct daemon;

/* The table of methods' calls that ended, and the pages, if any. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
void metrics_close(struct daemon *daemon);
/* What is known of the TLS files goes to the log; new ones are the pages', too. `user`: the daemon.
 */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);
/* Counts a call: see server_open(). `user`: the daemon. */
void metrics_call_end(void *user, const char *path, cadre_status status);

#endif
