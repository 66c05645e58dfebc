/* SPDX-License-Identifier: Apache-2.0
 * Sends what the program reported (reported_values.h): the shell around it. */
#include "common/base/thread.h"
#include "common/base/clock.h"
#include "worker/library/runtime/task/task_state.h"

void task_send_values(struct task *task, bool wanted)
{
    struct reported_value items[LIMIT_REPORTED_VALUES];
    const char *names[LIMIT_METRICS];
    struct task_up up = {.type = TASK_UP_VALUES};
    uint64_t now_us = clock_monotonic_us();
    if (!task->core.connected || task->core.phase == TASK_EXIT ||
        !reported_values_are_due(&task->values, now_us, wanted)) {
        return;
    }
    if (reported_values_next(&task->values, now_us, items, names, &up.values)) {
        task->session->ops->send(task->session, &up);
    }
}

void task_tick_values(struct task *task)
{
    if (reported_values_are_overdue(&task->values, clock_monotonic_us())) {
        reported_values_again(&task->values);
    }
    task_send_values(task, true);
}

bool task_report_value(
    struct task *task, const char *name, uint64_t step, bool numbered, double value)
{
    pthread_mutex_lock(&task->lock);
    step = numbered ? step : task->core.position;
    bool added = reported_values_add(&task->values, name, step, numbered, value);
    task_send_values(task, false);
    pthread_mutex_unlock(&task->lock);
    return added;
}

void task_flush_values(struct task *task, uint64_t timeout_us)
{
    uint64_t end_us = clock_monotonic_us() + timeout_us;
    pthread_mutex_lock(&task->lock);
    task_send_values(task, true);
    while (reported_values_are_left(&task->values) && task->core.connected && !task->lost &&
           task->core.phase != TASK_EXIT && clock_monotonic_us() < end_us) {
        thread_wait_until(&task->changed, &task->lock, end_us);
        task_send_values(task, true);
    }
    pthread_mutex_unlock(&task->lock);
}
