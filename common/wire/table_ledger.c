/* SPDX-License-Identifier: Apache-2.0
 * LedgerEntry: a commit of the coordinator's ledger. Positions are as they are, because what is
 * recorded was checked when it was decided. */
#include "common/model/ledger_entry.h"
#include "common/wire/rows.h"

#define RECORDS_MAX ((size_t)1 << 18)

/* ---- rows of members that are in the record itself ---- */

#define SLOT_AS(m, f, member) NUMBER_AS(m, f, member, 0, LIMIT_TASKS_PER_JOB - 1)
#define BOOL_AS(m, f, member)                                                                      \
    ROW(.name = #f, .kind = ROW_BOOL, .wire = AT_WIRE_IS(m, f, protobuf_c_boolean),                \
        .model = AT_MODEL_IS(m, member, bool))
#define SIGNED_AS(m, f, member, least_, most_)                                                     \
    ROW(.name = #f, .kind = ROW_SIGNED, .size = sizeof(int32_t),                                   \
        .wire = AT_WIRE(m, f) + CHECKED(IS_SIGNED(OF_WIRE(m, f))),                                 \
        .model = AT_MODEL(m, member) + CHECKED(IS_SIGNED(OF_MODEL(m, member))),                    \
        .least = (uint64_t)(int64_t)(least_), .most = (uint64_t)(int64_t)(most_))
#define TEXT_AS(m, f, member, rule, people)                                                        \
    ROW(TEXT_ROW(m, f, rule), .size = sizeof OF_MODEL(m, member), .for_people = (people),          \
        .model = AT_MODEL(m, member) + CHECKED_IS(OF_MODEL(m, member)[0], char))
#define TEXT_POINTER_AS(m, f, member, rule)                                                        \
    ROW(TEXT_ROW(m, f, rule), .for_people = true, .model = AT_MODEL_IS(m, member, const char *))
#define BYTES_AS(m, f, member)                                                                     \
    ROW(.name = #f, .kind = ROW_BYTES, .size = sizeof OF_MODEL(m, member),                         \
        .wire = AT_WIRE_IS(m, f, ProtobufCBinaryData),                                             \
        .model = AT_MODEL(m, member) + CHECKED_IS(OF_MODEL(m, member)[0], uint8_t))
#define MESSAGE_AS(m, f, M, member)          ROW(MEMBER_ROW(m, f, M, member))
#define MESSAGE_OR_NONE_AS(m, f, M, member)  ROW(MEMBER_ROW(m, f, M, member), .when = WHEN_GIVEN)
#define MESSAGE_IF_AS(m, f, M, member, flag) ROW(MEMBER_ROW(m, f, M, member), FLAG_ROW(m, flag))

WIRE_MODEL(LedgerPlacement, struct ledger_placement);

ROWS(LedgerPlacement) = {
    SLOT(LedgerPlacement, slot),
    COPY(LedgerPlacement, incarnation),
    COPY(LedgerPlacement, attempts),
    COPY(LedgerPlacement, attempts_generation),
    TEXT(LedgerPlacement, worker, decode_name_or_empty),
};
static TABLE(LedgerPlacement, ledger_placement);

WIRE_MODEL(LedgerCheckpoint, struct core_checkpoint);

ROWS(LedgerCheckpoint) = {
    COPY_AS(LedgerCheckpoint, number, generation.number),
    COPY_AS(LedgerCheckpoint, nonce, generation.nonce),
    COPY(LedgerCheckpoint, position),
    BOOL(LedgerCheckpoint, shared),
    TEXT_AS(LedgerCheckpoint, path, path, decode_manifest_or_empty, false),
    COPY(LedgerCheckpoint, manifest_bytes),
    BYTES(LedgerCheckpoint, manifest_sha256),
    COPY(LedgerCheckpoint, digest),
};
static TABLE(LedgerCheckpoint, ledger_checkpoint);

WIRE_MODEL(LedgerSubmitted, struct ledger_record);

