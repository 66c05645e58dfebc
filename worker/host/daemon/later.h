/* SPDX-License-Identifier: Apache-2.0
 * What there was no room for is tried again. */
#ifndef CADRE_WORKER_DAEMON_LATER_H
#define CADRE_WORKER_DAEMON_LATER_H

#include "common/base/error.h"

struct daemon;
struct task_files;

/* again(daemon) on the loop, a second after something said that it waits: as often as needed. */
void later_open(struct daemon *daemon, void (*again)(struct daemon *daemon));
void later_close(struct daemon *daemon);
void later_arm(struct daemon *daemon);
/* The coordinator has no room for the task's checkpoint: it goes again, or false: it went too
 * often. */
bool later_publish(struct task_files *task, const char *reason);
/* The task's files could not be kept: its start is tried again, or it fails. */
void later_start(struct task_files *task, const struct cadre_error *error);

#endif
