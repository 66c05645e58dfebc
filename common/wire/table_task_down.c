/* SPDX-License-Identifier: Apache-2.0
 * TaskDown: from the coordinator to a task. */
#include "common/model/roster_tree.h"
#include "common/wire/rows.h"

/* The numbers of the enum are those of the model. */
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_REGROUP == HALT_REGROUP, "same numbers");
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_STOP == HALT_STOP, "same numbers");

/* ---- a halt, of a plan and of a release ---- */

/* Only a regroup has a stream. */
static bool halt_has_stream(uint64_t halt_at, enum halt_kind kind)
{
    return halt_at != POSITION_NONE && kind == HALT_REGROUP;
}

static void check_halt(struct decoder *decoder, uint64_t halt_at, enum halt_kind kind,
    bool stream_given, uint32_t *stream)
{
    bool given = halt_at != POSITION_NONE;
    decode_i32(decoder, "halt_kind", (int32_t)kind, given ? HALT_REGROUP : HALT_NONE,
        given ? HALT_STOP : HALT_NONE);
    if (kind != HALT_REGROUP) {
        *stream = 0;
        if (stream_given) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "halt_stream",
                "is given, but only a regroup waits for a step of a stream");
        }
    }
}

/* ---- TaskPlan ---- */

static void plan_after_fill(void *wire, const void *model)
{
    Cadre__V1__TaskPlan *to = wire;
    const struct task_plan *plan = model;
    if (plan->halt_at == POSITION_NONE) {
        to->halt_kind = CADRE__V1__HALT_KIND__HALT_KIND_UNSPECIFIED;
    }
    if (!halt_has_stream(plan->halt_at, plan->halt_kind)) {
        to->_halt_stream_case = CADRE__V1__TASK_PLAN___HALT_STREAM__NOT_SET;
    }
}

/* Each number at most once, of those below LIMIT_TASKS_PER_JOB. */
struct numbers_seen {
    uint64_t bits[LIMIT_TASKS_PER_JOB / 64];
};

static void check_first(
    struct decoder *decoder, const char *field, uint32_t number, struct numbers_seen *seen)
{
    if ((seen->bits[number / 64] >> (number % 64) & 1) != 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "%u is there twice", number);
    }
    seen->bits[number / 64] |= UINT64_C(1) << (number % 64);
}

static void check_roster(struct decoder *decoder, const struct task_plan *plan)
{
    struct numbers_seen slots = {0};
    struct numbers_seen ranks = {0};
    for (size_t i = 0; i < plan->roster_count && decoder->status == CADRE_OK; i++) {
        const struct roster_entry *entry = &plan->roster[i];
        decoder->path = (struct field_path){"RosterEntry", "TaskPlan", "roster", i};
        check_first(decoder, "slot", entry->slot, &slots);
        if (plan->members > 0 && decoder->status == CADRE_OK) {
            decode_number(decoder, "rank", entry->rank, 0, plan->members - 1);
        }
        if (plan->members > 0 && decoder->status == CADRE_OK) {
            check_first(decoder, "rank", entry->rank, &ranks);
        }
    }
}

static void plan_after_take(struct decoder *decoder, const void *wire, void *model)
{
    const Cadre__V1__TaskPlan *from = wire;
    struct task_plan *plan = model;
    check_halt(decoder, plan->halt_at, plan->halt_kind,
        from->_halt_stream_case != CADRE__V1__TASK_PLAN___HALT_STREAM__NOT_SET, &plan->halt_stream);
    if (plan->roster_count == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "roster",
            "is empty; a generation has at least one task");
        return;
    }
    if (plan->members > 0) {
        decode_number(decoder, "members", plan->members, plan->roster_count, LIMIT_TASKS_PER_JOB);
    }
    if (plan->source != SOURCE_NONE && decoder->status == CADRE_OK) {
        decode_number(decoder, "source", plan->source, 0, plan_member_count(plan) - 1);
    }
    check_roster(decoder, plan);
}

WIRE_MODEL(RosterEntry, struct roster_entry);

ROWS(RosterEntry) = {
    SLOT(RosterEntry, slot), NUMBER(RosterEntry, incarnation, 1, UINT64_MAX),
    NUMBER(RosterEntry, replicas, 1, LIMIT_REPLICAS_PER_TASK),
    TEXT(RosterEntry, mesh_address, decode_address), COPY(RosterEntry, rank), /* by members */
};
static TABLE(RosterEntry, roster_entry);

WIRE_MODEL(TaskPlan, struct task_plan);

