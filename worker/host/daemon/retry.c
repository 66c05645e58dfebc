/* SPDX-License-Identifier: Apache-2.0
 * Tries again, after a while, what failed for want of room, here or at the coordinator. */
#include <stdlib.h>

#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/task_files.h"

#define RETRY_MS 1000

/* A task whose files find no room on this host waits so often; then it fails with the reason. A
 * checkpoint for which the coordinator has no room fails then, and is tried again less often. */
#define TRIES_MAX 60

static void on_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    daemon->on_retry(daemon);
}

void retry_open(struct daemon *daemon, void (*on_retry)(struct daemon *daemon))
{
    daemon->on_retry = on_retry;
    uv_timer_init(rpc_loop_uv(daemon->loop), &daemon->retry_timer);
    daemon->retry_timer.data = daemon;
}

void retry_arm(struct daemon *daemon)
{
    if (!uv_is_active((uv_handle_t *)&daemon->retry_timer)) {
        uv_timer_start(&daemon->retry_timer, on_timer, RETRY_MS, 0);
    }
}

void retry_when_linked(struct daemon *daemon)
{
    daemon->resume_waits = true;
    retry_arm(daemon);
}

void retry_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->retry_timer, NULL);
}

bool retry_publish(struct task_files *task, const char *reason)
{
    if (task->publish_tries >= TRIES_MAX) {
        return false;
    }
    if (task->publish_tries++ == 0) {
        log_event(LOG_LEVEL_WARNING, "tasks", "a checkpoint waits for room at the coordinator",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", reason));
    }
    task->publish_waits = true;
    retry_arm(task->daemon);
    return true;
}

void retry_start(struct task_files *task, const struct cadre_error *error)
{
    if (error->code != CADRE_RESOURCE_EXHAUSTED || task->starts >= TRIES_MAX) {
        tasks_fail(task, error);
        return;
    }
    if (task->starts++ == 0) {
        log_event(LOG_LEVEL_WARNING, "tasks", "a task waits for room to start",
            LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
            LOG_STR("reason", error->text));
    }
    free(task->restore_path);
    task->restore_path = NULL;
    task->start_waits = true;
    retry_arm(task->daemon);
}
