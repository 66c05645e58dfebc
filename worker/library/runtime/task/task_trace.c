/* SPDX-License-Identifier: Apache-2.0
 * The trace of a task with a rank: its position is the core's, or counts a plain program's
 * collectives. */
#include "worker/library/runtime/task/task_trace.h"

#include <stdatomic.h>

#include "worker/library/runtime/task/task_state.h"

/* The number of the step at hand. */
static uint64_t task_trace_position(const struct task *task)
{
    return task->core.plain ? atomic_load_explicit(&task->collectives, memory_order_relaxed)
                            : task->core.position;
}

static struct trace_owner owner_of(const struct task *task)
{
    return (struct trace_owner){.session = task->session,
        .sends = task->core.connected && task->core.phase != TASK_EXIT,
        .own_numbers = task->core.plain,
        .position = task_trace_position(task)};
}

void task_trace_follow(struct task *task)
{
    trace_sender_follow(&task->trace, task_trace_position(task));
}

void task_trace_order(struct task *task, const struct trace_order *order)
{
    const struct trace_owner owner = owner_of(task);
    trace_sender_order(&task->trace, &owner, order);
}

void task_trace_tick(struct task *task)
{
    const struct trace_owner owner = owner_of(task);
    trace_sender_tick(&task->trace, &owner);
}

void task_trace_end(struct task *task)
{
    const struct trace_owner owner = owner_of(task);
    trace_sender_end(&task->trace, &owner);
}

void task_trace_step_ended(struct task *task)
{
    if (!trace_sender_passed()) {
        return;
    }
    pthread_mutex_lock(&task->lock);
    if (task->trace.passed) {
        task_trace_end(task);
    }
    pthread_mutex_unlock(&task->lock);
}

void task_trace_collective(struct task *task)
{
    atomic_fetch_add_explicit(&task->collectives, 1, memory_order_relaxed);
    if (!trace_sender_follows()) {
        return;
    }
    pthread_mutex_lock(&task->lock);
    task_trace_follow(task);
    pthread_mutex_unlock(&task->lock);
    task_trace_step_ended(task);
}