ROWS(LedgerSubmitted) = {
    DATA(LedgerSubmitted, spec, spec, spec_bytes, LIMIT_SPEC_BYTES),
    COPY_AS(LedgerSubmitted, tasks, core.submitted.spec.tasks),
    COPY_AS(LedgerSubmitted, tasks_min, core.submitted.spec.tasks_min),
    SIGNED_AS(LedgerSubmitted, priority, core.submitted.spec.priority, INT32_MIN, INT32_MAX),
    COPY_AS(LedgerSubmitted, max_restarts, core.submitted.spec.max_restarts),
    COPY_AS(LedgerSubmitted, wait_us, core.submitted.spec.wait_us),
    COPY_AS(LedgerSubmitted, stall_us, core.submitted.spec.stall_us),
    MESSAGE_OR_NONE_AS(LedgerSubmitted, ps_job, PsJob, core.submitted.spec.ps_job),
    COPY_AS(LedgerSubmitted, gpus, core.submitted.spec.gpus),
    COPY_AS(LedgerSubmitted, time_limit_us, core.submitted.spec.time_limit_us),
    MESSAGE_IF_AS(LedgerSubmitted, origin, LedgerCheckpoint, core.submitted.checkpoint,
        core.submitted.restores),
};
static TABLE(LedgerSubmitted, ledger_submitted);

WIRE_MODEL(LedgerStarted, struct ledger_record);

ROWS(LedgerStarted) = {
    COPY_AS(LedgerStarted, incarnation_max, core.incarnation_max),
    MESSAGES(LedgerStarted, placements, LedgerPlacement, placements, placement_count,
        LIMIT_TASKS_PER_JOB),
};
static TABLE(LedgerStarted, ledger_started);

WIRE_MODEL(LedgerTask, struct ledger_record);

ROWS(LedgerTask) = {
    SLOT_AS(LedgerTask, slot, core.task.slot),
    COPY_AS(LedgerTask, incarnation, core.task.incarnation),
    COPY_AS(LedgerTask, attempts, core.task.attempts),
    COPY_AS(LedgerTask, attempts_generation, core.task.attempts_generation),
    COPY_AS(LedgerTask, backed_by, core.task.backed_by),
    TEXT_AS(LedgerTask, worker, core.task.worker, decode_name_or_empty, false),
};
static TABLE(LedgerTask, ledger_task);

WIRE_MODEL(LedgerPlan, struct ledger_record);

ROWS(LedgerPlan) = {
    COPY_AS(LedgerPlan, number, core.plan.generation.number),
    COPY_AS(LedgerPlan, nonce, core.plan.generation.nonce),
    COPY_AS(LedgerPlan, parent_number, core.plan.parent.number),
    COPY_AS(LedgerPlan, parent_nonce, core.plan.parent.nonce),
    COPY_AS(LedgerPlan, resume, core.plan.resume),
    COPY_AS(LedgerPlan, restarts, core.plan.restarts),
    BOOL_AS(LedgerPlan, restarted, core.plan.restarted),
    MESSAGES(LedgerPlan, roster, LedgerPlacement, placements, placement_count, LIMIT_TASKS_PER_JOB),
};
static TABLE(LedgerPlan, ledger_plan);

WIRE_MODEL(LedgerControl, struct ledger_record);

ROWS(LedgerControl) = {
    COPY_AS(LedgerControl, number, core.control.generation.number),
    COPY_AS(LedgerControl, nonce, core.control.generation.nonce),
    COPY_AS(LedgerControl, halt_at, core.control.halt_at),
    SIGNED_AS(LedgerControl, halt_kind, core.control.halt_kind, HALT_NONE, HALT_STOP),
    COPY_AS(LedgerControl, halt_stream, core.control.halt_stream),
};
static TABLE(LedgerControl, ledger_control);

WIRE_MODEL(LedgerWatermark, struct ledger_record);

