/* SPDX-License-Identifier: Apache-2.0
 * The trace of a task: which steps it records, and how its spans reach the coordinator. */
#include "worker/library/runtime/task/task_trace.h"

#include "common/base/clock.h"
#include "worker/library/runtime/task/task_state.h"
#include "worker/library/trace/trace.h"

/* Set while a trace is under way, and when its last step is behind, so that the program's thread
 * looks. */
static atomic_bool trace_follows;
static atomic_bool trace_ends;

void task_trace_follow(struct task *task)
{
    struct task_trace *trace = &task->trace;
    uint64_t position = task_trace_position(task);
    bool within = trace->active && position >= trace->first && position < trace->end;
    trace->passed = trace->passed || (trace->active && position >= trace->end);
    trace_set(within && !trace->passed, position);
    atomic_store_explicit(&trace_follows, trace->active, memory_order_relaxed);
    atomic_store_explicit(&trace_ends, trace->active && trace->passed, memory_order_relaxed);
}

uint64_t task_trace_position(const struct task *task)
{
    return task->core.plain ? atomic_load_explicit(&task->collectives, memory_order_relaxed)
                            : task->core.position;
}

/* Keeps those of the trace's steps: a thread may have ended one of a trace before. */
static size_t own_spans(const struct task_trace *trace, struct trace_span *spans, size_t taken)
{
    size_t count = 0;
    for (size_t i = 0; i < taken; i++) {
        if (spans[i].step >= trace->first && spans[i].step < trace->end) {
            spans[count++] = spans[i];
        }
    }
    return count;
}

/* One message; false: nothing was left to send, or none can be. */
static bool task_trace_send(struct task *task, uint64_t asked_ns, bool last)
{
    struct trace_span spans[LIMIT_TRACE_SPANS];
    struct task_trace *trace = &task->trace;
    if (!task->core.connected || task->core.phase == TASK_EXIT) {
        return false;
    }
    bool answers = asked_ns != 0; /* at once, for the sake of the clock */
    size_t taken = trace->active && !answers ? trace_take(spans, LIMIT_TRACE_SPANS) : 0;
    size_t count = own_spans(trace, spans, taken);
    if (count == 0 && !answers && !last) {
        return taken == LIMIT_TRACE_SPANS;
    }
    struct task_up up = {.type = TASK_UP_SPANS,
        .spans = {.id = trace->id,
            .asked_ns = asked_ns,
            .answered_ns = trace_clock_ns(),
            .clock = trace->clock,
            .position = task_trace_position(task),
            .own_numbers = task->core.plain,
            .spans = spans,
            .span_count = count,
            .sent = trace->sent,
            .lost = trace->active ? trace_lost() - trace->lost_before : trace->lost,
            .ended = last || (!trace->active && !trace->other_numbers)}};
    trace->sent += count;
    trace->lost = up.spans.lost;
    task->session->ops->send(task->session, &up);
    return taken == LIMIT_TRACE_SPANS;
}

static void send_all(struct task *task, bool last)
{
    int left = TRACE_RING_SPANS / LIMIT_TRACE_SPANS;
    while (left > 0 && task_trace_send(task, 0, false)) {
        left--;
    }
    if (last && task->core.connected) {
        (void)task_trace_send(task, 0, true);
        task->trace.active = false;
        task_trace_follow(task);
    }
}

/* Nothing of it is wanted any more. */
static void task_trace_drop(struct task *task)
{
    task->trace = (struct task_trace){0};
    task_trace_follow(task);
}

void task_trace_order(struct task *task, const struct trace_order *order)
{
    struct task_trace *trace = &task->trace;
    if (order->id == 0) {
        task_trace_drop(task);
        return;
    }
    if (order->id != trace->id) {
        *trace = (struct task_trace){.id = order->id,
            .first = order->first,
            .end = order->end,
            .deadline_us = clock_monotonic_us() + order->limit_us,
            .clock = trace_clock_id(),
            .other_numbers = order->own_numbers != task->core.plain,
            .active = order->own_numbers == task->core.plain &&
                      trace_open(), /* without memory it ends at once */
            .lost_before = trace_lost()};
    }
    (void)task_trace_send(task, order->asked_ns, false);
    task_trace_follow(task);
}

void task_trace_tick(struct task *task)
{
    struct task_trace *trace = &task->trace;
    if (!trace->active) {
        return;
    }
    bool over = clock_monotonic_us() >= trace->deadline_us;
    trace->passed = trace->passed || over;
    task_trace_follow(task);
    /* A thread may be about to record the end of the last step: that is for the next tick. */
    send_all(task, trace->passed && (over || trace->ticked_past));
    trace->ticked_past = trace->passed;
}

void task_trace_step_ended(struct task *task)
{
    if (!atomic_load_explicit(&trace_ends, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&task->lock);
    if (task->trace.active && task->trace.passed) {
        send_all(task, true);
    }
    pthread_mutex_unlock(&task->lock);
}

void task_trace_collective(struct task *task)
{
    atomic_fetch_add_explicit(&task->collectives, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&trace_follows, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&task->lock);
    task_trace_follow(task);
    pthread_mutex_unlock(&task->lock);
    task_trace_step_ended(task);
}

void task_trace_end(struct task *task)
{
    if (task->trace.active) {
        task->trace.passed = true;
        send_all(task, true);
    }
}
