/* SPDX-License-Identifier: Apache-2.0
 * TaskUp: what a task says. */
#include "common/pure/assert.h"
#include "common/wire/codec.h"

/* The numbers of the enum and of the oneof are those of the model. */
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_HALT == REPORT_HALT, "same numbers");
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_ABORT == REPORT_ABORT, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_PEER_ERROR == REPORT_PEER_ERROR, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_FINISHED == REPORT_FINISHED, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_DIVERGED == REPORT_DIVERGED, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_HELLO == TASK_UP_HELLO, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_PROGRESS == TASK_UP_PROGRESS, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_JOIN == TASK_UP_JOIN, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_STREAM == TASK_UP_STREAM, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_STALL == TASK_UP_STALL, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_SHARDS == TASK_UP_SHARDS, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_PREEMPT == TASK_UP_PREEMPT, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_BACKED == TASK_UP_BACKED, "same numbers");

static void encode_hello(struct wire_task_up *storage, const struct task_hello *hello)
{
    Cadre__V1__TaskHello *wire = &storage->hello;
    cadre__v1__task_hello__init(wire);
    wire->frame_version = hello->frame_version;
    wire->library_version = (char *)hello->library_version;
    wire->pid = hello->pid;
    wire->replicas = hello->replicas;
    wire->mesh_address = (char *)hello->mesh_address;
    encode_generation(&storage->generation, hello->generation);
    wire->generation = &storage->generation;
    wire->position = hello->position;
    wire->clean = hello->clean;
    wire->released = hello->released;
    wire->arrived = hello->arrived;
    wire->frozen = hello->frozen;
    wire->reason = hello->frozen ? (Cadre__V1__ReportReason)hello->reason : 0;
    storage->up.hello = wire;
}

static void encode_arrive(struct wire_task_up *storage, const struct task_arrive *arrive)
{
    Cadre__V1__TaskArrive *wire = &storage->arrive;
    cadre__v1__task_arrive__init(wire);
    encode_generation(&storage->generation, arrive->generation);
    wire->generation = &storage->generation;
    wire->up_to = arrive->up_to;
    wire->applied = arrive->applied;
    wire->wanted = arrive->wanted;
    encode_cursor(&storage->cursor, &arrive->cursor);
    wire->cursor = &storage->cursor;
    encode_consumption(&storage->consumption, &arrive->consumption);
    wire->consumption = &storage->consumption.consumption;
    wire->verified = encode_verified(&storage->verified, &arrive->verified);
    storage->up.arrive = wire;
}

static void encode_report(
    struct encoder *encoder, struct wire_task_up *storage, const struct task_report *report)
{
    Cadre__V1__TaskReport *wire = &storage->report;
    cadre__v1__task_report__init(wire);
    encode_generation(&storage->generation, report->generation);
    wire->generation = &storage->generation;
    wire->position = report->position;
    wire->clean = report->clean;
    wire->reason = (Cadre__V1__ReportReason)report->reason;
    wire->text = encoder_text(encoder, report->text);
    wire->code = report->reason == REPORT_FAILED ? (int32_t)report->code : CADRE_OK;
    wire->begun = report->begun;
    wire->stream = report->begun ? report->stream : 0;
    wire->nested = report->begun && report->nested;
    wire->digest = report->digest;
    wire->trusts = report->trusts;
    if (report->reason == REPORT_DIVERGED) {
        cadre__v1__divergence__init(&storage->divergence);
        storage->divergence.position = report->divergence.position;
        storage->divergence.verified = report->divergence.verified;
        storage->divergence.culprits = (uint32_t *)report->divergence.culprits;
        storage->divergence.n_culprits = report->divergence.culprit_count;
        wire->divergence = &storage->divergence;
    }
    storage->up.report = wire;
}

static void encode_part(struct wire_task_up *storage, const struct task_part *part)
{
    Cadre__V1__TaskPart *wire = &storage->part;
    cadre__v1__task_part__init(wire);
    encode_generation(&storage->generation, part->generation);
    wire->generation = &storage->generation;
    wire->position = part->position;
    wire->path = (char *)part->path;
    wire->size_bytes = part->size_bytes;
    wire->sha256 =
        (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)part->sha256};
    wire->shared = part->shared;
    wire->digest = part->digest;
    wire->compared = part->compared;
    storage->up.part = wire;
}

