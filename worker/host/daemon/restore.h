/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that a task goes on from. */
#ifndef CADRE_WORKER_DAEMON_RESTORE_H
#define CADRE_WORKER_DAEMON_RESTORE_H

struct task_files;

/* If there is one; then done(task), on the loop and once: perhaps before this returns. It does not
 * come when this is cancelled, put off (retry_start) or fails (tasks_fail). */
void restore_start(struct task_files *task, void (*done)(struct task_files *task));
void restore_resume(struct task_files *task); /* a new stream */
void restore_cancel(struct task_files *task);

#endif
