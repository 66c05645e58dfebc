/* SPDX-License-Identifier: Apache-2.0
 * The log's lines about a job's life. */
#ifndef CADRE_COORDINATOR_DAEMON_JOB_LOG_H
#define CADRE_COORDINATOR_DAEMON_JOB_LOG_H

#include "coordinator/engine/engine.h"

struct daemon;

void job_log_changed(struct daemon *daemon, struct job_id job);
/* One of before this start. */
void job_log_known(struct daemon *daemon, const struct job_info *info);
void job_log_close(struct daemon *daemon);

#endif