static void encode_join(struct wire_task_up *storage, const struct task_join *join)
{
    cadre__v1__task_join__init(&storage->join);
    storage->join.stream = join->stream;
    storage->join.epoch = join->epoch;
    storage->up.join = &storage->join;
}

static void encode_stream(struct wire_task_up *storage, const struct task_stream *stream)
{
    Cadre__V1__TaskStream *wire = &storage->stream;
    cadre__v1__task_stream__init(wire);
    wire->stream = stream->stream;
    wire->name = (char *)stream->name;
    wire->samples = stream->samples;
    wire->shares = stream->shares;
    storage->up.stream = wire;
}

static void encode_stall(struct wire_task_up *storage, const struct task_stall *stall)
{
    Cadre__V1__TaskStall *wire = &storage->stall;
    cadre__v1__task_stall__init(wire);
    encode_generation(&storage->generation, stall->generation);
    wire->generation = &storage->generation;
    wire->position = stall->position;
    wire->slot = stall->slot;
    wire->waited_us = stall->waited_us;
    if (stall->hang.at != HANG_NONE) {
        cadre__v1__task_hang__init(&storage->hang);
        storage->hang.at = (Cadre__V1__HangAt)stall->hang.at;
        storage->hang.collective = stall->hang.collective;
        storage->hang.replica = stall->hang.replica;
        storage->hang.others = stall->hang.others;
        wire->hang = &storage->hang;
    }
    storage->up.stall = wire;
}

static void encode_preempt(struct wire_task_up *storage, const struct task_preempt *preempt)
{
    cadre__v1__task_preempt__init(&storage->preempt);
    storage->preempt.stops = preempt->stops;
    storage->preempt.grace_us = preempt->grace_us;
    storage->up.preempt = &storage->preempt;
}

static void encode_backed(struct wire_task_up *storage, const struct task_backed *backed)
{
    cadre__v1__task_backed__init(&storage->backed);
    storage->backed.number = backed->number;
    storage->backed.by = backed->by;
    storage->up.backed = &storage->backed;
}

void encode_task_up(struct encoder *encoder, struct wire_task_up *storage, const struct task_up *up)
{
    cadre__v1__task_up__init(&storage->up);
    storage->up.message_case = (Cadre__V1__TaskUp__MessageCase)up->type;
    switch (up->type) {
    case TASK_UP_HELLO:
        encode_hello(storage, &up->hello);
        return;
    case TASK_UP_ARRIVE:
        encode_arrive(storage, &up->arrive);
        return;
    case TASK_UP_REPORT:
        encode_report(encoder, storage, &up->report);
        return;
    case TASK_UP_PART:
        encode_part(storage, &up->part);
        return;
    case TASK_UP_PROGRESS:
        encode_progress(encoder, &storage->progress, &up->progress);
        storage->up.progress = &storage->progress;
        return;
    case TASK_UP_JOIN:
        encode_join(storage, &up->join);
        return;
    case TASK_UP_STREAM:
        encode_stream(storage, &up->stream);
        return;
    case TASK_UP_STALL:
        encode_stall(storage, &up->stall);
        return;
    case TASK_UP_SHARDS:
        encode_shards(encoder, &storage->shards, &up->shards);
        storage->up.shards = &storage->shards;
        return;
    case TASK_UP_PREEMPT:
        encode_preempt(storage, &up->preempt);
        return;
    case TASK_UP_BACKED:
        encode_backed(storage, &up->backed);
        return;
    }
    CADRE_ASSERT(false);
}

static void decode_hello(
    struct decoder *decoder, const Cadre__V1__TaskHello *wire, struct task_hello *ret_hello)
{
    *ret_hello = (struct task_hello){
        .frame_version = wire->frame_version,
        .library_version =
            decode_name_or_empty(decoder, "TaskHello.library_version", wire->library_version),
        .pid = decode_u32(decoder, "TaskHello.pid", wire->pid, 1, INT32_MAX),
        .replicas =
            decode_u32(decoder, "TaskHello.replicas", wire->replicas, 1, LIMIT_REPLICAS_PER_TASK),
        .mesh_address = decode_address(decoder, "TaskHello.mesh_address", wire->mesh_address),
        .position = decode_position(decoder, "TaskHello.position", wire->position),
        .clean = wire->clean,
        .released = decode_position(decoder, "TaskHello.released", wire->released),
        .arrived = decode_position(decoder, "TaskHello.arrived", wire->arrived),
        .frozen = wire->frozen,
    };
    if (wire->generation != NULL) {
        ret_hello->generation =
            (struct generation){wire->generation->number, wire->generation->nonce};
    }
    int32_t least = wire->frozen ? REPORT_HALT : 0;
    int32_t most = wire->frozen ? REPORT_DIVERGED : 0;
    ret_hello->reason = (enum report_reason)decode_i32(
        decoder, "TaskHello.reason", (int32_t)wire->reason, least, most);
}

