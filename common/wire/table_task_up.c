/* SPDX-License-Identifier: Apache-2.0
 * TaskUp: from a task to the coordinator. */
#include "common/wire/rows.h"

/* The numbers of the enum are those of the model. */
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_HALT == REPORT_HALT, "same numbers");
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_ABORT == REPORT_ABORT, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_PEER_ERROR == REPORT_PEER_ERROR, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_FINISHED == REPORT_FINISHED, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_DIVERGED == REPORT_DIVERGED, "same numbers");

/* ---- TaskHello ---- */

/* Of a joiner the number is 0. */
typedef Cadre__V1__Generation Cadre__V1__HelloGeneration;
WIRE_MODEL(HelloGeneration, struct generation);

ROWS(HelloGeneration) = {
    COPY(HelloGeneration, number),
    COPY(HelloGeneration, nonce),
};
static TABLE(HelloGeneration, generation);

static void hello_after_fill(void *wire, const void *model)
{
    Cadre__V1__TaskHello *to = wire;
    const struct task_hello *hello = model;
    if (!hello->frozen) {
        to->reason = CADRE__V1__REPORT_REASON__REPORT_REASON_UNSPECIFIED;
    }
}

static void hello_after_take(struct decoder *decoder, const void *wire, void *model)
{
    const Cadre__V1__TaskHello *from = wire;
    bool frozen = ((struct task_hello *)model)->frozen;
    decode_i32(decoder, "reason", (int32_t)from->reason, frozen ? REPORT_HALT : 0,
        frozen ? REPORT_DIVERGED : 0);
}

WIRE_MODEL(TaskHello, struct task_hello);

ROWS(TaskHello) = {
    COPY(TaskHello, frame_version),
    TEXT(TaskHello, library_version, decode_name_or_empty),
    NUMBER(TaskHello, pid, 1, INT32_MAX),
    NUMBER(TaskHello, replicas, 1, LIMIT_REPLICAS_PER_TASK),
    TEXT(TaskHello, mesh_address, decode_address),
    MESSAGE_OR_NONE(TaskHello, generation, HelloGeneration),
    POSITION(TaskHello, position),
    BOOL(TaskHello, clean),
    POSITION(TaskHello, released),
    POSITION(TaskHello, arrived),
    BOOL(TaskHello, frozen),
    COPY(TaskHello, reason), /* when frozen */
    BOOL(TaskHello, plain),
};
static TABLE_WITH(
    TaskHello, task_hello, .after_fill = hello_after_fill, .after_take = hello_after_take);

/* ---- TaskArrive ---- */

WIRE_MODEL(TaskArrive, struct task_arrive);

ROWS(TaskArrive) = {
    MESSAGE(TaskArrive, generation, Generation),
    POSITION(TaskArrive, up_to),
    NUMBER_UP_TO(TaskArrive, applied, up_to),
    POSITION(TaskArrive, wanted),
    MESSAGE_OR_NONE(TaskArrive, cursor, Cursor),
    MESSAGE_OR_NONE(TaskArrive, consumption, Consumption),
    MESSAGE_OR_NONE(TaskArrive, verified, Verified),
};
static TABLE(TaskArrive, task_arrive);

/* ---- TaskReport ---- */

WIRE_MODEL(Divergence, struct divergence);

ROWS(Divergence) = {
    POSITION(Divergence, position),
    NUMBER_UP_TO(Divergence, verified, position),
    NUMBERS(Divergence, culprits, culprit_count, 0, LIMIT_TASKS_PER_JOB - 1),
};
static TABLE(Divergence, divergence);

static void report_after_fill(void *wire, const void *model)
{
    Cadre__V1__TaskReport *to = wire;
    const struct task_report *report = model;
    if (report->reason != REPORT_FAILED) {
        to->code = CADRE_OK;
    }
    if (!report->begun) {
        to->stream = 0;
        to->nested = false;
    }
    if (report->reason != REPORT_DIVERGED) {
        to->divergence = NULL;
    }
}

