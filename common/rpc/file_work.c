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
    struct file_works *works = at->works;
    (void)status;
    works->count--;
    at->runs = false;
    at->done(at->user);
    works->none = works->count == 0;
}

void file_work_start(struct file_work *work, struct file_works *works, void (*act)(void *user),
    void (*done)(void *user), void *user)
{
    CADRE_ASSERT(!work->runs);
    work->works = works;
    work->in_thread = act;
    work->done = done;
    work->user = user;
    work->runs = true;
    work->work.data = work;
    works->count++;
    uv_queue_work(rpc_loop_uv(works->loop), &work->work, in_thread, after_thread);
}

void file_works_wait(struct file_works *works)
{
    while (works->count > 0) {
        works->none = false;
        (void)rpc_loop_run_until(works->loop, &works->none, CADRE_TIME_NEVER);
    }
}
