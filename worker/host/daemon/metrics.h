/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http, if any. */
#ifndef CADRE_WORKER_DAEMON_METRICS_H
#define CADRE_WORKER_DAEMON_METRICS_H

#include "common/base/error.h"
#include "common/rpc/tls.h"

struct daemon;

/* The pages of --http, if any. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
void metrics_close(struct daemon *daemon);
/* What is known of the TLS files goes to the log; new ones are the pages', too. */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);

#endif
