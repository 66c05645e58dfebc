/* SPDX-License-Identifier: Apache-2.0
 * Clients that watch jobs: a change marks the job, and at the end of the turn its watchers receive
 * it. */
#ifndef CADRE_COORDINATOR_DAEMON_WATCH_H
#define CADRE_COORDINATOR_DAEMON_WATCH_H

#include "coordinator/engine/engine.h"

struct daemon;

/* Marks the job. */
void watch_job_changed(struct daemon *daemon, struct job_id job);
/* Marks all jobs that have not ended. */
void watch_all_changed(struct daemon *daemon);
/* Notes that a message came which may commit steps of some job. */
void watch_steps_committed(struct daemon *daemon);
/* Sends what is marked, at the end of a turn. */
void watch_flush(struct daemon *daemon);

#endif
