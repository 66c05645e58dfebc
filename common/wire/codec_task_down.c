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

static Cadre__V1__RosterEntry **encode_roster(struct encoder *encoder, const struct task_plan *plan)
{
    size_t count = plan->roster_count;
    Cadre__V1__RosterEntry **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__RosterEntry *entries = encoder_array(encoder, count, sizeof *entries);
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

static void encode_plan(
    struct encoder *encoder, struct wire_task_down *storage, const struct task_plan *plan)
{
    Cadre__V1__TaskPlan *wire = &storage->plan;
    cadre__v1__task_plan__init(wire);
    encode_generation(&storage->generation, plan->generation);
    wire->generation = &storage->generation;
    wire->roster = encode_roster(encoder, plan);
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

static void encode_release(struct wire_task_down *storage, const struct task_release *release)
{
    Cadre__V1__TaskRelease *wire = &storage->release;
    cadre__v1__task_release__init(wire);
    encode_generation(&storage->generation, release->generation);
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

static void encode_warm(
    struct encoder *encoder, struct wire_task_down *storage, const struct task_warm *warm)
{
    Cadre__V1__TaskWarm *wire = &storage->warm;
    cadre__v1__task_warm__init(wire);
    wire->tasks = warm->tasks;
    storage->down.warm = wire;
    size_t count = warm->stream_count;
    Cadre__V1__StreamPosition **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__StreamPosition *streams = encoder_array(encoder, count, sizeof *streams);
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

void encode_task_down(
    struct encoder *encoder, struct wire_task_down *storage, const struct task_down *down)
{
    cadre__v1__task_down__init(&storage->down);
    storage->down.message_case = (Cadre__V1__TaskDown__MessageCase)down->type;
    switch (down->type) {
    case TASK_DOWN_PLAN:
        encode_plan(encoder, storage, &down->plan);
        return;
    case TASK_DOWN_RELEASE:
        encode_release(storage, &down->release);
        return;
    case TASK_DOWN_ABORT:
        cadre__v1__task_abort__init(&storage->abort);
        encode_generation(&storage->generation, down->generation);
        storage->abort.generation = &storage->generation;
        storage->abort.reason = encoder_text(encoder, down->reason);
        storage->down.abort = &storage->abort;
        return;
    case TASK_DOWN_RESET:
        cadre__v1__task_reset__init(&storage->reset);
        storage->down.reset = &storage->reset;
        return;
    case TASK_DOWN_GOODBYE:
        cadre__v1__task_goodbye__init(&storage->goodbye);
        encode_generation(&storage->generation, down->generation);
        storage->goodbye.generation = &storage->generation;
        storage->down.goodbye = &storage->goodbye;
        return;
    case TASK_DOWN_SUPERSEDED:
        cadre__v1__task_superseded__init(&storage->superseded);
        storage->down.superseded = &storage->superseded;
        return;
    case TASK_DOWN_REFUSED:
        encode_refused(encoder, &storage->refused, &down->refused);
        storage->down.refused = &storage->refused;
        return;
    case TASK_DOWN_WARM:
        encode_warm(encoder, storage, &down->warm);
        return;
    case TASK_DOWN_MEMBERS:
        encode_members(encoder, &storage->members, &storage->generation, &down->members);
        storage->down.members = &storage->members;
        return;
    }
    CADRE_ASSERT(false);
}

/* A position that may be absent. */
static uint64_t decode_mark(struct decoder *decoder, const char *field, bool given, uint64_t value)
{
    return given ? decode_position(decoder, field, value) : POSITION_NONE;
}

static enum halt_kind decode_halt_kind(
    struct decoder *decoder, const char *field, bool given, int32_t value)
{
    return (enum halt_kind)decode_i32(
        decoder, field, value, given ? HALT_REGROUP : HALT_NONE, given ? HALT_STOP : HALT_NONE);
}

/* Of a regroup: absent is STREAM_ANY. Other halts have none. */
static uint32_t decode_halt_stream(struct decoder *decoder, const char *field, bool given,
    uint32_t value, Cadre__V1__HaltKind kind)
{
    if (kind == CADRE__V1__HALT_KIND__HALT_KIND_REGROUP) {
        return given ? decode_stream(decoder, field, value) : STREAM_ANY;
    }
    if (given) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field,
            "is given, but the halt is none that waits for a stream's step");
    }
    return 0;
}

static void decode_roster(
    struct decoder *decoder, const Cadre__V1__TaskPlan *wire, struct task_plan *ret_plan)
{
    uint64_t seen[LIMIT_TASKS_PER_JOB / 64] = {0};
    struct roster_entry *roster = decode_array(decoder, wire->n_roster, sizeof *roster);
    if (roster == NULL) {
        return;
    }
    decoder->list = "TaskPlan.roster";
    for (size_t i = 0; i < wire->n_roster; i++) {
        const Cadre__V1__RosterEntry *from = wire->roster[i];
        decoder->entry = i;
        uint32_t slot =
            decode_u32(decoder, "RosterEntry.slot", from->slot, 0, LIMIT_TASKS_PER_JOB - 1);
        if ((seen[slot / 64] >> (slot % 64) & 1) != 0) {
            decoder_fail(
                decoder, CADRE_INVALID_ARGUMENT, "RosterEntry.slot", "%u is there twice", slot);
        }
        seen[slot / 64] |= UINT64_C(1) << (slot % 64);
        roster[i] = (struct roster_entry){
            .slot = slot,
            .incarnation =
                decode_number(decoder, "RosterEntry.incarnation", from->incarnation, 1, UINT64_MAX),
            .replicas = decode_u32(
                decoder, "RosterEntry.replicas", from->replicas, 1, LIMIT_REPLICAS_PER_TASK),
            .mesh_address = decode_address(decoder, "RosterEntry.mesh_address", from->mesh_address),
        };
    }
    decoder->list = NULL;
    ret_plan->roster = roster;
    ret_plan->roster_count = wire->n_roster;
}

static void decode_plan(
    struct decoder *decoder, const Cadre__V1__TaskPlan *wire, struct task_plan *ret_plan)
{
    bool checkpoint =
        wire->_checkpoint_at_case == CADRE__V1__TASK_PLAN___CHECKPOINT_AT_CHECKPOINT_AT;
    bool halt = wire->_halt_at_case == CADRE__V1__TASK_PLAN___HALT_AT_HALT_AT;
    bool stream = wire->_halt_stream_case == CADRE__V1__TASK_PLAN___HALT_STREAM_HALT_STREAM;
    *ret_plan = (struct task_plan){
        .generation = decode_generation(decoder, "TaskPlan.generation", wire->generation),
        .resume = decode_position(decoder, "TaskPlan.resume", wire->resume),
        .checkpoint_at =
            decode_mark(decoder, "TaskPlan.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = decode_mark(decoder, "TaskPlan.halt_at", halt, wire->halt_at),
        .halt_kind =
            decode_halt_kind(decoder, "TaskPlan.halt_kind", halt, (int32_t)wire->halt_kind),
        .halt_stream = decode_halt_stream(
            decoder, "TaskPlan.halt_stream", stream, wire->halt_stream, wire->halt_kind),
        .source = SOURCE_NONE,
    };
    decode_fixed_bytes(decoder, "TaskPlan.key", wire->key, ret_plan->key, LIMIT_JOB_KEY_BYTES);
    if (wire->n_roster == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "TaskPlan.roster",
            "is empty; a generation has at least one task");
    }
    if (decode_count(decoder, "TaskPlan.roster", wire->n_roster, LIMIT_TASKS_PER_JOB)) {
        if (wire->_source_case == CADRE__V1__TASK_PLAN___SOURCE_SOURCE) {
            ret_plan->source = decode_u32(
                decoder, "TaskPlan.source", wire->source, 0, (uint32_t)wire->n_roster - 1);
        }
        decode_roster(decoder, wire, ret_plan);
    }
}

static void decode_release(
    struct decoder *decoder, const Cadre__V1__TaskRelease *wire, struct task_release *ret_release)
{
    bool checkpoint =
        wire->_checkpoint_at_case == CADRE__V1__TASK_RELEASE___CHECKPOINT_AT_CHECKPOINT_AT;
    bool halt = wire->_halt_at_case == CADRE__V1__TASK_RELEASE___HALT_AT_HALT_AT;
    bool stream = wire->_halt_stream_case == CADRE__V1__TASK_RELEASE___HALT_STREAM_HALT_STREAM;
    bool published = wire->_published_case == CADRE__V1__TASK_RELEASE___PUBLISHED_PUBLISHED;
    *ret_release = (struct task_release){
        .generation = decode_generation(decoder, "TaskRelease.generation", wire->generation),
        .up_to = decode_position(decoder, "TaskRelease.up_to", wire->up_to),
        .checkpoint_at =
            decode_mark(decoder, "TaskRelease.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = decode_mark(decoder, "TaskRelease.halt_at", halt, wire->halt_at),
        .halt_kind =
            decode_halt_kind(decoder, "TaskRelease.halt_kind", halt, (int32_t)wire->halt_kind),
        .halt_stream = decode_halt_stream(
            decoder, "TaskRelease.halt_stream", stream, wire->halt_stream, wire->halt_kind),
        .published = decode_mark(decoder, "TaskRelease.published", published, wire->published),
    };
}

static void decode_warm(
    struct decoder *decoder, const Cadre__V1__TaskWarm *wire, struct task_warm *ret_warm)
{
    *ret_warm = (struct task_warm){
        .tasks = decode_u32(decoder, "TaskWarm.tasks", wire->tasks, 0, LIMIT_TASKS_PER_JOB)};
    if (!decode_count(decoder, "TaskWarm.streams", wire->n_streams, LIMIT_STREAMS)) {
        return;
    }
    struct stream_position *streams = decode_array(decoder, wire->n_streams, sizeof *streams);
    if (streams == NULL) {
        return;
    }
    decoder->list = "TaskWarm.streams";
    for (size_t i = 0; i < wire->n_streams; i++) {
        const Cadre__V1__StreamPosition *from = wire->streams[i];
        decoder->entry = i;
        streams[i] = (struct stream_position){
            .stream = decode_stream(decoder, "StreamPosition.stream", from->stream),
            .epoch = from->epoch,
            .steps = decode_position(decoder, "StreamPosition.steps", from->steps),
            .applied = decode_position(decoder, "StreamPosition.applied", from->applied),
        };
        for (size_t before = 0; before < i; before++) {
            if (streams[before].stream == streams[i].stream) {
                decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "StreamPosition.stream",
                    "%u is there twice", streams[i].stream);
            }
        }
    }
    decoder->list = NULL;
    ret_warm->streams = streams;
    ret_warm->stream_count = wire->n_streams;
}

void decode_task_down(
    struct decoder *decoder, const Cadre__V1__TaskDown *wire, struct task_down *ret_down)
{
    *ret_down = (struct task_down){.type = (enum task_down_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__TASK_DOWN__MESSAGE_PLAN:
        decode_plan(decoder, wire->plan, &ret_down->plan);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_RELEASE:
        decode_release(decoder, wire->release, &ret_down->release);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_ABORT:
        ret_down->generation =
            decode_generation(decoder, "TaskAbort.generation", wire->abort->generation);
        ret_down->reason = decode_text(decoder, "TaskAbort.reason", wire->abort->reason);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_GOODBYE:
        ret_down->generation =
            decode_generation(decoder, "TaskGoodbye.generation", wire->goodbye->generation);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_RESET:
    case CADRE__V1__TASK_DOWN__MESSAGE_SUPERSEDED:
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_REFUSED:
        decode_refused(decoder, wire->refused, &ret_down->refused);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_WARM:
        decode_warm(decoder, wire->warm, &ret_down->warm);
        return;
    case CADRE__V1__TASK_DOWN__MESSAGE_MEMBERS:
        decode_members(decoder, wire->members, &ret_down->members);
        return;
    default:
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, "TaskDown", "has no message that this version knows");
    }
}

cadre_status wire_pack_task_down(
    const struct task_down *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    struct wire_task_down storage;
    encode_task_down(&encoder, &storage, message);
    return encoder_finish(&encoder, &storage.down.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_task_down(const void *bytes, size_t size, struct wire_arena *arena,
    struct task_down *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__TaskDown *wire =
        decoder_open(&decoder, &cadre__v1__task_down__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_task_down(&decoder, wire, ret_message);
    }
    return decoder.status;
}
