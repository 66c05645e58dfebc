/* SPDX-License-Identifier: Apache-2.0
 * Gives each task its user and its limits, by worker/host/isolate. */
#ifndef CADRE_WORKER_DAEMON_ISOLATE_H
#define CADRE_WORKER_DAEMON_ISOLATE_H

#include "worker/host/isolate/isolation.h"

struct daemon;
struct task_files;

/* Opens daemon->isolation, once the state directory exists. */
cadre_status isolate_open(struct daemon *daemon, struct cadre_error *error);
/* Gives the task its user. */
cadre_status isolate_enter(struct task_files *task, struct cadre_error *error);
/* What the task's process is to do between fork and exec, with its control group made. */
cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error);
/* The same for a task of an earlier incarnation of the daemon: its user is the owner of its
 * files. */
cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error);
/* Removes control groups of an earlier incarnation whose tasks are not here. */
void isolate_clear(struct daemon *daemon);
/* True: isolate_empty is due, then isolate_emptied. */
bool isolate_leave(struct task_files *task);
/* DIRTY: what earlier jobs left under the uid is to be removed: the caller does isolate_empty,
 * then isolate_emptied. BEING_EMPTIED: that is under way for another task. */
enum uid_state { UID_CLEAN, UID_DIRTY, UID_BEING_EMPTIED };
/* The state of the uid of a task that was entered. */
enum uid_state isolate_uid_state(struct task_files *task);
/* Removes what is left under the task's uid. In any thread; may take long. */
void isolate_empty(const struct task_files *task);
/* When something else runs under the uid, the job of the task gets another user. False: no other
 * is free. */
bool isolate_emptied(struct task_files *task);

#endif
