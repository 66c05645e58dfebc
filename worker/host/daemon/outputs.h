/* SPDX-License-Identifier: Apache-2.0
 * What a task left goes to the coordinator, and the task is collected. */
#ifndef CADRE_WORKER_DAEMON_OUTPUTS_H
#define CADRE_WORKER_DAEMON_OUTPUTS_H

struct task_files;

/* Collects the task: the files in the output folder, one after the other; then
 * agent_task_collected. */
void outputs_start(struct task_files *task);
void outputs_resume(struct task_files *task);
void outputs_cancel(struct task_files *task);

#endif
