/* SPDX-License-Identifier: Apache-2.0
 * Logs the states and generations of jobs. */
#ifndef CADRE_COORDINATOR_DAEMON_JOB_LOG_H
#define CADRE_COORDINATOR_DAEMON_JOB_LOG_H

#include "coordinator/engine/engine.h"

struct daemon;

/* Logs the job's state and generation if they are new. */
void job_log_changed(struct daemon *daemon, struct job_id job);
/* Notes a job of before this start, without logging it. */
void job_log_known(struct daemon *daemon, const struct job_info *info);
/* Frees what was noted. */
void job_log_close(struct daemon *daemon);

#endif
