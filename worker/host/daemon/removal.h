/* SPDX-License-Identifier: Apache-2.0
 * Removes what tasks leave, in threads of the pool. */
#ifndef CADRE_WORKER_DAEMON_REMOVAL_H
#define CADRE_WORKER_DAEMON_REMOVAL_H

#include "common/base/error.h"

struct daemon;
struct task_files;

/* Reserves the name of a task that was forgotten and is in no list. */
void removal_expect(struct task_files *task);
/* Then, when no thread works for it: removes its folder, in the pool; then releases its user,
 * and after the last task of its job here removes what their uid left. Frees the task. */
void removal_start(struct task_files *task);
/* Removes a folder of an earlier incarnation of the daemon in task_dir. */
cadre_status removal_folder(struct daemon *daemon, const char *path, struct cadre_error *error);
/* False: the folder of an earlier start still has the task's name; when it is renamed,
 * then(task) is called, on the loop, unless task->name_waits was reset. */
bool removal_name_is_free(struct task_files *task, void (*then)(struct task_files *task));
/* False: what others left under the task's uid is being removed; afterwards then(task) is
 * called, or, when no other uid is free, retry_start(); on the loop, unless task->uid_waits was
 * reset. */
bool removal_is_clean(struct task_files *task, void (*then)(struct task_files *task));

/* What an earlier incarnation of the daemon left in its state directory. */

struct daemon;

/* Takes over the tasks that an earlier incarnation of this daemon left running under their
 * keepers in this state directory: only with --keep-tasks, and before the first link. */
void leftovers_adopt(struct daemon *daemon);
/* Ends the other processes that it left, and removes its folders. */
cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error);

#endif
