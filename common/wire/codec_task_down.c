/* SPDX-License-Identifier: Apache-2.0
 * TaskDown: what a task is told. */
#include "common/pure/assert.h"
#include "common/wire/codec.h"

/* The numbers of the enum and of the oneof are those of the model. */
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_REGROUP == HALT_REGROUP, "same numbers");
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_STOP == HALT_STOP, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_PLAN == TASK_DOWN_PLAN, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_REFUSED == TASK_DOWN_REFUSED, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_WARM == TASK_DOWN_WARM, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_MEMBERS == TASK_DOWN_MEMBERS, "same numbers");

static Cadre__V1__RosterEntry **fill_roster(struct packer *packer, const struct task_plan *plan)
{
    size_t count = plan->roster_count;
    Cadre__V1__RosterEntry **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__RosterEntry *entries = packer_array(packer, count, sizeof *entries);
    if (list == NULL || entries == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct roster_entry *from = &plan->roster[i];
        cadre__v1__roster_entry__init(&entries[i]);
        entries[i].slot = from->slot;
        entries[i].incarnation = from->incarnation;
        entries[i].replicas = from->replicas;
        entries[i].mesh_address = (char *)from->mesh_address;
        list[i] = &entries[i];
    }
    return list;
}

static void fill_plan(
    struct packer *packer, struct wire_task_down *storage, const struct task_plan *plan)
{
    Cadre__V1__TaskPlan *wire = &storage->plan;
    cadre__v1__task_plan__init(wire);
    fill_generation(&storage->generation, plan->generation);
    wire->generation = &storage->generation;
    wire->roster = fill_roster(packer, plan);
    wire->n_roster = wire->roster != NULL ? plan->roster_count : 0;
    wire->resume = plan->resume;
    if (plan->source != SOURCE_NONE) {
        wire->_source_case = CADRE__V1__TASK_PLAN___SOURCE_SOURCE;
        wire->source = plan->source;
    }
    wire->key = (ProtobufCBinaryData){.len = LIMIT_JOB_KEY_BYTES, .data = (uint8_t *)plan->key};
    if (plan->checkpoint_at != POSITION_NONE) {
        wire->_checkpoint_at_case = CADRE__V1__TASK_PLAN___CHECKPOINT_AT_CHECKPOINT_AT;
        wire->checkpoint_at = plan->checkpoint_at;
    }
    if (plan->halt_at != POSITION_NONE) {
        wire->_halt_at_case = CADRE__V1__TASK_PLAN___HALT_AT_HALT_AT;
        wire->halt_at = plan->halt_at;
        wire->halt_kind = (Cadre__V1__HaltKind)plan->halt_kind;
        if (plan->halt_kind == HALT_REGROUP && plan->halt_stream != STREAM_ANY) {
            wire->_halt_stream_case = CADRE__V1__TASK_PLAN___HALT_STREAM_HALT_STREAM;
            wire->halt_stream = plan->halt_stream;
        }
    }
    storage->down.plan = wire;
}

static void fill_release(struct wire_task_down *storage, const struct task_release *release)
{
    Cadre__V1__TaskRelease *wire = &storage->release;
    cadre__v1__task_release__init(wire);
    fill_generation(&storage->generation, release->generation);
    wire->generation = &storage->generation;
    wire->up_to = release->up_to;
    if (release->checkpoint_at != POSITION_NONE) {
        wire->_checkpoint_at_case = CADRE__V1__TASK_RELEASE___CHECKPOINT_AT_CHECKPOINT_AT;
        wire->checkpoint_at = release->checkpoint_at;
    }
    if (release->halt_at != POSITION_NONE) {
        wire->_halt_at_case = CADRE__V1__TASK_RELEASE___HALT_AT_HALT_AT;
        wire->halt_at = release->halt_at;
        wire->halt_kind = (Cadre__V1__HaltKind)release->halt_kind;
        if (release->halt_kind == HALT_REGROUP && release->halt_stream != STREAM_ANY) {
            wire->_halt_stream_case = CADRE__V1__TASK_RELEASE___HALT_STREAM_HALT_STREAM;
            wire->halt_stream = release->halt_stream;
        }
    }
    if (release->published != POSITION_NONE) {
        wire->_published_case = CADRE__V1__TASK_RELEASE___PUBLISHED_PUBLISHED;
        wire->published = release->published;
    }
    storage->down.release = wire;
}

