/* SPDX-License-Identifier: Apache-2.0
 * The contents of a task's files, from the cache of this host or from the coordinator. */
#ifndef CADRE_WORKER_DAEMON_FETCH_H
#define CADRE_WORKER_DAEMON_FETCH_H

#include "common/model/job.h"

struct task_files;

/* The contents that a task needs and that are still to come, one after the other; then
 * done(task), on the loop and once: perhaps before this returns. It does not come when the fetch is
 * cancelled or put off (retry_start), or when the link breaks: then this is called again. */
void fetch_files(struct task_files *task, void (*done)(struct task_files *task));
void fetch_cancel(struct task_files *task);
/* A content of a task that runs, for the cache alone. Nothing if another one is under way. */
void fetch_renew(struct task_files *task, const struct job_file *file);

#endif
