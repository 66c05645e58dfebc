/* SPDX-License-Identifier: Apache-2.0
 * TaskUp and TaskDown. */
#include <string.h>

#include "common/pure/assert.h"
#include "common/wire/codec.h"

/* The numbers of the two enums and of the oneofs are those of the model. */
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_HALT == REPORT_HALT, "same numbers");
_Static_assert((int)CADRE__V1__REPORT_REASON__REPORT_REASON_ABORT == REPORT_ABORT, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_PEER_ERROR == REPORT_PEER_ERROR, "same numbers");
_Static_assert(
    (int)CADRE__V1__REPORT_REASON__REPORT_REASON_FINISHED == REPORT_FINISHED, "same numbers");
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_REGROUP == HALT_REGROUP, "same numbers");
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_STOP == HALT_STOP, "same numbers");
_Static_assert((int)CADRE__V1__HALT_KIND__HALT_KIND_END == HALT_END, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_HELLO == TASK_UP_HELLO, "same numbers");
_Static_assert((int)CADRE__V1__TASK_UP__MESSAGE_PROGRESS == TASK_UP_PROGRESS, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_PLAN == TASK_DOWN_PLAN, "same numbers");
_Static_assert((int)CADRE__V1__TASK_DOWN__MESSAGE_REFUSED == TASK_DOWN_REFUSED, "same numbers");

/* ---- up ---- */

static void fill_hello(struct wire_task_up *storage, const struct task_hello *hello)
{
    Cadre__V1__TaskHello *wire = &storage->hello;
    cadre__v1__task_hello__init(wire);
    wire->frame_version = hello->frame_version;
    wire->library_version = (char *)hello->library_version;
    wire->pid = hello->pid;
    wire->replicas = hello->replicas;
    wire->mesh_address = (char *)hello->mesh_address;
    fill_generation(&storage->generation, hello->generation);
    wire->generation = &storage->generation;
    wire->position = hello->position;
    wire->clean = hello->clean;
    wire->released = hello->released;
    wire->arrived = hello->arrived;
    wire->frozen = hello->frozen;
    wire->reason = hello->frozen ? (Cadre__V1__ReportReason)hello->reason : 0;
    storage->up.hello = wire;
}

static void fill_arrive(struct wire_task_up *storage, const struct task_arrive *arrive)
{
    Cadre__V1__TaskArrive *wire = &storage->arrive;
    cadre__v1__task_arrive__init(wire);
    fill_generation(&storage->generation, arrive->generation);
    wire->generation = &storage->generation;
    wire->up_to = arrive->up_to;
    wire->applied = arrive->applied;
    wire->wanted = arrive->wanted;
    fill_cursor(&storage->cursor, &arrive->cursor);
    wire->cursor = &storage->cursor;
    wire->digest_low = arrive->digest[0];
    wire->digest_high = arrive->digest[1];
    storage->up.arrive = wire;
}

static void fill_report(
    struct packer *packer, struct wire_task_up *storage, const struct task_report *report)
{
    Cadre__V1__TaskReport *wire = &storage->report;
    cadre__v1__task_report__init(wire);
    fill_generation(&storage->generation, report->generation);
    wire->generation = &storage->generation;
    wire->position = report->position;
    wire->clean = report->clean;
    wire->reason = (Cadre__V1__ReportReason)report->reason;
    wire->text = packer_text(packer, report->text);
    storage->up.report = wire;
}

static void fill_part(struct wire_task_up *storage, const struct task_part *part)
{
    Cadre__V1__TaskPart *wire = &storage->part;
    cadre__v1__task_part__init(wire);
    fill_generation(&storage->generation, part->generation);
    wire->generation = &storage->generation;
    wire->position = part->position;
    wire->path = (char *)part->path;
    wire->size_bytes = part->size_bytes;
    wire->sha256 =
        (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)part->sha256};
    storage->up.part = wire;
}

