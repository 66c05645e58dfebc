/* SPDX-License-Identifier: Apache-2.0
 * The reports travel in heartbeats, because a coordinator of an earlier version takes those for
 * heartbeats alone. */
#include "worker/host/daemon/fetch_report.h"

#include <string.h>

#include "common/base/clock.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/task_files.h"

#define REPORT_EVERY_MS 500

static struct agent_fetch fetch_of(const struct task_files *task, uint64_t now_us)
{
    const struct fetch_account *account = &task->fetching;
    uint64_t whole = atomic_load(&account->counts->whole_bytes);
    uint64_t done = atomic_load(&account->counts->done_bytes);
    return (struct agent_fetch){.task = task->ref,
        .fetch = {.kind = account->kind,
            .done_bytes = done < whole ? done : whole,
            .whole_bytes = whole,
            .elapsed_us = now_us - account->begun_us}};
}

static void on_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    struct agent_fetch fetches[LIMIT_SLOTS_PER_WORKER];
    size_t count = 0;
    uint64_t now_us = clock_monotonic_us();
    const struct task_files *task = daemon->tasks;
    for (; task != NULL && count < LIMIT_SLOTS_PER_WORKER; task = task->next) {
        if (task->fetching.kind != FETCH_NONE) {
            fetches[count++] = fetch_of(task, now_us);
        }
    }
    if (count == 0) {
        uv_timer_stop(timer);
    } else if (daemon->linked) {
        link_send(daemon, &(struct agent_up){.type = AGENT_UP_HEARTBEAT,
                              .heartbeat = {.fetches = fetches, .fetch_count = count}});
    }
}

void fetch_report_open(struct daemon *daemon)
{
    uv_timer_init(rpc_loop_uv(daemon->loop), &daemon->fetch_timer);
    daemon->fetch_timer.data = daemon;
}

void fetch_report_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->fetch_timer, NULL);
}

void fetch_report_begin(
    struct task_files *task, enum fetch_kind kind, const struct checkpoint_counts *counts)
{
    uv_timer_t *timer = &task->daemon->fetch_timer;
    if (task->fetching.kind == kind) {
        return;
    }
    task->fetching =
        (struct fetch_account){.kind = kind, .begun_us = clock_monotonic_us(), .counts = counts};
    if (!uv_is_active((uv_handle_t *)timer) && !task->daemon->closes) {
        uv_timer_start(timer, on_timer, REPORT_EVERY_MS, REPORT_EVERY_MS);
    }
}

void fetch_report_end(struct task_files *task)
{
    task->fetching = (struct fetch_account){.kind = FETCH_NONE};
}
