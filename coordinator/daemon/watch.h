/* SPDX-License-Identifier: Apache-2.0
 * Clients who watch jobs: whoever changes one marks it, and they are told at the end of the turn.
 */
#ifndef CADRE_COORDINATOR_DAEMON_WATCH_H
#define CADRE_COORDINATOR_DAEMON_WATCH_H

#include "coordinator/engine/engine.h"

struct daemon;

void watch_job_changed(struct daemon *daemon, struct job_id job);
/* All jobs that have not ended. */
void watch_all_changed(struct daemon *daemon);
void watch_steps_committed(struct daemon *daemon); /* a message of the kind that commits steps */
void watch_flush(struct daemon *daemon);           /* at the end of a turn */

#endif
