/* SPDX-License-Identifier: Apache-2.0
 * Work on files is done by threads of the loop's pool, so that the loop does not wait for a
 * disk. All functions are for the loop's thread. */
#ifndef CADRE_RPC_FILE_WORK_H
#define CADRE_RPC_FILE_WORK_H

#include <stdbool.h>
#include <uv.h>

struct rpc_loop;

/* Of one daemon, on its loop. */
struct file_work_pool {
    struct rpc_loop *loop;
    unsigned count; /* threads at work */
    bool none;      /* since file_work_pool_wait() began there was a moment with none */
};

/* One piece of work at a time; zeroed before the first. */
struct file_work {
    uv_work_t work;
    struct file_work_pool *file_pool;
    void (*in_thread)(void *user);
    void (*done)(void *user);
    void *user;
    bool running; /* a thread uses `user`: it is not moved or freed */
};

/* in_thread(user) in a thread, then done(user) on the loop: always both, once. It counts among the
 * works until done() begins, which may start the next piece or free all of it. */
void file_work_start(struct file_work *work, struct file_work_pool *file_pool,
    void (*in_thread)(void *user), void (*done)(void *user), void *user);

/* Runs the loop until no thread is at work any more: before it is closed. */
void file_work_pool_wait(struct file_work_pool *file_pool);

#endif