ROWS(TaskPlan) = {
    MESSAGE(TaskPlan, generation, Generation), POSITION(TaskPlan, resume),
    POSITION_OR_NONE(TaskPlan, checkpoint_at, TASK_PLAN___CHECKPOINT_AT_CHECKPOINT_AT),
    POSITION_OR_NONE(TaskPlan, halt_at, TASK_PLAN___HALT_AT_HALT_AT),
    COPY(TaskPlan, halt_kind), /* by halt_at */
    NUMBER_OR_NONE(
        TaskPlan, halt_stream, TASK_PLAN___HALT_STREAM_HALT_STREAM, STREAM_ANY, STREAM_ANY - 1),
    BYTES(TaskPlan, key),
    MESSAGES(TaskPlan, roster, RosterEntry, roster, roster_count, LIMIT_TASKS_PER_JOB),
    NUMBER_OR_NONE(TaskPlan, source, TASK_PLAN___SOURCE_SOURCE, SOURCE_NONE, SOURCE_NONE - 1),
    COPY(TaskPlan, members), /* by roster_count */
};
static TABLE_WITH(
    TaskPlan, task_plan, .after_fill = plan_after_fill, .after_take = plan_after_take);

/* ---- TaskRelease ---- */

static void release_after_fill(void *wire, const void *model)
{
    Cadre__V1__TaskRelease *to = wire;
    const struct task_release *release = model;
    if (release->halt_at == POSITION_NONE) {
        to->halt_kind = CADRE__V1__HALT_KIND__HALT_KIND_UNSPECIFIED;
    }
    if (!halt_has_stream(release->halt_at, release->halt_kind)) {
        to->_halt_stream_case = CADRE__V1__TASK_RELEASE___HALT_STREAM__NOT_SET;
    }
}

static void release_after_take(struct decoder *decoder, const void *wire, void *model)
{
    const Cadre__V1__TaskRelease *from = wire;
    struct task_release *release = model;
    check_halt(decoder, release->halt_at, release->halt_kind,
        from->_halt_stream_case != CADRE__V1__TASK_RELEASE___HALT_STREAM__NOT_SET,
        &release->halt_stream);
}

WIRE_MODEL(TaskRelease, struct task_release);

ROWS(TaskRelease) = {
    MESSAGE(TaskRelease, generation, Generation),
    POSITION(TaskRelease, up_to),
    POSITION_OR_NONE(TaskRelease, checkpoint_at, TASK_RELEASE___CHECKPOINT_AT_CHECKPOINT_AT),
    POSITION_OR_NONE(TaskRelease, halt_at, TASK_RELEASE___HALT_AT_HALT_AT),
    COPY(TaskRelease, halt_kind), /* by halt_at */
    NUMBER_OR_NONE(TaskRelease, halt_stream, TASK_RELEASE___HALT_STREAM_HALT_STREAM, STREAM_ANY,
        STREAM_ANY - 1),
    POSITION_OR_NONE(TaskRelease, published, TASK_RELEASE___PUBLISHED_PUBLISHED),
};
static TABLE_WITH(
    TaskRelease, task_release, .after_fill = release_after_fill, .after_take = release_after_take);

/* ---- TaskWarm ---- */

WIRE_MODEL(StreamPosition, struct stream_position);

ROWS(StreamPosition) = {
    STREAM(StreamPosition, stream),
    COPY(StreamPosition, epoch),
    POSITION(StreamPosition, steps),
    POSITION(StreamPosition, applied),
};
static TABLE(StreamPosition, stream_position);

static void warm_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct task_warm *warm = model;
    for (size_t i = 0; i < warm->stream_count; i++) {
        for (size_t before = 0; before < i; before++) {
            if (warm->streams[before].stream == warm->streams[i].stream) {
                decoder->path = (struct field_path){"StreamPosition", "TaskWarm", "streams", i};
                decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "stream", "%u is there twice",
                    warm->streams[i].stream);
            }
        }
    }
}

WIRE_MODEL(TaskWarm, struct task_warm);

ROWS(TaskWarm) = {
    NUMBER(TaskWarm, tasks, 0, LIMIT_TASKS_PER_JOB),
    MESSAGES(TaskWarm, streams, StreamPosition, streams, stream_count, LIMIT_STREAMS),
};
static TABLE_WITH(TaskWarm, task_warm, .after_take = warm_after_take);

/* ---- TaskMembers ---- */

WIRE_MODEL(TaskMember, struct task_member);

ROWS(TaskMember) = {
    COPY(TaskMember, slot), /* in their order */
    COPY(TaskMember, incarnation),
    COPY(TaskMember, attempts),
    BOOL(TaskMember, here), /* of those that were started */
    TEXT(TaskMember, address, decode_address),
    COPY_AS(TaskMember, backed_number, backed.number),
    COPY_AS(TaskMember, backed_by, backed.by),
};
static TABLE(TaskMember, task_member);

