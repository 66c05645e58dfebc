/* SPDX-License-Identifier: Apache-2.0
 * Tries again what there was no room for. */
#ifndef CADRE_WORKER_DAEMON_RETRY_H
#define CADRE_WORKER_DAEMON_RETRY_H

#include "common/base/error.h"

struct daemon;
struct task_files;

/* Calls on_retry(daemon) on the loop, a second after retry_arm(): as often as needed. */
void retry_open(struct daemon *daemon, void (*on_retry)(struct daemon *daemon));
/* Closes the timer. */
void retry_close(struct daemon *daemon);
/* Starts the timer, unless it runs. */
void retry_arm(struct daemon *daemon);
/* A call found no coordinator that takes it: what waits for one goes on in a second, if the stream
 * is there still, else with the next one. */
void retry_when_linked(struct daemon *daemon);
/* The coordinator has no room for the task's checkpoint: it is sent again later. False: it was
 * sent too often. */
bool retry_publish(struct task_files *task, const char *reason);
/* The task's files could not be kept: its start is tried again, or it fails. */
void retry_start(struct task_files *task, const struct cadre_error *error);

#endif