static void fill_warm(
    struct packer *packer, struct wire_task_down *storage, const struct task_warm *warm)
{
    Cadre__V1__TaskWarm *wire = &storage->warm;
    cadre__v1__task_warm__init(wire);
    wire->tasks = warm->tasks;
    storage->down.warm = wire;
    size_t count = warm->stream_count;
    Cadre__V1__StreamPosition **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__StreamPosition *streams = packer_array(packer, count, sizeof *streams);
    if (list == NULL || streams == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        cadre__v1__stream_position__init(&streams[i]);
        streams[i].stream = warm->streams[i].stream;
        streams[i].epoch = warm->streams[i].epoch;
        streams[i].steps = warm->streams[i].steps;
        streams[i].applied = warm->streams[i].applied;
        list[i] = &streams[i];
    }
    wire->streams = list;
    wire->n_streams = count;
}

void fill_task_down(
    struct packer *packer, struct wire_task_down *storage, const struct task_down *down)
{
    cadre__v1__task_down__init(&storage->down);
    storage->down.message_case = (Cadre__V1__TaskDown__MessageCase)down->type;
    switch (down->type) {
    case TASK_DOWN_PLAN:
        fill_plan(packer, storage, &down->plan);
        return;
    case TASK_DOWN_RELEASE:
        fill_release(storage, &down->release);
        return;
    case TASK_DOWN_ABORT:
        cadre__v1__task_abort__init(&storage->abort);
        fill_generation(&storage->generation, down->generation);
        storage->abort.generation = &storage->generation;
        storage->abort.reason = packer_text(packer, down->reason);
        storage->down.abort = &storage->abort;
        return;
    case TASK_DOWN_RESET:
        cadre__v1__task_reset__init(&storage->reset);
        storage->down.reset = &storage->reset;
        return;
    case TASK_DOWN_BYE:
        cadre__v1__task_bye__init(&storage->bye);
        fill_generation(&storage->generation, down->generation);
        storage->bye.generation = &storage->generation;
        storage->down.bye = &storage->bye;
        return;
    case TASK_DOWN_SUPERSEDED:
        cadre__v1__task_superseded__init(&storage->superseded);
        storage->down.superseded = &storage->superseded;
        return;
    case TASK_DOWN_REFUSED:
        fill_refused(packer, &storage->refused, &down->refused);
        storage->down.refused = &storage->refused;
        return;
    case TASK_DOWN_WARM:
        fill_warm(packer, storage, &down->warm);
        return;
    case TASK_DOWN_MEMBERS:
        fill_members(packer, &storage->members, &storage->generation, &down->members);
        storage->down.members = &storage->members;
        return;
    }
    CADRE_ASSERT(false);
}

/* A position that may be absent. */
static uint64_t take_mark(struct taker *taker, const char *field, bool given, uint64_t value)
{
    return given ? take_position(taker, field, value) : POSITION_NONE;
}

static enum halt_kind take_halt_kind(
    struct taker *taker, const char *field, bool given, int32_t value)
{
    return (enum halt_kind)take_i32(
        taker, field, value, given ? HALT_REGROUP : HALT_NONE, given ? HALT_STOP : HALT_NONE);
}

/* Of a regroup: absent is STREAM_ANY. Other halts have none. */
static uint32_t take_halt_stream(
    struct taker *taker, const char *field, bool given, uint32_t value, Cadre__V1__HaltKind kind)
{
    if (kind == CADRE__V1__HALT_KIND__HALT_KIND_REGROUP) {
        return given ? take_stream(taker, field, value) : STREAM_ANY;
    }
    if (given) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field,
            "is given, but the halt is none that waits for a stream's step");
    }
    return 0;
}