static void decode_arrive(
    struct decoder *decoder, const Cadre__V1__TaskArrive *wire, struct task_arrive *ret_arrive)
{
    *ret_arrive = (struct task_arrive){
        .generation = decode_generation(decoder, "TaskArrive.generation", wire->generation),
        .up_to = decode_position(decoder, "TaskArrive.up_to", wire->up_to),
        .applied = decode_number(decoder, "TaskArrive.applied", wire->applied, 0, wire->up_to),
        .wanted = decode_position(decoder, "TaskArrive.wanted", wire->wanted),
        .cursor = decode_cursor(decoder, wire->cursor),
        .consumption = decode_consumption(decoder, wire->consumption),
        .verified = decode_verified(decoder, wire->verified),
    };
}

static void decode_divergence(
    struct decoder *decoder, const Cadre__V1__Divergence *wire, struct divergence *ret_divergence)
{
    if (!decode_present(decoder, "TaskReport.divergence", wire)) {
        return;
    }
    *ret_divergence = (struct divergence){
        .position = decode_position(decoder, "Divergence.position", wire->position),
        .verified =
            decode_number(decoder, "Divergence.verified", wire->verified, 0, wire->position),
    };
    if (!decode_count(decoder, "Divergence.culprits", wire->n_culprits,
            CADRE_COUNT_OF(ret_divergence->culprits))) {
        return;
    }
    ret_divergence->culprit_count = (uint32_t)wire->n_culprits;
    for (size_t i = 0; i < wire->n_culprits; i++) {
        ret_divergence->culprits[i] = decode_u32(
            decoder, "Divergence.culprits", wire->culprits[i], 0, LIMIT_TASKS_PER_JOB - 1);
    }
}

static void decode_report(
    struct decoder *decoder, const Cadre__V1__TaskReport *wire, struct task_report *ret_report)
{
    bool failed = wire->reason == CADRE__V1__REPORT_REASON__REPORT_REASON_FAILED;
    *ret_report = (struct task_report){
        .generation = decode_generation(decoder, "TaskReport.generation", wire->generation),
        .position = decode_position(decoder, "TaskReport.position", wire->position),
        .clean = wire->clean,
        .reason = (enum report_reason)decode_i32(
            decoder, "TaskReport.reason", (int32_t)wire->reason, REPORT_HALT, REPORT_DIVERGED),
        .code = (cadre_status)decode_i32(decoder, "TaskReport.code", wire->code,
            failed ? CADRE_CANCELLED : CADRE_OK, failed ? CADRE_UNAUTHENTICATED : CADRE_OK),
        .text = decode_text(decoder, "TaskReport.text", wire->text),
        .begun = wire->begun,
        .stream = decode_u32(
            decoder, "TaskReport.stream", wire->stream, 0, wire->begun ? STREAM_ANY - 1 : 0),
        .nested = wire->begun && wire->nested,
        .digest = wire->digest,
        .trusts = wire->trusts,
    };
    if (ret_report->reason == REPORT_DIVERGED) {
        decode_divergence(decoder, wire->divergence, &ret_report->divergence);
    }
}

static void decode_part(
    struct decoder *decoder, const Cadre__V1__TaskPart *wire, struct task_part *ret_part)
{
    *ret_part = (struct task_part){
        .generation = decode_generation(decoder, "TaskPart.generation", wire->generation),
        .position = decode_position(decoder, "TaskPart.position", wire->position),
        .path = decode_path(decoder, "TaskPart.path", wire->path),
        .shared = wire->shared,
        .digest = wire->digest,
        .compared = wire->compared,
        .size_bytes = decode_number(
            decoder, "TaskPart.size_bytes", wire->size_bytes, 1, LIMIT_MANIFEST_BYTES),
    };
    decode_fixed_bytes(
        decoder, "TaskPart.sha256", wire->sha256, ret_part->sha256, LIMIT_SHA256_BYTES);
}