static void report_after_take(struct decoder *decoder, const void *wire, void *model)
{
    const Cadre__V1__TaskReport *from = wire;
    struct task_report *report = model;
    bool failed = report->reason == REPORT_FAILED;
    decode_i32(decoder, "code", from->code, failed ? CADRE_CANCELLED : CADRE_OK,
        failed ? CADRE_UNAUTHENTICATED : CADRE_OK);
    decode_number(decoder, "stream", from->stream, 0, report->begun ? STREAM_ANY - 1 : 0);
    report->nested = report->begun && report->nested;
    if (report->reason == REPORT_DIVERGED && from->divergence == NULL) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "divergence", "is missing");
    }
}

WIRE_MODEL(TaskReport, struct task_report);

ROWS(TaskReport) = {
    MESSAGE(TaskReport, generation, Generation), POSITION(TaskReport, position),
    BOOL(TaskReport, clean), SIGNED(TaskReport, reason, REPORT_HALT, REPORT_DIVERGED),
    SIGNED(TaskReport, code, INT32_MIN, INT32_MAX), /* by the reason */
    TEXT_FOR_PEOPLE(TaskReport, text, decode_text), BOOL(TaskReport, begun),
    COPY(TaskReport, stream), /* when begun */
    BOOL(TaskReport, nested), /* when begun */
    COPY(TaskReport, digest), COPY(TaskReport, trusts),
    MESSAGE_OR_NONE(TaskReport, divergence, Divergence), /* by the reason */
};
static TABLE_WITH(
    TaskReport, task_report, .after_fill = report_after_fill, .after_take = report_after_take);

/* ---- TaskStall ---- */

static bool hang_is_given(const void *model)
{
    const struct task_hang *hang = model;
    return hang->at != HANG_NONE;
}

static void hang_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct task_hang *hang = model;
    bool collective = hang->at == HANG_COLLECTIVE;
    decode_number(
        decoder, "collective", hang->collective, collective ? 1 : 0, collective ? UINT32_MAX : 0);
}

WIRE_MODEL(TaskHang, struct task_hang);

ROWS(TaskHang) = {
    SIGNED(TaskHang, at, HANG_COLLECTIVE, HANG_RETURN),
    COPY(TaskHang, collective), /* of HANG_COLLECTIVE */
    NUMBER(TaskHang, replica, 0, LIMIT_TASKS_PER_JOB *LIMIT_REPLICAS_PER_TASK - 1),
    NUMBER(TaskHang, others, 0, LIMIT_REPLICAS_PER_TASK - 1),
};
static TABLE_WITH(TaskHang, task_hang, .is_given = hang_is_given, .after_take = hang_after_take);

WIRE_MODEL(TaskStall, struct task_stall);

ROWS(TaskStall) = {
    MESSAGE(TaskStall, generation, Generation),
    POSITION(TaskStall, position),
    SLOT(TaskStall, slot),
    SPAN(TaskStall, waited_us),
    MESSAGE_OR_NONE(TaskStall, hang, TaskHang),
};
static TABLE(TaskStall, task_stall);

/* ---- the others ---- */

WIRE_MODEL(TaskPart, struct task_part);

ROWS(TaskPart) = {
    MESSAGE(TaskPart, generation, Generation),
    POSITION(TaskPart, position),
    TEXT(TaskPart, path, decode_path),
    NUMBER(TaskPart, size_bytes, 1, LIMIT_MANIFEST_BYTES),
    BYTES(TaskPart, sha256),
    BOOL(TaskPart, shared),
    COPY(TaskPart, digest),
    BOOL(TaskPart, compared),
};
static TABLE(TaskPart, task_part);

WIRE_MODEL(TaskJoin, struct task_join);

ROWS(TaskJoin) = {
    STREAM(TaskJoin, stream),
    COPY(TaskJoin, epoch),
};
static TABLE(TaskJoin, task_join);

WIRE_MODEL(TaskStream, struct task_stream);

ROWS(TaskStream) = {
    NUMBER(TaskStream, stream, 1, STREAM_ANY - 1),
    TEXT(TaskStream, name, decode_name_or_empty),
    POSITION(TaskStream, samples),
    BOOL(TaskStream, shares),
};
static TABLE(TaskStream, task_stream);

