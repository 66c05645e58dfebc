/* SPDX-License-Identifier: Apache-2.0
 * A task on its way to its process. */
#ifndef CADRE_WORKER_DAEMON_PREPARE_H
#define CADRE_WORKER_DAEMON_PREPARE_H

struct task_files;

/* From the beginning, or when what it waited for is there; then agent_task_prepared. */
void prepare_start(struct task_files *task);
void prepare_resume(struct task_files *task); /* a new stream */
/* What comes from the coordinator does not come any more. A thread in its folder ends by itself,
 * and then removes or collects what was forgotten or stopped meanwhile. */
void prepare_cancel(struct task_files *task);

#endif
