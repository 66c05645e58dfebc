/* SPDX-License-Identifier: Apache-2.0
 * Traces: the order to a task, its spans, and what a client asks for and receives. */
#include "common/wire/rows.h"

#define TRACE_REPLICA_MAX 65535

/* The numbers of the enums are those of the model. */
_Static_assert((int)CADRE__V1__TRACE_KIND__TRACE_KIND_STEP == TRACE_STEP, "same numbers");
_Static_assert((int)CADRE__V1__TRACE_KIND__TRACE_KIND_INPUT == TRACE_INPUT, "same numbers");
_Static_assert((int)CADRE__V1__TRACE_KIND__TRACE_KIND_RELEASE == TRACE_RELEASE, "same numbers");
_Static_assert((int)CADRE__V1__TRACE_KIND__TRACE_KIND_REGROUP == TRACE_REGROUP, "same numbers");
_Static_assert(
    (int)CADRE__V1__TRACE_KIND__TRACE_KIND_ALL_REDUCE == TRACE_ALL_REDUCE, "same numbers");
_Static_assert((int)CADRE__V1__TRACE_KIND__TRACE_KIND_WAIT == TRACE_WAIT, "same numbers");
_Static_assert(
    (int)CADRE__V1__TRACE_TASK_STATE__TRACE_TASK_STATE_GONE == TRACE_TASK_GONE, "same numbers");

/* At its longest a span has six numbers of 10 bytes and three shorter ones, with their tags. */
#define SPAN_BYTES_MAX       100
#define TRACE_TASK_BYTES_MAX (LIMIT_NAME_BYTES + 120)
_Static_assert(
    LIMIT_TRACE_SPANS *(SPAN_BYTES_MAX + TRACE_TASK_BYTES_MAX) + LIMIT_TEXT_BYTES + 128 <=
        LIMIT_FRAME_BYTES,
    "the longest trace_response fits");

/* Kinds of later versions are taken as they are. */
ROWS(TraceSpan) = {
    SIGNED(TraceSpan, kind, 0, INT32_MAX),
    COPY(TraceSpan, thread),
    NUMBER(TraceSpan, replica, 0, TRACE_REPLICA_MAX),
    POSITION(TraceSpan, step),
    NUMBER_UP_TO(TraceSpan, begin_ns, end_ns),
    COPY(TraceSpan, end_ns),
    NUMBER_UP_TO(TraceSpan, arrived_ns, end_ns),
    COPY(TraceSpan, bytes),
    COPY(TraceSpan, match),
};
TABLE(TraceSpan, trace_span);

ROWS(TaskSpans) = {
    NUMBER(TaskSpans, id, 1, UINT64_MAX),
    COPY(TaskSpans, asked_ns),
    COPY(TaskSpans, answered_ns),
    COPY(TaskSpans, clock),
    POSITION(TaskSpans, position),
    MESSAGES(TaskSpans, spans, TraceSpan, spans, span_count, LIMIT_TRACE_SPANS),
    COPY(TaskSpans, sent),
    COPY(TaskSpans, lost),
    BOOL(TaskSpans, ended),
    BOOL(TaskSpans, own_numbers),
};
TABLE(TaskSpans, task_spans);

ROWS(TaskTrace) = {
    COPY(TaskTrace, id),
    NUMBER_UP_TO(TaskTrace, first, end),
    POSITION(TaskTrace, end),
    NUMBER(TaskTrace, limit_us, 0, LIMIT_TRACE_TIME_US),
    COPY(TaskTrace, asked_ns),
    BOOL(TaskTrace, own_numbers),
};
TABLE(TaskTrace, task_trace);

ROWS(TraceRequest) = {
    JOB(TraceRequest, id, id.n),
    BOOL(TraceRequest, next),
    POSITION(TraceRequest, first),
    NUMBER(TraceRequest, steps, 1, LIMIT_TRACE_STEPS),
    NUMBER(TraceRequest, limit_us, 0, LIMIT_TRACE_TIME_US),
};
TABLE_WITH(TraceRequest, trace_request, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(TraceTask, struct trace_task);

ROWS(TraceTask) = {
    SLOT(TraceTask, slot),
    COPY(TraceTask, incarnation),
    SIGNED(TraceTask, state, 0, INT32_MAX),
    TEXT(TraceTask, worker, decode_name_or_empty),
    NUMBER(TraceTask, pid, 0, INT32_MAX),
    COPY(TraceTask, clock),
    COPY(TraceTask, offset_ns),
    COPY(TraceTask, error_ns),
    POSITION(TraceTask, position),
    COPY(TraceTask, spans),
    COPY(TraceTask, lost),
    COPY(TraceTask, missing),
};
static TABLE(TraceTask, trace_task);

ROWS(TraceResponse) = {
    NUMBER_UP_TO(TraceResponse, first, end),
    POSITION(TraceResponse, end),
    COPY(TraceResponse, clock_ns),
    COPY(TraceResponse, wall_us),
    MESSAGES(TraceResponse, tasks, TraceTask, tasks, task_count, LIMIT_TRACE_SPANS),
    SLOT(TraceResponse, slot),
    COPY(TraceResponse, incarnation),
    MESSAGES(TraceResponse, spans, TraceSpan, spans, span_count, LIMIT_TRACE_SPANS),
    BOOL(TraceResponse, ended),
    BOOL(TraceResponse, own_numbers),
    TEXT_FOR_PEOPLE(TraceResponse, text, decode_text),
};
TABLE_WITH(TraceResponse, trace_response, .limit_bytes = LIMIT_FRAME_BYTES);
