/* SPDX-License-Identifier: Apache-2.0
 * The preparation of a task, until its process runs. */
#ifndef CADRE_WORKER_DAEMON_PREPARE_H
#define CADRE_WORKER_DAEMON_PREPARE_H

struct task_files;

/* Prepares from the beginning, or goes on when what it waited for is there; then calls
 * agent_task_prepared. */
void prepare_start(struct task_files *task);
/* A new stream: fetches what is still missing. */
void prepare_resume(struct task_files *task);
/* Cancels the transfers from the coordinator. A thread in its folder ends by itself, and then
 * removes or collects what was forgotten or stopped meanwhile. */
void prepare_cancel(struct task_files *task);

#endif