void fill_task_up(struct packer *packer, struct wire_task_up *storage, const struct task_up *up)
{
    cadre__v1__task_up__init(&storage->up);
    storage->up.message_case = (Cadre__V1__TaskUp__MessageCase)up->type;
    switch (up->type) {
    case TASK_UP_HELLO:
        fill_hello(storage, &up->hello);
        return;
    case TASK_UP_ARRIVE:
        fill_arrive(storage, &up->arrive);
        return;
    case TASK_UP_REPORT:
        fill_report(packer, storage, &up->report);
        return;
    case TASK_UP_PART:
        fill_part(storage, &up->part);
        return;
    case TASK_UP_PROGRESS:
        fill_progress(packer, &storage->progress, &up->progress);
        storage->up.progress = &storage->progress;
        return;
    }
    CADRE_ASSERT(false);
}

static void take_hello(
    struct taker *taker, const Cadre__V1__TaskHello *wire, struct task_hello *ret_hello)
{
    *ret_hello = (struct task_hello){
        .frame_version = wire->frame_version,
        .library_version =
            take_name_or_empty(taker, "TaskHello.library_version", wire->library_version),
        .pid = take_u32(taker, "TaskHello.pid", wire->pid, 1, INT32_MAX),
        .replicas =
            take_u32(taker, "TaskHello.replicas", wire->replicas, 1, LIMIT_REPLICAS_PER_TASK),
        .mesh_address = take_address(taker, "TaskHello.mesh_address", wire->mesh_address),
        .position = take_position(taker, "TaskHello.position", wire->position),
        .clean = wire->clean,
        .released = take_position(taker, "TaskHello.released", wire->released),
        .arrived = take_position(taker, "TaskHello.arrived", wire->arrived),
        .frozen = wire->frozen,
    };
    if (wire->generation != NULL) {
        ret_hello->generation =
            (struct generation){wire->generation->number, wire->generation->nonce};
    }
    int32_t least = wire->frozen ? REPORT_HALT : 0;
    int32_t most = wire->frozen ? REPORT_FINISHED : 0;
    ret_hello->reason =
        (enum report_reason)take_i32(taker, "TaskHello.reason", (int32_t)wire->reason, least, most);
}

static void take_arrive(
    struct taker *taker, const Cadre__V1__TaskArrive *wire, struct task_arrive *ret_arrive)
{
    *ret_arrive = (struct task_arrive){
        .generation = take_generation(taker, "TaskArrive.generation", wire->generation),
        .up_to = take_position(taker, "TaskArrive.up_to", wire->up_to),
        .applied = take_number(taker, "TaskArrive.applied", wire->applied, 0, wire->up_to),
        .wanted = take_position(taker, "TaskArrive.wanted", wire->wanted),
        .cursor = take_cursor(taker, wire->cursor),
        .digest = {wire->digest_low, wire->digest_high},
    };
}

static void take_report(
    struct taker *taker, const Cadre__V1__TaskReport *wire, struct task_report *ret_report)
{
    *ret_report = (struct task_report){
        .generation = take_generation(taker, "TaskReport.generation", wire->generation),
        .position = take_position(taker, "TaskReport.position", wire->position),
        .clean = wire->clean,
        .reason = (enum report_reason)take_i32(
            taker, "TaskReport.reason", (int32_t)wire->reason, REPORT_HALT, REPORT_FINISHED),
        .text = take_text(taker, "TaskReport.text", wire->text),
    };
}

static void take_part(
    struct taker *taker, const Cadre__V1__TaskPart *wire, struct task_part *ret_part)
{
    *ret_part = (struct task_part){
        .generation = take_generation(taker, "TaskPart.generation", wire->generation),
        .position = take_position(taker, "TaskPart.position", wire->position),
        .path = take_path(taker, "TaskPart.path", wire->path),
        .size_bytes =
            take_number(taker, "TaskPart.size_bytes", wire->size_bytes, 0, LIMIT_BLOB_BYTES),
    };
    take_fixed_bytes(taker, "TaskPart.sha256", wire->sha256, ret_part->sha256, LIMIT_SHA256_BYTES);
}