ROWS(LedgerWatermark) = {
    COPY_AS(LedgerWatermark, number, core.watermark.generation.number),
    COPY_AS(LedgerWatermark, nonce, core.watermark.generation.nonce),
    COPY_AS(LedgerWatermark, up_to, core.watermark.up_to),
    COPY_AS(LedgerWatermark, stream, core.watermark.cursor.stream),
    COPY_AS(LedgerWatermark, epoch, core.watermark.cursor.epoch),
    COPY_AS(LedgerWatermark, first, core.watermark.cursor.first),
    COPY_AS(LedgerWatermark, begin, core.watermark.cursor.begin),
    COPY_AS(LedgerWatermark, steps, core.watermark.cursor.steps),
    BOOL_AS(LedgerWatermark, nested, core.watermark.cursor.nested),
};
static TABLE(LedgerWatermark, ledger_watermark);

WIRE_MODEL(LedgerConsumed, struct ledger_record);

ROWS(LedgerConsumed) = {
    COPY_AS(LedgerConsumed, stream, core.consumption.cursor.stream),
    COPY_AS(LedgerConsumed, epoch, core.consumption.cursor.epoch),
    COPY_AS(LedgerConsumed, first, core.consumption.cursor.first),
    COPY_AS(LedgerConsumed, begin, core.consumption.cursor.begin),
    COPY_AS(LedgerConsumed, steps, core.consumption.cursor.steps),
    BOOL_AS(LedgerConsumed, nested, core.consumption.cursor.nested),
    COPY_AS(LedgerConsumed, applied, core.consumption.consumption.steps),
    COPY_AS(LedgerConsumed, samples, core.consumption.consumption.samples),
    COPY_AS(LedgerConsumed, consumed_low, core.consumption.consumption.consumed[0]),
    COPY_AS(LedgerConsumed, consumed_high, core.consumption.consumption.consumed[1]),
    COPY_AS(LedgerConsumed, expected_low, core.consumption.consumption.expected[0]),
    COPY_AS(LedgerConsumed, expected_high, core.consumption.consumption.expected[1]),
    BOOL_AS(LedgerConsumed, provable, core.consumption.consumption.provable),
    SIGNED_AS(LedgerConsumed, files, core.consumption.consumption.files, CONSUMED_FILES_NONE,
        CONSUMED_FILES_ALL),
};
static TABLE(LedgerConsumed, ledger_consumed);

WIRE_MODEL(LedgerStream, struct ledger_record);

ROWS(LedgerStream) = {
    COPY_AS(LedgerStream, stream, core.stream.stream),
    TEXT_AS(LedgerStream, name, core.stream.name, decode_name_or_empty, false),
    COPY_AS(LedgerStream, samples, core.stream.samples),
    BOOL_AS(LedgerStream, shares, core.stream.shares),
};
static TABLE(LedgerStream, ledger_stream);

WIRE_MODEL(LedgerEndOfData, struct ledger_record);

ROWS(LedgerEndOfData) = {
    COPY_AS(LedgerEndOfData, stream, core.end_of_data.stream),
    COPY_AS(LedgerEndOfData, epoch, core.end_of_data.epoch),
    COPY_AS(LedgerEndOfData, first, core.end_of_data.first),
    COPY_AS(LedgerEndOfData, begin, core.end_of_data.begin),
    COPY_AS(LedgerEndOfData, steps, core.end_of_data.steps),
    BOOL_AS(LedgerEndOfData, nested, core.end_of_data.nested),
};
static TABLE(LedgerEndOfData, ledger_end_of_data);

WIRE_MODEL(LedgerDone, struct ledger_record);

ROWS(LedgerDone) = {
    COPY_AS(LedgerDone, number, core.done.generation.number),
    COPY_AS(LedgerDone, nonce, core.done.generation.nonce),
    COPY_AS(LedgerDone, position, core.done.position),
};
static TABLE(LedgerDone, ledger_done);

WIRE_MODEL(LedgerTaskExit, struct ledger_record);

ROWS(LedgerTaskExit) = {
    SLOT_AS(LedgerTaskExit, slot, core.task_exit.slot),
    COPY_AS(LedgerTaskExit, incarnation, core.task_exit.incarnation),
    SIGNED_AS(LedgerTaskExit, state, core.task_exit.state, TASK_EXITED, TASK_LOST),
    MESSAGE_AS(LedgerTaskExit, exit, TaskExit, core.task_exit.exit),
};
static TABLE(LedgerTaskExit, ledger_task_exit);

