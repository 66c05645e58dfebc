/* SPDX-License-Identifier: Apache-2.0
 * What touches files is done by threads of the pool: however long a disk takes, the loop goes on,
 * and with it all jobs. */
#ifndef CADRE_COORDINATOR_DAEMON_FILE_WORK_H
#define CADRE_COORDINATOR_DAEMON_FILE_WORK_H

#include <stdbool.h>
#include <uv.h>

struct daemon;

/* One piece of work at a time; zeroed before the first. */
struct file_work {
    uv_work_t work;
    struct daemon *daemon;
    void (*in_thread)(void *user);
    void (*done)(void *user);
    void *user;
    bool runs; /* `user` stays where it is, and is the thread's */
};

/* in_thread(user) in a thread, then done(user) on the loop: always both. */
void file_work_start(struct file_work *work, struct daemon *daemon, void (*in_thread)(void *user),
    void (*done)(void *user), void *user);

#endif