static void members_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct task_members *all = model;
    uint32_t least = 0;
    if (all->member_count == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "members",
            "is empty; a job with parameter servers has at least a chief");
    }
    if (all->changes && all->number == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "changes", "are of a list without a number");
    }
    for (size_t i = 0; i < all->member_count && decoder->status == CADRE_OK; i++) {
        const struct task_member *member = &all->members[i];
        decoder->path = (struct field_path){"TaskMember", "TaskMembers", "members", i};
        decode_number(decoder, "slot", member->slot, least, LIMIT_TASKS_PER_JOB - 1);
        if (member->here && (member->incarnation == 0 || member->attempts == 0)) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "here",
                "is true of slot %u, which was not started", member->slot);
        }
        least = member->slot + 1;
    }
}

WIRE_MODEL(TaskMembers, struct task_members);

ROWS(TaskMembers) = {
    MESSAGE(TaskMembers, generation, Generation), BYTES(TaskMembers, key),
    MESSAGES(TaskMembers, members, TaskMember, members, member_count, LIMIT_TASKS_PER_JOB),
    COPY(TaskMembers, number), BOOL(TaskMembers, changes), /* of a number above 0 */
};
static TABLE_WITH(TaskMembers, task_members, .after_take = members_after_take);

/* ---- TaskDown ---- */

WIRE_MODEL(TaskAbort, struct task_down);

ROWS(TaskAbort) = {
    MESSAGE(TaskAbort, generation, Generation),
    TEXT_FOR_PEOPLE(TaskAbort, reason, decode_text),
};
static TABLE(TaskAbort, task_abort);

WIRE_MODEL(TaskGoodbye, struct task_down);

ROWS(TaskGoodbye) = {
    MESSAGE(TaskGoodbye, generation, Generation),
};
static TABLE(TaskGoodbye, task_goodbye);

WIRE_MODEL(TaskReset, struct task_down);
static TABLE_WITHOUT_ROWS(TaskReset, task_reset);

WIRE_MODEL(TaskSuperseded, struct task_down);
static TABLE_WITHOUT_ROWS(TaskSuperseded, task_superseded);

WIRE_MODEL(TaskValuesKept, struct task_down);

ROWS(TaskValuesKept) = {
    COPY_AS(TaskValuesKept, end, values_kept),
};
static TABLE(TaskValuesKept, task_values_kept);

ROWS(TaskDownMembers) = {
    MEMBER(TaskDown, plan, TaskPlan, plan, TASK_DOWN__MESSAGE_PLAN, TASK_DOWN_PLAN),
    MEMBER(TaskDown, release, TaskRelease, release, TASK_DOWN__MESSAGE_RELEASE, TASK_DOWN_RELEASE),
    MEMBER_INLINE(TaskDown, abort, TaskAbort, TASK_DOWN__MESSAGE_ABORT, TASK_DOWN_ABORT),
    MEMBER_INLINE(TaskDown, reset, TaskReset, TASK_DOWN__MESSAGE_RESET, TASK_DOWN_RESET),
    MEMBER_INLINE(TaskDown, goodbye, TaskGoodbye, TASK_DOWN__MESSAGE_GOODBYE, TASK_DOWN_GOODBYE),
    MEMBER_INLINE(
        TaskDown, superseded, TaskSuperseded, TASK_DOWN__MESSAGE_SUPERSEDED, TASK_DOWN_SUPERSEDED),
    MEMBER(TaskDown, refused, Refused, refused, TASK_DOWN__MESSAGE_REFUSED, TASK_DOWN_REFUSED),
    MEMBER(TaskDown, warm, TaskWarm, warm, TASK_DOWN__MESSAGE_WARM, TASK_DOWN_WARM),
    MEMBER(TaskDown, members, TaskMembers, members, TASK_DOWN__MESSAGE_MEMBERS, TASK_DOWN_MEMBERS),
    MEMBER_INLINE(TaskDown, values_kept, TaskValuesKept, TASK_DOWN__MESSAGE_VALUES_KEPT,
        TASK_DOWN_VALUES_KEPT),
    MEMBER(TaskDown, trace, TaskTrace, trace, TASK_DOWN__MESSAGE_TRACE, TASK_DOWN_TRACE),
};
TABLE_OF(TaskDown, task_down, ONEOF(TaskDown, TaskDownMembers), .limit_bytes = LIMIT_FRAME_BYTES);
