/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/file_work.h"

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
    (void)status;
    --*at->count;
    at->runs = false;
    at->done(at->user);
}

void file_work_queue(struct file_work *work, struct rpc_loop *loop, unsigned *count,
    void (*act)(void *user), void (*done)(void *user), void *user)
{
    CADRE_ASSERT(!work->runs);
    work->count = count;
    work->in_thread = act;
    work->done = done;
    work->user = user;
    work->runs = true;
    work->work.data = work;
    ++*count;
    uv_queue_work(rpc_loop_uv(loop), &work->work, in_thread, after_thread);
}
