/* SPDX-License-Identifier: Apache-2.0
 * Work on files is done by threads of the loop's pool, so that the loop does not wait for a
 * disk; work that waits for an object store by threads of the pool's own, so that what libuv's few
 * threads do besides (other files, names of hosts) does not wait for that. All functions are for
 * the loop's thread. */
#ifndef CADRE_RPC_FILE_WORK_H
#define CADRE_RPC_FILE_WORK_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/error.h"

struct rpc_loop;
struct file_work;
struct file_work_threads;

/* Of one daemon, on its loop. */
struct file_work_pool {
    struct rpc_loop *loop;
    struct file_work_threads *threads; /* NULL: libuv's */
    unsigned count;                    /* works begun and not done */
    bool none; /* since file_work_pool_wait() began there was a moment with none */
};

/* One piece of work at a time; zeroed before the first. */
struct file_work {
    uv_work_t work;
    struct file_work *next; /* of those that wait for a thread of the pool's own */
    struct file_work_pool *file_pool;
    void (*in_thread)(void *user);
    void (*done)(void *user);
    void *user;
    bool running; /* a thread uses `user`: it is not moved or freed */
};

/* From now on the pool, at which nothing is at work, has `count` threads of its own, which take
 * works in the order in which they came. file_work_pool_close() is to follow. */
cadre_status file_work_pool_start(
    struct file_work_pool *file_pool, unsigned count, struct cadre_error *error);
/* Ends its own threads; one without them is allowed. After file_work_pool_wait(). */
void file_work_pool_close(struct file_work_pool *file_pool);

/* in_thread(user) in a thread, then done(user) on the loop: always both, once. It counts among the
 * works until done() begins, which may start the next piece or free all of it. */
void file_work_start(struct file_work *work, struct file_work_pool *file_pool,
    void (*in_thread)(void *user), void (*done)(void *user), void *user);

/* Runs the loop until no thread is at work any more: before it is closed. */
void file_work_pool_wait(struct file_work_pool *file_pool);

/* --- file_work_threads.c, for file_work.c --- */

/* A thread of the pool's own does in_thread(), then the loop calls done(work). */
void file_work_threads_add(struct file_work_threads *threads, struct file_work *work);
/* Ends when none waits; frees it. NULL is allowed. */
void file_work_threads_close(struct file_work_threads *threads);
cadre_status file_work_threads_open(struct rpc_loop *loop, unsigned count,
    void (*done)(struct file_work *work), struct file_work_threads **ret_threads,
    struct cadre_error *error);

#endif