WIRE_MODEL(LedgerEnding, struct ledger_record);

ROWS(LedgerEnding) = {
    SIGNED_AS(LedgerEnding, state, core.ended.state, JOB_SUCCEEDED, JOB_PREEMPTED),
    SIGNED_AS(LedgerEnding, code, core.ended.code, CADRE_OK, CADRE_UNAUTHENTICATED),
    SIGNED_AS(LedgerEnding, exit_code, core.ended.exit_code, INT32_MIN, INT32_MAX),
    TEXT_AS(LedgerEnding, text, core.ended.text, decode_text, true),
    COPY(LedgerEnding, committed),
};
static TABLE(LedgerEnding, ledger_ending);

WIRE_MODEL(LedgerQueued, struct ledger_record);

static TABLE_WITHOUT_ROWS(LedgerQueued, ledger_queued);

WIRE_MODEL(LedgerBacked, struct ledger_record);

ROWS(LedgerBacked) = {
    SLOT_AS(LedgerBacked, slot, core.backed.slot),
    COPY_AS(LedgerBacked, incarnation, core.backed.incarnation),
    COPY_AS(LedgerBacked, number, core.backed.backed.number),
    COPY_AS(LedgerBacked, by, core.backed.backed.by),
};
static TABLE(LedgerBacked, ledger_backed);

WIRE_MODEL(LedgerDrained, struct ledger_record);

ROWS(LedgerDrained) = {
    TEXT_AS(LedgerDrained, worker, core.drained.worker, decode_name_or_empty, false),
    TEXT_AS(LedgerDrained, who, core.drained.who, decode_name_or_empty, true),
    TEXT_AS(LedgerDrained, why, core.drained.why, decode_name_or_empty, true),
};
static TABLE(LedgerDrained, ledger_drained);

WIRE_MODEL(LedgerCheckpointLost, struct ledger_record);

ROWS(LedgerCheckpointLost) = {
    COPY_AS(LedgerCheckpointLost, position, core.lost.position),
    TEXT_AS(LedgerCheckpointLost, why, core.lost.why, decode_text, true),
};
static TABLE(LedgerCheckpointLost, ledger_checkpoint_lost);

WIRE_MODEL(LedgerPublished, struct ledger_record);

ROWS(LedgerPublished) = {
    COPY_AS(LedgerPublished, number, core.published.number),
    COPY_AS(LedgerPublished, position, core.published.position),
};
static TABLE(LedgerPublished, ledger_published);

WIRE_MODEL(LedgerDiverged, struct ledger_record);

ROWS(LedgerDiverged) = {
    COPY_AS(LedgerDiverged, number, core.diverged.number),
    COPY_AS(LedgerDiverged, position, core.diverged.position),
};
static TABLE(LedgerDiverged, ledger_diverged);

WIRE_MODEL(LedgerCulprit, struct ledger_record);

ROWS(LedgerCulprit) = {
    TEXT_AS(LedgerCulprit, worker, core.culprit.worker, decode_name_or_empty, false),
    COPY_AS(LedgerCulprit, times, core.culprit.times),
};
static TABLE(LedgerCulprit, ledger_culprit);

WIRE_MODEL(LedgerVerified, struct ledger_record);

ROWS(LedgerVerified) = {
    COPY_AS(LedgerVerified, position, core.verified.position),
    COPY_AS(LedgerVerified, digest, core.verified.digest),
};
static TABLE(LedgerVerified, ledger_verified);

WIRE_MODEL(LedgerCheckpointDropped, struct ledger_record);

ROWS(LedgerCheckpointDropped) = {
    COPY_AS(LedgerCheckpointDropped, position, core.dropped),
};
static TABLE(LedgerCheckpointDropped, ledger_checkpoint_dropped);

WIRE_MODEL(LedgerForgotten, struct ledger_record);

static TABLE_WITHOUT_ROWS(LedgerForgotten, ledger_forgotten);