void take_task_up(struct taker *taker, const Cadre__V1__TaskUp *wire, struct task_up *ret_up)
{
    *ret_up = (struct task_up){.type = (enum task_up_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__TASK_UP__MESSAGE_HELLO:
        take_hello(taker, wire->hello, &ret_up->hello);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_ARRIVE:
        take_arrive(taker, wire->arrive, &ret_up->arrive);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_REPORT:
        take_report(taker, wire->report, &ret_up->report);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_PART:
        take_part(taker, wire->part, &ret_up->part);
        return;
    case CADRE__V1__TASK_UP__MESSAGE_PROGRESS:
        take_progress(taker, wire->progress, &ret_up->progress);
        return;
    default:
        taker_fail(
            taker, CADRE_INVALID_ARGUMENT, "TaskUp", "has no message that this version knows");
    }
}

/* ---- down ---- */

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
    wire->source = plan->source;
    wire->key = (ProtobufCBinaryData){.len = LIMIT_JOB_KEY_BYTES, .data = (uint8_t *)plan->key};
    if (plan->checkpoint_at != POSITION_NONE) {
        wire->_checkpoint_at_case = CADRE__V1__TASK_PLAN___CHECKPOINT_AT_CHECKPOINT_AT;
        wire->checkpoint_at = plan->checkpoint_at;
    }
    if (plan->halt_at != POSITION_NONE) {
        wire->_halt_at_case = CADRE__V1__TASK_PLAN___HALT_AT_HALT_AT;
        wire->halt_at = plan->halt_at;
        wire->halt_kind = (Cadre__V1__HaltKind)plan->halt_kind;
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
    }
    storage->down.release = wire;
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
        taker, field, value, given ? HALT_REGROUP : HALT_NONE, given ? HALT_END : HALT_NONE);
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
    *ret_plan = (struct task_plan){
        .generation = take_generation(taker, "TaskPlan.generation", wire->generation),
        .resume = take_position(taker, "TaskPlan.resume", wire->resume),
        .checkpoint_at =
            take_mark(taker, "TaskPlan.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = take_mark(taker, "TaskPlan.halt_at", halt, wire->halt_at),
        .halt_kind = take_halt_kind(taker, "TaskPlan.halt_kind", halt, (int32_t)wire->halt_kind),
    };
    take_fixed_bytes(taker, "TaskPlan.key", wire->key, ret_plan->key, LIMIT_JOB_KEY_BYTES);
    if (wire->n_roster == 0) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "TaskPlan.roster",
            "is empty; a generation has at least one task");
    }
    if (take_count(taker, "TaskPlan.roster", wire->n_roster, LIMIT_TASKS_PER_JOB)) {
        ret_plan->source =
            take_u32(taker, "TaskPlan.source", wire->source, 0, (uint32_t)wire->n_roster - 1);
        take_roster(taker, wire, ret_plan);
    }
}

static void take_release(
    struct taker *taker, const Cadre__V1__TaskRelease *wire, struct task_release *ret_release)
{
    bool checkpoint =
        wire->_checkpoint_at_case == CADRE__V1__TASK_RELEASE___CHECKPOINT_AT_CHECKPOINT_AT;
    bool halt = wire->_halt_at_case == CADRE__V1__TASK_RELEASE___HALT_AT_HALT_AT;
    *ret_release = (struct task_release){
        .generation = take_generation(taker, "TaskRelease.generation", wire->generation),
        .up_to = take_position(taker, "TaskRelease.up_to", wire->up_to),
        .checkpoint_at =
            take_mark(taker, "TaskRelease.checkpoint_at", checkpoint, wire->checkpoint_at),
        .halt_at = take_mark(taker, "TaskRelease.halt_at", halt, wire->halt_at),
        .halt_kind = take_halt_kind(taker, "TaskRelease.halt_kind", halt, (int32_t)wire->halt_kind),
    };
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
    default:
        taker_fail(
            taker, CADRE_INVALID_ARGUMENT, "TaskDown", "has no message that this version knows");
    }
}

/* ---- the two messages by themselves ---- */

cadre_status wire_pack_task_up(
    const struct task_up *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    struct wire_task_up storage;
    fill_task_up(&packer, &storage, message);
    return packer_finish(&packer, &storage.up.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_task_up(const void *bytes, size_t size, struct wire_arena *arena,
    struct task_up *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__TaskUp *wire =
        taker_open(&taker, &cadre__v1__task_up__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        take_task_up(&taker, wire, ret_message);
    }
    return taker.status;
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
