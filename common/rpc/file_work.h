/* SPDX-License-Identifier: Apache-2.0
 * Work on files is done by threads of the loop's pool, so that the loop does not wait for a
 * disk; what waits for a network, for minutes maybe, by threads of its own, so that work on files
 * does not wait for it. All functions are for the loop's thread. */
#ifndef CADRE_RPC_FILE_WORK_H
#define CADRE_RPC_FILE_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

struct rpc_loop;

/* Of one daemon, on its loop. */
struct file_work_pool {
    struct rpc_loop *loop;
    unsigned count;            /* works that were started and are not done */
    unsigned apart;            /* of them in threads of their own */
    struct file_work *waiting; /* for one of these to end, in the order in which they came */
    bool none;                 /* since file_work_pool_wait() began there was a moment with none */
};

/* Threads that wait for a network, at one time. */
#define FILE_WORKS_APART 8

/* One piece of work at a time; zeroed before the first. */
struct file_work {
    uv_work_t work;
    pthread_t thread;       /* of its own */
    struct file_work *next; /* that waits */
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

/* The same for work that waits for a network. At most FILE_WORKS_APART are done at one time, and
 * the next begins when one ends. */
void file_work_start_apart(struct file_work *work, struct file_work_pool *file_pool,
    void (*in_thread)(void *user), void (*done)(void *user), void *user);

/* Runs the loop until no thread is at work any more: before it is closed. */
void file_work_pool_wait(struct file_work_pool *file_pool);

#endif
