/* SPDX-License-Identifier: Apache-2.0
 * Who a task runs as and within which limits, told to worker/host/isolate. */
#ifndef CADRE_WORKER_DAEMON_ISOLATE_H
#define CADRE_WORKER_DAEMON_ISOLATE_H

#include "worker/host/isolate/isolation.h"

struct daemon;
struct task_files;

/* daemon->isolation, once the state directory is there. */
cadre_status isolate_open(struct daemon *daemon, struct cadre_error *error);
/* The task's user; and what its process is to do, with its group made. */
cadre_status isolate_enter(struct task_files *task, struct cadre_error *error);
cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error);
/* The same for one of an earlier life: whose its files are. */
cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error);
/* Groups of an earlier life whose tasks are not here. */
void isolate_clear(struct daemon *daemon);
/* True: isolate_empty is due, then isolate_emptied. */
bool isolate_leave(struct task_files *task);
/* Of a task that was entered: what earlier jobs left under its uid is removed; it is not: who asks
 * does isolate_empty, then isolate_emptied; or somebody does so already. */
enum uid_state { UID_CLEAN, UID_DIRTY, UID_BEING_EMPTIED };
enum uid_state isolate_uid_state(struct task_files *task);
void isolate_empty(const struct task_files *task); /* in any thread; may take long */
/* The user of all tasks of its job is another when something else runs under the uid. False: and no
 * other is free. */
bool isolate_emptied(struct task_files *task);

#endif