WIRE_MODEL(LedgerTerm, struct ledger_record);

ROWS(LedgerTerm) = {
    COPY_AS(LedgerTerm, start, core.start),
};
static TABLE(LedgerTerm, ledger_term);

WIRE_MODEL(LedgerEvent, struct ledger_record);

ROWS(LedgerEvent) = {
    COPY_AS(LedgerEvent, time_us, event.time_us),
    SIGNED_AS(LedgerEvent, kind, event.kind, HISTORY_SUBMITTED, INT32_MAX),
    COPY_AS(LedgerEvent, generation, event.generation),
    COPY_AS(LedgerEvent, position, event.position),
    COPY_AS(LedgerEvent, slot, event.slot),
    COPY_AS(LedgerEvent, incarnation, event.incarnation),
    COPY_AS(LedgerEvent, tasks, event.tasks),
    COPY_AS(LedgerEvent, undone, event.undone),
    BOOL_AS(LedgerEvent, restarted, event.restarted),
    COPY_AS(LedgerEvent, waited_us, event.waited_us),
    SIGNED_AS(LedgerEvent, exit_code, event.exit_code, INT32_MIN, INT32_MAX),
    SIGNED_AS(LedgerEvent, exit_signal, event.exit_signal, INT32_MIN, INT32_MAX),
    SIGNED_AS(LedgerEvent, state, event.state, 0, JOB_PREEMPTED),
    SIGNED_AS(LedgerEvent, code, event.code, CADRE_OK, CADRE_UNAUTHENTICATED),
    TEXT_POINTER_AS(LedgerEvent, worker, event.worker, decode_name_or_empty),
    TEXT_POINTER_AS(LedgerEvent, roster, event.roster, decode_name_or_empty),
    TEXT_POINTER_AS(LedgerEvent, text, event.text, decode_text),
};
static TABLE(LedgerEvent, ledger_event);

/* ---- a record, an entry ---- */

WIRE_MODEL(LedgerRecord, struct ledger_record);

