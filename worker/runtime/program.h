/* SPDX-License-Identifier: Apache-2.0
 * What cadre_init found out, and the session it opened. */
#ifndef CADRE_RUNTIME_PROGRAM_H
#define CADRE_RUNTIME_PROGRAM_H

#include "worker/runtime/environment.h"
#include "worker/runtime/session.h"

/* NULL before cadre_init. */
const struct environment *program_environment(void);

/* The session for a new strategy, which becomes the caller's: the one that cadre_init connected, or
 * a new coordinator inside the program. A daemon's session is given once: FAILED_PRECONDITION after
 * that, since the job's end was reported by it. */
cadre_status program_take_session(struct session **ret_session, struct cadre_error *error);

#endif
