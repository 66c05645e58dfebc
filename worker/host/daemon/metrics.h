/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http, if any. */
#ifndef CADRE_WORKER_DAEMON_METRICS_H
#define CADRE_WORKER_DAEMON_METRICS_H

#include "common/base/error.h"
#include "common/rpc/tls.h"

struct daemon;

/* Opens the HTTP server of --http, if any. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
/* Closes the HTTP server; nothing without --http. */
void metrics_close(struct daemon *daemon);
/* Logs an event of the TLS files; the HTTP server uses new ones, too. */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);

#endif
