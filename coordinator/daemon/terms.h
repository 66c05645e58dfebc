/* SPDX-License-Identifier: Apache-2.0
 * No worker serves two coordinators that run with copies of one ledger. */
#ifndef CADRE_COORDINATOR_DAEMON_TERMS_H
#define CADRE_COORDINATOR_DAEMON_TERMS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* Whether a worker with this hello may be served: FAILED_PRECONDITION when it has served a later
 * start of this cluster's coordinator, or a start of the same term with another nonce. */
cadre_status terms_check(struct daemon *daemon, struct link_id link,
    const struct agent_hello *hello, struct cadre_error *error);

#endif
