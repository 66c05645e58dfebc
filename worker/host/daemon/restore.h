/* SPDX-License-Identifier: Apache-2.0
 * Restores the checkpoint that a task goes on from. */
#ifndef CADRE_WORKER_DAEMON_RESTORE_H
#define CADRE_WORKER_DAEMON_RESTORE_H

struct task_files;

/* Fetches or checks it, if there is one; then calls done(task), on the loop and once: perhaps
 * before this returns. It is not called when this is cancelled, put off (retry_start) or fails
 * (tasks_fail). */
void restore_start(struct task_files *task, void (*done)(struct task_files *task));
/* A new stream: fetches what is still missing. */
void restore_resume(struct task_files *task);
/* Stops without done(). */
void restore_cancel(struct task_files *task);

#endif
