/* SPDX-License-Identifier: Apache-2.0
 * Sends a task's outputs to the coordinator; then the task is collected. */
#ifndef CADRE_WORKER_DAEMON_OUTPUTS_H
#define CADRE_WORKER_DAEMON_OUTPUTS_H

struct task_files;

/* Sends the files in the output folder, one after the other; then calls agent_task_collected. */
void outputs_start(struct task_files *task);
/* Continues after a new stream, or when the log or checkpoint that it waits for was sent. */
void outputs_resume(struct task_files *task);
/* Stops; what was begun ends without effect. */
void outputs_cancel(struct task_files *task);

#endif
