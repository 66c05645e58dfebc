/* SPDX-License-Identifier: Apache-2.0
 * What tasks leave is removed, by threads of the pool. */
#ifndef CADRE_WORKER_DAEMON_REMOVAL_H
#define CADRE_WORKER_DAEMON_REMOVAL_H

#include "common/base/error.h"

struct daemon;
struct task_files;

/* Of a task that is forgotten, and in no list: its name is not free any more. */
void removal_expect(struct task_files *task);
/* Then, when no thread is at work for it: its folder goes, in the pool; then who it was, and if it
 * was the last of its job here what their uid left. Frees it. */
void removal_start(struct task_files *task);
/* A folder of an earlier life in task_dir. */
cadre_status removal_folder(struct daemon *daemon, const char *path, struct cadre_error *error);
/* False: the folder of an earlier start still bears the task's name; when it does not any more
 * comes then(task), on the loop, unless task->name_waits was taken back. */
bool removal_name_is_free(struct task_files *task, void (*then)(struct task_files *task));
/* False: what others left under the task's uid is being removed; then comes then(task), or, when no
 * other uid is free, retry_start(); on the loop, unless task->uid_waits was taken back. */
bool removal_is_clean(struct task_files *task, void (*then)(struct task_files *task));

#endif
