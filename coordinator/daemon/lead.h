/* SPDX-License-Identifier: Apache-2.0
 * The beginning of a coordinator that leads. */
#ifndef CADRE_COORDINATOR_DAEMON_LEAD_H
#define CADRE_COORDINATOR_DAEMON_LEAD_H

#include "coordinator/engine/engine.h"

struct daemon;

/* Opens the engine over the store, which is the engine's from then on (daemon->engine is not NULL),
 * also when this fails afterwards, and what jobs have in the contents' folder. `log`: NULL, or one
 * that several coordinators share. */
cadre_status daemon_lead(struct daemon *daemon, struct store *store, const struct engine_log *log,
    struct cadre_error *error);

/* Opens an engine that shows what is in the store, for calls that read while another coordinator
 * leads. */
cadre_status daemon_read(struct daemon *daemon, struct store *store, struct engine **ret_engine,
    struct cadre_error *error);

#endif
