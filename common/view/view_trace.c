/* SPDX-License-Identifier: Apache-2.0
 * Spans, and the tasks that recorded them. */
#include "common/view/view.h"

/* The kinds, threads and states are those of the model. */
_Static_assert((int)CADRE_TRACE_WAIT == (int)TRACE_WAIT, "same numbers");
_Static_assert((int)CADRE_TRACE_WRITER == (int)TRACE_THREAD_CHECKPOINT, "same numbers");
_Static_assert((int)CADRE_TRACE_GONE == (int)TRACE_TASK_GONE, "same numbers");

void view_spans(const struct trace_span *from, size_t count, cadre_trace_span *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = (cadre_trace_span){.kind = from[i].kind,
            .thread = from[i].thread,
            .replica = from[i].replica,
            .step = from[i].step,
            .begin_ns = from[i].begin_ns,
            .end_ns = from[i].end_ns,
            .arrived_ns = from[i].arrived_ns,
            .bytes = from[i].bytes,
            .match = from[i].match};
    }
}

void view_traced_tasks(const struct trace_task *from, size_t count, cadre_trace_task *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = (cadre_trace_task){.task = from[i].slot,
            .incarnation = from[i].incarnation,
            .state = (cadre_trace_state)from[i].state,
            .worker = from[i].worker,
            .pid = from[i].pid,
            .clock = from[i].clock,
            .offset_ns = from[i].offset_ns,
            .error_ns = from[i].error_ns,
            .position = from[i].position,
            .spans = from[i].spans,
            .lost = from[i].lost,
            .missing = from[i].missing};
    }
}
