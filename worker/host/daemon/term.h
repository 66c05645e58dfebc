/* SPDX-License-Identifier: Apache-2.0
 * The start of the coordinator that this worker accepts: no worker serves two that run with
 * copies of one state directory. */
#ifndef CADRE_WORKER_DAEMON_TERM_H
#define CADRE_WORKER_DAEMON_TERM_H

#include "common/base/error.h"
#include "common/model/term.h"

struct daemon;

/* Loads daemon->term, when the agent is open. */
cadre_status term_load(struct daemon *daemon, struct cadre_error *error);
/* Accepts this coordinator from now on. FAILED_PRECONDITION: it is older, another one with the
 * same number, or of another cluster. */
cadre_status term_accept(struct daemon *daemon, const struct term *term, struct cadre_error *error);

#endif