static const struct wire_row rows_LedgerRecordMessage[] = {
    MEMBER_INLINE(LedgerRecord, submitted, LedgerSubmitted, LEDGER_RECORD__MESSAGE_SUBMITTED,
        CORE_RECORD_JOB),
    MEMBER_INLINE(
        LedgerRecord, started, LedgerStarted, LEDGER_RECORD__MESSAGE_STARTED, CORE_RECORD_STARTED),
    MEMBER_INLINE(LedgerRecord, task, LedgerTask, LEDGER_RECORD__MESSAGE_TASK, CORE_RECORD_TASK),
    MEMBER_INLINE(LedgerRecord, plan, LedgerPlan, LEDGER_RECORD__MESSAGE_PLAN, CORE_RECORD_PLAN),
    MEMBER_INLINE(
        LedgerRecord, control, LedgerControl, LEDGER_RECORD__MESSAGE_CONTROL, CORE_RECORD_CONTROL),
    MEMBER_INLINE(LedgerRecord, watermark, LedgerWatermark, LEDGER_RECORD__MESSAGE_WATERMARK,
        CORE_RECORD_WATERMARK),
    MEMBER_INLINE(LedgerRecord, consumed, LedgerConsumed, LEDGER_RECORD__MESSAGE_CONSUMED,
        CORE_RECORD_CONSUMED),
    MEMBER_INLINE(
        LedgerRecord, stream, LedgerStream, LEDGER_RECORD__MESSAGE_STREAM, CORE_RECORD_STREAM),
    MEMBER_INLINE(LedgerRecord, end_of_data, LedgerEndOfData, LEDGER_RECORD__MESSAGE_END_OF_DATA,
        CORE_RECORD_END_OF_DATA),
    MEMBER(LedgerRecord, checkpoint, LedgerCheckpoint, core.checkpoint,
        LEDGER_RECORD__MESSAGE_CHECKPOINT, CORE_RECORD_CHECKPOINT),
    MEMBER_INLINE(LedgerRecord, done, LedgerDone, LEDGER_RECORD__MESSAGE_DONE, CORE_RECORD_DONE),
    MEMBER_INLINE(LedgerRecord, task_exit, LedgerTaskExit, LEDGER_RECORD__MESSAGE_TASK_EXIT,
        CORE_RECORD_TASK_EXIT),
    MEMBER_INLINE(
        LedgerRecord, ending, LedgerEnding, LEDGER_RECORD__MESSAGE_ENDING, CORE_RECORD_ENDING),
    MEMBER_INLINE(
        LedgerRecord, ended, LedgerEnding, LEDGER_RECORD__MESSAGE_ENDED, CORE_RECORD_ENDED),
    MEMBER_INLINE(
        LedgerRecord, queued, LedgerQueued, LEDGER_RECORD__MESSAGE_QUEUED, CORE_RECORD_QUEUED),
    MEMBER_INLINE(
        LedgerRecord, backed, LedgerBacked, LEDGER_RECORD__MESSAGE_BACKED, CORE_RECORD_BACKED),
    MEMBER_INLINE(
        LedgerRecord, drained, LedgerDrained, LEDGER_RECORD__MESSAGE_DRAINED, CORE_RECORD_DRAINED),
    MEMBER_INLINE(LedgerRecord, undrained, LedgerDrained, LEDGER_RECORD__MESSAGE_UNDRAINED,
        CORE_RECORD_UNDRAINED),
    MEMBER_INLINE(LedgerRecord, checkpoint_lost, LedgerCheckpointLost,
        LEDGER_RECORD__MESSAGE_CHECKPOINT_LOST, CORE_RECORD_CHECKPOINT_LOST),
    MEMBER(LedgerRecord, origin, LedgerCheckpoint, core.checkpoint, LEDGER_RECORD__MESSAGE_ORIGIN,
        CORE_RECORD_ORIGIN),
    MEMBER_INLINE(LedgerRecord, published, LedgerPublished, LEDGER_RECORD__MESSAGE_PUBLISHED,
        CORE_RECORD_PUBLISHED),
    MEMBER_INLINE(LedgerRecord, diverged, LedgerDiverged, LEDGER_RECORD__MESSAGE_DIVERGED,
        CORE_RECORD_DIVERGED),
    MEMBER_INLINE(
        LedgerRecord, culprit, LedgerCulprit, LEDGER_RECORD__MESSAGE_CULPRIT, CORE_RECORD_CULPRIT),
    MEMBER_INLINE(LedgerRecord, verified, LedgerVerified, LEDGER_RECORD__MESSAGE_VERIFIED,
        CORE_RECORD_VERIFIED),
    MEMBER_INLINE(LedgerRecord, checkpoint_dropped, LedgerCheckpointDropped,
        LEDGER_RECORD__MESSAGE_CHECKPOINT_DROPPED, CORE_RECORD_CHECKPOINT_DROPPED),
    MEMBER_INLINE(LedgerRecord, forgotten, LedgerForgotten, LEDGER_RECORD__MESSAGE_FORGOTTEN,
        CORE_RECORD_FORGOTTEN),
    MEMBER_INLINE(LedgerRecord, term, LedgerTerm, LEDGER_RECORD__MESSAGE_TERM, CORE_RECORD_TERM),
    MEMBER_INLINE(LedgerRecord, event, LedgerEvent, LEDGER_RECORD__MESSAGE_EVENT, LEDGER_EVENT),
};

ROWS(LedgerRecord) = {
    COPY_AS(LedgerRecord, job, job.n),
    COPY(LedgerRecord, wall_us),
};
static TABLE_WITH(LedgerRecord, ledger_record, ONEOF(LedgerRecord, LedgerRecordMessage));

ROWS(LedgerEntry) = {
    NUMBER(LedgerEntry, format, 1, LEDGER_FORMAT),
    MESSAGES(LedgerEntry, records, LedgerRecord, records, record_count, RECORDS_MAX),
};
TABLE_WITH(LedgerEntry, ledger_entry, .limit_bytes = LIMIT_LEDGER_ENTRY_BYTES);
