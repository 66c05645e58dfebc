/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CADRE_WORKER_DAEMON_FILE_WORK_H
#define CADRE_WORKER_DAEMON_FILE_WORK_H

#include "common/rpc/file_work.h"

struct daemon;

/* file_work_queue() on the daemon's loop, which ends when no thread is at work any more. */
void file_work_start(struct file_work *work, struct daemon *daemon, void (*in_thread)(void *user),
    void (*done)(void *user), void *user);

#endif
