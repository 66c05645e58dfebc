/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/file_work.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/loop.h"

static void in_thread(uv_work_t *work)
{
    struct file_work *at = work->data;
    at->in_thread(at->user);
}

static void file_work_end(struct file_work *work)
{
    struct file_work_pool *file_pool = work->file_pool;
    file_pool->count--;
    work->running = false;
    work->done(work->user);
    file_pool->none = file_pool->count == 0;
}

static void after_thread(uv_work_t *work, int status)
{
    (void)status;
    file_work_end(work->data);
}

cadre_status file_work_pool_start(
    struct file_work_pool *file_pool, unsigned count, struct cadre_error *error)
{
    CADRE_ASSERT(file_pool->count == 0 && file_pool->threads == NULL);
    return file_work_threads_open(
        file_pool->loop, count, file_work_end, &file_pool->threads, error);
}

void file_work_pool_close(struct file_work_pool *file_pool)
{
    CADRE_ASSERT(file_pool->count == 0);
    file_work_threads_close(file_pool->threads);
    file_pool->threads = NULL;
}

void file_work_start(struct file_work *work, struct file_work_pool *file_pool,
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
    if (file_pool->threads != NULL) {
        file_work_threads_add(file_pool->threads, work);
        return;
    }
    uv_queue_work(rpc_loop_uv(file_pool->loop), &work->work, in_thread, after_thread);
}

void file_work_pool_wait(struct file_work_pool *file_pool)
{
    while (file_pool->count > 0) {
        file_pool->none = false;
        (void)rpc_loop_run_until(file_pool->loop, &file_pool->none, CADRE_TIME_NEVER);
    }
}
