/* SPDX-License-Identifier: Apache-2.0
 * What touches files is done by threads of the loop's pool: however long a disk takes, the loop
 * goes on, and with it all else. */
#ifndef CADRE_RPC_FILE_WORK_H
#define CADRE_RPC_FILE_WORK_H

#include <stdbool.h>
#include <uv.h>

struct rpc_loop;

/* One piece of work at a time; zeroed before the first. */
struct file_work {
    uv_work_t work;
    unsigned *count;
    void (*in_thread)(void *user);
    void (*done)(void *user);
    void *user;
    bool runs; /* `user` stays where it is, and is the thread's */
};

/* in_thread(user) in a thread, then done(user) on the loop: always both. *count is one more until
 * done() begins. */
void file_work_queue(struct file_work *work, struct rpc_loop *loop, unsigned *count,
    void (*in_thread)(void *user), void (*done)(void *user), void *user);

#endif
