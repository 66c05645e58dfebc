/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/file_work.h"

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/rpc/loop.h"

static void in_thread(uv_work_t *work)
{
    struct file_work *at = work->data;
    at->in_thread(at->user);
}

static void end_work(struct file_work *at)
{
    struct file_work_pool *file_pool = at->file_pool;
    file_pool->count--;
    at->running = false;
    at->done(at->user);
    file_pool->none = file_pool->count == 0;
}

static void after_thread(uv_work_t *work, int status)
{
    (void)status;
    end_work(work->data);
}

static void begin_work(struct file_work *work, struct file_work_pool *file_pool,
    void (*act)(void *user), void (*done)(void *user), void *user)
{
    CADRE_ASSERT(!work->running);
    work->file_pool = file_pool;
    work->in_thread = act;
    work->done = done;
    work->user = user;
    work->running = true;
    work->work.data = work;
    file_pool->count++;
}

static void queue_work(struct file_work *work)
{
    uv_queue_work(rpc_loop_uv(work->file_pool->loop), &work->work, in_thread, after_thread);
}

void file_work_start(struct file_work *work, struct file_work_pool *file_pool,
    void (*act)(void *user), void (*done)(void *user), void *user)
{
    begin_work(work, file_pool, act, done, user);
    queue_work(work);
}

/* ---- in a thread of its own ---- */

static void after_apart(void *user);

static void *run_apart(void *user)
{
    struct file_work *work = user;
    work->in_thread(work->user);
    rpc_loop_post(work->file_pool->loop, after_apart, work);
    return NULL;
}

/* Without a thread of its own it is done by one of the pool. */
static void start_waiting(struct file_work_pool *file_pool)
{
    while (file_pool->waiting != NULL && file_pool->apart < FILE_WORKS_APART) {
        struct file_work *work = file_pool->waiting;
        file_pool->waiting = work->next;
        if (thread_start(&work->thread, run_apart, work) == 0) {
            file_pool->apart++;
        } else {
            queue_work(work);
        }
    }
}

static void after_apart(void *user)
{
    struct file_work *work = user;
    pthread_join(work->thread, NULL);
    work->file_pool->apart--;
    start_waiting(work->file_pool);
    end_work(work);
}

void file_work_start_apart(struct file_work *work, struct file_work_pool *file_pool,
    void (*act)(void *user), void (*done)(void *user), void *user)
{
    begin_work(work, file_pool, act, done, user);
    struct file_work **end = &file_pool->waiting;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    work->next = NULL;
    *end = work;
    start_waiting(file_pool);
}

void file_work_pool_wait(struct file_work_pool *file_pool)
{
    while (file_pool->count > 0) {
        file_pool->none = false;
        (void)rpc_loop_run_until(file_pool->loop, &file_pool->none, CADRE_TIME_NEVER);
    }
}