WIRE_MODEL(TaskPreempt, struct task_preempt);

ROWS(TaskPreempt) = {
    BOOL(TaskPreempt, stops),
    SPAN(TaskPreempt, grace_us),
};
static TABLE(TaskPreempt, task_preempt);

WIRE_MODEL(TaskBacked, struct task_backed);

ROWS(TaskBacked) = {
    NUMBER(TaskBacked, number, 1, UINT64_MAX),
    COPY(TaskBacked, by),
};
static TABLE(TaskBacked, task_backed);

WIRE_MODEL(ReportedValue, struct reported_value);

ROWS(ReportedValue) = {
    NUMBER(ReportedValue, name, 0, LIMIT_METRICS - 1),
    POSITION(ReportedValue, step),
    COPY(ReportedValue, value),
};
static TABLE(ReportedValue, reported_value);

static void values_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct task_values *values = model;
    if (values->value_count == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "values", "is empty");
    }
    if (values->end < values->value_count) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "end", "is less than the number of values");
    }
    if (values->numbered && values->lap == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "lap",
            "is 0; it is at least 1 where the steps are the program's own");
    }
    for (size_t i = 0; i < values->value_count && decoder->status == CADRE_OK; i++) {
        if (values->values[i].name >= values->name_count) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "values", "has the name %u of %zu names",
                values->values[i].name, values->name_count);
        }
    }
}

WIRE_MODEL(TaskValues, struct task_values);

ROWS(TaskValues) = {
    MESSAGE(TaskValues, generation, Generation),
    BOOL(TaskValues, numbered),
    COPY(TaskValues, lap),
    TEXTS(TaskValues, names, name_count, decode_name, LIMIT_METRICS),
    MESSAGES(TaskValues, values, ReportedValue, values, value_count, LIMIT_REPORTED_VALUES),
    COPY(TaskValues, end),
};
static TABLE_WITH(TaskValues, task_values, .after_take = values_after_take);

ROWS(TaskUpMembers) = {
    MEMBER(TaskUp, hello, TaskHello, hello, TASK_UP__MESSAGE_HELLO, TASK_UP_HELLO),
    MEMBER(TaskUp, arrive, TaskArrive, arrive, TASK_UP__MESSAGE_ARRIVE, TASK_UP_ARRIVE),
    MEMBER(TaskUp, report, TaskReport, report, TASK_UP__MESSAGE_REPORT, TASK_UP_REPORT),
    MEMBER(TaskUp, part, TaskPart, part, TASK_UP__MESSAGE_PART, TASK_UP_PART),
    MEMBER(TaskUp, progress, Progress, progress, TASK_UP__MESSAGE_PROGRESS, TASK_UP_PROGRESS),
    MEMBER(TaskUp, join, TaskJoin, join, TASK_UP__MESSAGE_JOIN, TASK_UP_JOIN),
    MEMBER(TaskUp, stream, TaskStream, stream, TASK_UP__MESSAGE_STREAM, TASK_UP_STREAM),
    MEMBER(TaskUp, stall, TaskStall, stall, TASK_UP__MESSAGE_STALL, TASK_UP_STALL),
    MEMBER(TaskUp, shards, DatasetShards, shards, TASK_UP__MESSAGE_SHARDS, TASK_UP_SHARDS),
    MEMBER(TaskUp, preempt, TaskPreempt, preempt, TASK_UP__MESSAGE_PREEMPT, TASK_UP_PREEMPT),
    MEMBER(TaskUp, backed, TaskBacked, backed, TASK_UP__MESSAGE_BACKED, TASK_UP_BACKED),
    MEMBER(TaskUp, values, TaskValues, values, TASK_UP__MESSAGE_VALUES, TASK_UP_VALUES),
    MEMBER(TaskUp, spans, TaskSpans, spans, TASK_UP__MESSAGE_SPANS, TASK_UP_SPANS),
};
TABLE_OF(TaskUp, task_up, ONEOF(TaskUp, TaskUpMembers), .limit_bytes = LIMIT_FRAME_BYTES);
