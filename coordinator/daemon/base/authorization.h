/* SPDX-License-Identifier: Apache-2.0
 * Which role may call which method: one table, and nothing else decides. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_AUTHORIZATION_H
#define CADRE_COORDINATOR_DAEMON_BASE_AUTHORIZATION_H

#include "common/tls/identity.h"
#include "coordinator/engine/engine.h"

/* PERMISSION_DENIED names the role, the name and the method. A method that the table lacks is
 * refused to all but TLS_ROLE_LOCAL. */
cadre_status authorize(
    const struct tls_identity *identity, const char *method, struct cadre_error *error);

/* ---- No worker serves two coordinators that run with copies of one ledger ---- */

struct daemon;

/* Whether a worker with this hello may be served: FAILED_PRECONDITION when it has served a later
 * start of this cluster's coordinator, or a start of the same term with another nonce. With a
 * shared log, UNAVAILABLE when it has seen a later term, or an entry that this coordinator does not
 * know: daemon->hello_ahead() was called. */
cadre_status terms_check(struct daemon *daemon, struct link_id link,
    const struct agent_hello *hello, struct cadre_error *error);

#endif
