/* SPDX-License-Identifier: Apache-2.0
 * What /metrics has of several coordinators that share a ledger. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SHARED_METRICS_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SHARED_METRICS_H

#include "common/http/exposition.h"
#include "coordinator/daemon/base/daemon.h"

/* Adds the families; without --ha only the one that says whether this coordinator leads. */
void shared_metrics_show(struct daemon *daemon, struct exposition *out);

#endif
