/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/file_work.h"

#include "worker/host/daemon/daemon.h"

void file_work_start(struct file_work *work, struct daemon *daemon, void (*in_thread)(void *user),
    void (*done)(void *user), void *user)
{
    file_work_queue(work, daemon->loop, &daemon->works, in_thread, done, user);
}
