/* SPDX-License-Identifier: Apache-2.0
 * Calls of clients that watch jobs; and the log of jobs. */
#ifndef CADRE_COORDINATOR_DAEMON_JOBS_H
#define CADRE_COORDINATOR_DAEMON_JOBS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* ---- watch.c: clients that watch jobs ---- */

/* Marks the job: its watchers receive it at the end of the turn. */
void watch_job_changed(struct daemon *daemon, struct job_id job);
/* Marks all jobs that have not ended. */
void watch_all_changed(struct daemon *daemon);
/* Notes that a message came which may commit steps of some job. */
void watch_steps_committed(struct daemon *daemon);
/* Sends what is marked, at the end of a turn. */
void watch_flush(struct daemon *daemon);

/* ---- job_log.c: logs the states and generations of jobs ---- */

/* Logs the job's state and generation if they are new. */
void job_log_changed(struct daemon *daemon, struct job_id job);
/* Notes a job of before this start, without logging it. */
void job_log_known(struct daemon *daemon, const struct job_info *info);
/* Frees what was noted. */
void job_log_close(struct daemon *daemon);

#endif
