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

static void after_thread(uv_work_t *work, int status)
{
    struct file_work *at = work->data;
    struct file_work_pool *file_pool = at->file_pool;
    (void)status;
    file_pool->count--;
    at->running = false;
    at->done(at->user);
    file_pool->none = file_pool->count == 0;
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
    uv_queue_work(rpc_loop_uv(file_pool->loop), &work->work, in_thread, after_thread);
}

void file_work_pool_wait(struct file_work_pool *file_pool)
{
    while (file_pool->count > 0) {
        file_pool->none = false;
        (void)rpc_loop_run_until(file_pool->loop, &file_pool->none, CADRE_TIME_NEVER);
    }
}
