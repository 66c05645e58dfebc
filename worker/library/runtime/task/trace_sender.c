/* SPDX-License-Identifier: Apache-2.0
 * Which steps a process records, and how its spans reach the coordinator. Called by task_trace.c,
 * and for tasks without a rank by ../ps_job. */
#include "worker/library/runtime/task/trace_sender.h"

#include <stdatomic.h>

#include "common/base/clock.h"
#include "worker/library/runtime/task/session.h"
#include "worker/library/trace/trace.h"

/* Set while a trace is under way, and when its last step is behind, so that the program's thread
 * looks. */
static atomic_bool trace_follows;
static atomic_bool trace_ends;

bool trace_sender_follows(void)
{
    return atomic_load_explicit(&trace_follows, memory_order_relaxed);
}

bool trace_sender_passed(void)
{
    return atomic_load_explicit(&trace_ends, memory_order_relaxed);
}

void trace_sender_follow(struct trace_sender *trace, uint64_t position)
{
    bool within = trace->active && position >= trace->first && position < trace->end;
    trace->passed = trace->passed || (trace->active && position >= trace->end);
    trace_set(within && !trace->passed, position);
    atomic_store_explicit(&trace_follows, trace->active, memory_order_relaxed);
    atomic_store_explicit(&trace_ends, trace->active && trace->passed, memory_order_relaxed);
}

/* Keeps those of the trace's steps: a thread may have ended one of a trace before. */
static size_t own_spans(const struct trace_sender *trace, struct trace_span *spans, size_t taken)
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
static bool trace_sender_send(
    struct trace_sender *trace, const struct trace_owner *owner, uint64_t asked_ns, bool last)
{
    struct trace_span spans[LIMIT_TRACE_SPANS];
    if (!owner->sends) {
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
            .position = owner->position,
            .own_numbers = owner->own_numbers,
            .spans = spans,
            .span_count = count,
            .sent = trace->sent,
            .lost = trace->active ? trace_lost() - trace->lost_before : trace->lost,
            .ended = last || (!trace->active && !trace->other_numbers)}};
    trace->sent += count;
    trace->lost = up.spans.lost;
    owner->session->ops->send(owner->session, &up);
    return taken == LIMIT_TRACE_SPANS;
}

static void send_all(struct trace_sender *trace, const struct trace_owner *owner, bool last)
{
    int left = TRACE_RING_SPANS / LIMIT_TRACE_SPANS;
    while (left > 0 && trace_sender_send(trace, owner, 0, false)) {
        left--;
    }
    if (last && owner->sends) {
        (void)trace_sender_send(trace, owner, 0, true);
        trace->active = false;
        trace_sender_follow(trace, owner->position);
    }
}

void trace_sender_order(
    struct trace_sender *trace, const struct trace_owner *owner, const struct trace_order *order)
{
    if (order->id == 0) { /* nothing of it is wanted any more */
        *trace = (struct trace_sender){0};
        trace_sender_follow(trace, owner->position);
        return;
    }
    uint64_t deadline_us = clock_monotonic_us() + order->limit_us;
    if (order->id != trace->id) {
        *trace = (struct trace_sender){.id = order->id,
            .first = order->first,
            .end = order->end,
            .deadline_us = deadline_us,
            .clock = trace_clock_id(),
            .other_numbers = order->own_numbers != owner->own_numbers,
            .active = order->own_numbers == owner->own_numbers &&
                      trace_open(), /* without memory it ends at once */
            .lost_before = trace_lost()};
    }
    trace->deadline_us = deadline_us < trace->deadline_us ? deadline_us : trace->deadline_us;
    (void)trace_sender_send(trace, owner, order->asked_ns, false);
    trace_sender_follow(trace, owner->position);
}

void trace_sender_tick(struct trace_sender *trace, const struct trace_owner *owner)
{
    if (!trace->active) {
        return;
    }
    bool over = clock_monotonic_us() >= trace->deadline_us;
    trace->passed = trace->passed || over;
    trace_sender_follow(trace, owner->position);
    /* A thread may be about to record the end of the last step: that is for the next tick. */
    send_all(trace, owner, trace->passed && (over || trace->ticked_past));
    trace->ticked_past = trace->passed;
}

void trace_sender_end(struct trace_sender *trace, const struct trace_owner *owner)
{
    if (trace->active) {
        trace->passed = true;
        send_all(trace, owner, true);
    }
}
