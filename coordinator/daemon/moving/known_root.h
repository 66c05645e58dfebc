/* SPDX-License-Identifier: Apache-2.0
 * STATE/contents: where the contents lay with which a coordinator that leads alone was started
 * last. One that is started with others, by another --contents, may lack what the jobs of its
 * ledger need. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_KNOWN_ROOT_H
#define CADRE_COORDINATOR_DAEMON_MOVING_KNOWN_ROOT_H

#include "common/base/error.h"

struct daemon;

/* Over an open engine, before contents are used. FAILED_PRECONDITION: they have nothing of
 * what the ledger names; UNAVAILABLE: they lie in a store of which that is not known yet, and which
 * is away. */
cadre_status known_root_check(struct daemon *daemon, struct cadre_error *error);
/* The contents were copied to the --contents of now. */
cadre_status known_root_note(const struct daemon *daemon, struct cadre_error *error);

#endif