static void take_roster(
    struct taker *taker, const Cadre__V1__TaskPlan *wire, struct task_plan *ret_plan)
{
    uint64_t seen[LIMIT_TASKS_PER_JOB / 64] = {0};
    struct roster_entry *roster = take_array(taker, wire->n_roster, sizeof *roster);
    if (roster == NULL) {
        return;
    }
    taker->list = "TaskPlan.roster";
    for (size_t i = 0; i < wire->n_roster; i++) {
        const Cadre__V1__RosterEntry *from = wire->roster[i];
        taker->entry = i;
        uint32_t slot = take_u32(taker, "RosterEntry.slot", from->slot, 0, LIMIT_TASKS_PER_JOB - 1);
        if ((seen[slot / 64] >> (slot % 64) & 1) != 0) {
            taker_fail(
                taker, CADRE_INVALID_ARGUMENT, "RosterEntry.slot", "%u is there twice", slot);
        }
        seen[slot / 64] |= UINT64_C(1) << (slot % 64);
        roster[i] = (struct roster_entry){
            .slot = slot,
            .incarnation =
                take_number(taker, "RosterEntry.incarnation", from->incarnation, 1, UINT64_MAX),
            .replicas =
                take_u32(taker, "RosterEntry.replicas", from->replicas, 1, LIMIT_REPLICAS_PER_TASK),
            .mesh_address = take_address(taker, "RosterEntry.mesh_address", from->mesh_address),
        };
    }
    taker->list = NULL;
    ret_plan->roster = roster;
    ret_plan->roster_count = wire->n_roster;
}

static void take_plan(
    struct taker *taker, const Cadre__V1__TaskPlan *wire, struct task_plan *ret_plan)
{
    bool checkpoint =
        wire->_checkpoint_at_case == CADRE__V1__TASK_PLAN___CHECKPOINT_AT_CHECKPOINT_AT;
    bool halt = wire->_halt_at_case == CADRE__V1__TASK_PLAN___HALT_AT_HALT_AT;
    bool stream = wire->_halt_stream_case == CADRE__V1__TASK_PLAN___HALT_STREAM_HALT_STREAM;
    *ret_plan = (struct task_plan){
        .generation = take_generation(taker, "TaskPlan.generation", wire->generation),
        .resume = take_position(taker, "TaskPlan.resume", wire->resume),
        .checkpoint_at =
            take_mark(taker, "TaskPlan.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = take_mark(taker, "TaskPlan.halt_at", halt, wire->halt_at),
        .halt_kind = take_halt_kind(taker, "TaskPlan.halt_kind", halt, (int32_t)wire->halt_kind),
        .halt_stream = take_halt_stream(
            taker, "TaskPlan.halt_stream", stream, wire->halt_stream, wire->halt_kind),
        .source = SOURCE_NONE,
    };
    take_fixed_bytes(taker, "TaskPlan.key", wire->key, ret_plan->key, LIMIT_JOB_KEY_BYTES);
    if (wire->n_roster == 0) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "TaskPlan.roster",
            "is empty; a generation has at least one task");
    }
    if (take_count(taker, "TaskPlan.roster", wire->n_roster, LIMIT_TASKS_PER_JOB)) {
        if (wire->_source_case == CADRE__V1__TASK_PLAN___SOURCE_SOURCE) {
            ret_plan->source =
                take_u32(taker, "TaskPlan.source", wire->source, 0, (uint32_t)wire->n_roster - 1);
        }
        take_roster(taker, wire, ret_plan);
    }
}