static void decode_task_stream(
    struct decoder *decoder, const Cadre__V1__TaskStream *wire, struct task_stream *ret_stream)
{
    *ret_stream = (struct task_stream){
        .stream = decode_u32(decoder, "TaskStream.stream", wire->stream, 1, STREAM_ANY - 1),
        .name = decode_name_or_empty(decoder, "TaskStream.name", wire->name),
        .samples = decode_position(decoder, "TaskStream.samples", wire->samples),
        .shares = wire->shares,
    };
}

static struct task_hang decode_hang(struct decoder *decoder, const Cadre__V1__TaskHang *wire)
{
    if (wire == NULL) {
        return (struct task_hang){.at = HANG_NONE};
    }
    bool collective = wire->at == CADRE__V1__HANG_AT__HANG_AT_COLLECTIVE;
    return (struct task_hang){
        .at = (enum hang_at)decode_i32(
            decoder, "TaskHang.at", (int32_t)wire->at, HANG_COLLECTIVE, HANG_RETURN),
        .collective = decode_u32(decoder, "TaskHang.collective", wire->collective,
            collective ? 1 : 0, collective ? UINT32_MAX : 0),
        .replica = decode_u32(decoder, "TaskHang.replica", wire->replica, 0,
            LIMIT_TASKS_PER_JOB * LIMIT_REPLICAS_PER_TASK - 1),
        .others =
            decode_u32(decoder, "TaskHang.others", wire->others, 0, LIMIT_REPLICAS_PER_TASK - 1),
    };
}

static void decode_stall(
    struct decoder *decoder, const Cadre__V1__TaskStall *wire, struct task_stall *ret_stall)
{
    *ret_stall = (struct task_stall){
        .generation = decode_generation(decoder, "TaskStall.generation", wire->generation),
        .position = decode_position(decoder, "TaskStall.position", wire->position),
        .slot = decode_u32(decoder, "TaskStall.slot", wire->slot, 0, LIMIT_TASKS_PER_JOB - 1),
        .waited_us = decode_duration(decoder, "TaskStall.waited_us", wire->waited_us),
        .hang = decode_hang(decoder, wire->hang),
    };
}

void decode_task_up(struct decoder *decoder, const Cadre__V1__TaskUp *wire, struct task_up *ret_up)
{
    *ret_up = (struct task_up){.type = (enum task_up_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__TASK_UP__MESSAGE_HELLO:
        decode_hello(decoder, wire->hello, &ret_up->hello);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_ARRIVE:
        decode_arrive(decoder, wire->arrive, &ret_up->arrive);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_REPORT:
        decode_report(decoder, wire->report, &ret_up->report);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_PART:
        decode_part(decoder, wire->part, &ret_up->part);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_PROGRESS:
        decode_progress(decoder, wire->progress, &ret_up->progress);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_JOIN:
        ret_up->join.stream = decode_stream(decoder, "TaskJoin.stream", wire->join->stream);
        ret_up->join.epoch = wire->join->epoch;
        return;
    case CADRE__V1__TASK_UP__MESSAGE_STREAM:
        decode_task_stream(decoder, wire->stream, &ret_up->stream);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_STALL:
        decode_stall(decoder, wire->stall, &ret_up->stall);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_SHARDS:
        decode_shards(decoder, wire->shards, &ret_up->shards);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_PREEMPT:
        ret_up->preempt = (struct task_preempt){.stops = wire->preempt->stops,
            .grace_us = decode_duration(decoder, "TaskPreempt.grace_us", wire->preempt->grace_us)};
        return;
    case CADRE__V1__TASK_UP__MESSAGE_BACKED:
        ret_up->backed = (struct task_backed){.number = decode_number(decoder, "TaskBacked.number",
                                                  wire->backed->number, 1, UINT64_MAX),
            .by = wire->backed->by};
        return;
    default:
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, "TaskUp", "has no message that this version knows");
    }
}

cadre_status wire_pack_task_up(
    const struct task_up *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    struct wire_task_up storage;
    encode_task_up(&encoder, &storage, message);
    return encoder_finish(&encoder, &storage.up.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_task_up(const void *bytes, size_t size, struct wire_arena *arena,
    struct task_up *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__TaskUp *wire =
        decoder_open(&decoder, &cadre__v1__task_up__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_task_up(&decoder, wire, ret_message);
    }
    return decoder.status;
}
