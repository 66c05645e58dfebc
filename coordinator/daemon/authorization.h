/* SPDX-License-Identifier: Apache-2.0
 * Which role may call which method: one table, and nothing else decides. */
#ifndef CADRE_COORDINATOR_DAEMON_AUTHORIZATION_H
#define CADRE_COORDINATOR_DAEMON_AUTHORIZATION_H

#include "common/tls/identity.h"

/* PERMISSION_DENIED names the role, the name and the method. A method that the table lacks is
 * refused to all but TLS_ROLE_LOCAL. */
cadre_status authorize(
    const struct tls_identity *identity, const char *method, struct cadre_error *error);

#endif