static void take_release(
    struct taker *taker, const Cadre__V1__TaskRelease *wire, struct task_release *ret_release)
{
    bool checkpoint =
        wire->_checkpoint_at_case == CADRE__V1__TASK_RELEASE___CHECKPOINT_AT_CHECKPOINT_AT;
    bool halt = wire->_halt_at_case == CADRE__V1__TASK_RELEASE___HALT_AT_HALT_AT;
    bool stream = wire->_halt_stream_case == CADRE__V1__TASK_RELEASE___HALT_STREAM_HALT_STREAM;
    bool published = wire->_published_case == CADRE__V1__TASK_RELEASE___PUBLISHED_PUBLISHED;
    *ret_release = (struct task_release){
        .generation = take_generation(taker, "TaskRelease.generation", wire->generation),
        .up_to = take_position(taker, "TaskRelease.up_to", wire->up_to),
        .checkpoint_at =
            take_mark(taker, "TaskRelease.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = take_mark(taker, "TaskRelease.halt_at", halt, wire->halt_at),
        .halt_kind = take_halt_kind(taker, "TaskRelease.halt_kind", halt, (int32_t)wire->halt_kind),
        .halt_stream = take_halt_stream(
            taker, "TaskRelease.halt_stream", stream, wire->halt_stream, wire->halt_kind),
        .published = take_mark(taker, "TaskRelease.published", published, wire->published),
    };
}

static void take_warm(
    struct taker *taker, const Cadre__V1__TaskWarm *wire, struct task_warm *ret_warm)
{
    *ret_warm = (struct task_warm){
        .tasks = take_u32(taker, "TaskWarm.tasks", wire->tasks, 0, LIMIT_TASKS_PER_JOB)};
    if (!take_count(taker, "TaskWarm.streams", wire->n_streams, LIMIT_STREAMS)) {
        return;
    }
    struct stream_position *streams = take_array(taker, wire->n_streams, sizeof *streams);
    if (streams == NULL) {
        return;
    }
    taker->list = "TaskWarm.streams";
    for (size_t i = 0; i < wire->n_streams; i++) {
        const Cadre__V1__StreamPosition *from = wire->streams[i];
        taker->entry = i;
        streams[i] = (struct stream_position){
            .stream = take_stream(taker, "StreamPosition.stream", from->stream),
            .epoch = from->epoch,
            .steps = take_position(taker, "StreamPosition.steps", from->steps),
            .applied = take_position(taker, "StreamPosition.applied", from->applied),
        };
        for (size_t before = 0; before < i; before++) {
            if (streams[before].stream == streams[i].stream) {
                taker_fail(taker, CADRE_INVALID_ARGUMENT, "StreamPosition.stream",
                    "%u is there twice", streams[i].stream);
            }
        }
    }
    taker->list = NULL;
    ret_warm->streams = streams;
    ret_warm->stream_count = wire->n_streams;
}

void take_task_down(
    struct taker *taker, const Cadre__V1__TaskDown *wire, struct task_down *ret_down)
{
    *ret_down = (struct task_down){.type = (enum task_down_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__TASK_DOWN__MESSAGE_PLAN:
        take_plan(taker, wire->plan, &ret_down->plan);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_RELEASE:
        take_release(taker, wire->release, &ret_down->release);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_ABORT:
        ret_down->generation =
            take_generation(taker, "TaskAbort.generation", wire->abort->generation);
        ret_down->reason = take_text(taker, "TaskAbort.reason", wire->abort->reason);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_BYE:
        ret_down->generation = take_generation(taker, "TaskBye.generation", wire->bye->generation);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_RESET:
    case CADRE__V1__TASK_DOWN__MESSAGE_SUPERSEDED:
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_REFUSED:
        take_refused(taker, wire->refused, &ret_down->refused);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_WARM:
        take_warm(taker, wire->warm, &ret_down->warm);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_MEMBERS:
        take_members(taker, wire->members, &ret_down->members);
        return;
    default:
        taker_fail(
            taker, CADRE_INVALID_ARGUMENT, "TaskDown", "has no message that this version knows");
    }
}

cadre_status wire_pack_task_down(
    const struct task_down *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    struct wire_task_down storage;
    fill_task_down(&packer, &storage, message);
    return packer_finish(&packer, &storage.down.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_task_down(const void *bytes, size_t size, struct wire_arena *arena,
    struct task_down *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__TaskDown *wire =
        taker_open(&taker, &cadre__v1__task_down__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        take_task_down(&taker, wire, ret_message);
    }
    return taker.status;
}
