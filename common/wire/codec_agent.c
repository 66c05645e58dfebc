/* SPDX-License-Identifier: Apache-2.0
 * AgentUp and AgentDown. */
#include "common/pure/assert.h"
#include "common/wire/codec.h"

_Static_assert((int)CADRE__V1__AGENT_UP__MESSAGE_HELLO == AGENT_UP_HELLO, "same numbers");
_Static_assert((int)CADRE__V1__AGENT_UP__MESSAGE_HEARTBEAT == AGENT_UP_HEARTBEAT, "same numbers");
_Static_assert((int)CADRE__V1__AGENT_UP__MESSAGE_LOG == AGENT_UP_LOG, "same numbers");
_Static_assert((int)CADRE__V1__AGENT_DOWN__MESSAGE_WELCOME == AGENT_DOWN_WELCOME, "same numbers");
_Static_assert((int)CADRE__V1__AGENT_DOWN__MESSAGE_LOG_ACK == AGENT_DOWN_LOG_ACK, "same numbers");
_Static_assert((int)CADRE__V1__AGENT_DOWN__MESSAGE_FORGET == AGENT_DOWN_FORGET, "same numbers");

/* ---- up ---- */

struct wire_agent_up {
    Cadre__V1__Term seen;
    Cadre__V1__AgentUp up;
    Cadre__V1__TaskRef task;
    Cadre__V1__Generation generation;
    Cadre__V1__Cursor cursor;
    struct wire_consumption consumption;
    Cadre__V1__Verified verified;
    Cadre__V1__TaskExit exit;
    struct wire_task_up relayed_up;
    Cadre__V1__Gpus gpus;
    union {
        Cadre__V1__AgentHello hello;
        Cadre__V1__AgentHeartbeat heartbeat;
        Cadre__V1__AgentDraining draining;
        Cadre__V1__AgentArrived arrived;
        Cadre__V1__AgentTaskStarted started;
        Cadre__V1__AgentTaskGone gone;
        Cadre__V1__AgentTaskCollected collected;
        Cadre__V1__AgentRelayUp relay_up;
        Cadre__V1__AgentLog log;
    };
};

static void encode_kept(
    struct encoder *encoder, Cadre__V1__AgentHello *wire, const struct agent_hello *hello)
{
    wire->kept = encoder_array(encoder, hello->kept_count, sizeof *wire->kept);
    wire->n_kept = wire->kept != NULL ? hello->kept_count : 0;
    for (size_t i = 0; i < wire->n_kept; i++) {
        wire->kept[i] = hello->kept[i].n;
    }
}

static void encode_hello(
    struct encoder *encoder, struct wire_agent_up *storage, const struct agent_hello *hello)
{
    Cadre__V1__AgentHello *wire = &storage->hello;
    cadre__v1__agent_hello__init(wire);
    wire->protocol_version = hello->protocol_version;
    wire->library_version = (char *)hello->library_version;
    wire->name = (char *)hello->name;
    wire->host = (char *)hello->host;
    wire->boot_nonce = hello->boot_nonce;
    wire->slots = hello->slots;
    wire->cpus = hello->cpus;
    wire->memory_bytes = hello->memory_bytes;
    wire->draining = hello->draining;
    wire->seen = encode_term(&storage->seen, &hello->seen);
    wire->orphan_us = hello->orphan_us;
    storage->up.hello = wire;
    wire->gpus = encode_gpus(encoder, &storage->gpus, &hello->gpus);
    encode_kept(encoder, wire, hello);
    Cadre__V1__TaskRef **list = encoder_array(encoder, hello->task_count, sizeof *list);
    Cadre__V1__TaskRef *tasks = encoder_array(encoder, hello->task_count, sizeof *tasks);
    if (list == NULL || tasks == NULL) {
        return;
    }
    for (size_t i = 0; i < hello->task_count; i++) {
        encode_task_ref(&tasks[i], hello->tasks[i]);
        list[i] = &tasks[i];
    }
    wire->tasks = list;
    wire->n_tasks = hello->task_count;
}

static void encode_arrived(struct wire_agent_up *storage, const struct agent_arrived *arrived)
{
    Cadre__V1__AgentArrived *wire = &storage->arrived;
    cadre__v1__agent_arrived__init(wire);
    wire->job = arrived->job.n;
    encode_generation(&storage->generation, arrived->generation);
    wire->generation = &storage->generation;
    wire->tasks = arrived->tasks;
    wire->up_to = arrived->up_to;
    wire->applied = arrived->applied;
    wire->wanted = arrived->wanted;
    wire->wanted_slot = arrived->wanted_slot;
    encode_cursor(&storage->cursor, &arrived->cursor);
    wire->cursor = &storage->cursor;
    encode_consumption(&storage->consumption, &arrived->consumption);
    wire->consumption = &storage->consumption.consumption;
    wire->verified = encode_verified(&storage->verified, &arrived->verified);
    storage->up.arrived = wire;
}

static void encode_started(struct wire_agent_up *storage, const struct agent_task_started *started)
{
    cadre__v1__agent_task_started__init(&storage->started);
    encode_task_ref(&storage->task, started->task);
    storage->started.task = &storage->task;
    storage->started.pid = started->pid;
    storage->up.started = &storage->started;
}

static void encode_gone(
    struct encoder *encoder, struct wire_agent_up *storage, const struct agent_task_gone *gone)
{
    cadre__v1__agent_task_gone__init(&storage->gone);
    encode_task_ref(&storage->task, gone->task);
    storage->gone.task = &storage->task;
    encode_task_exit(encoder, &storage->exit, &gone->exit);
    storage->gone.exit = &storage->exit;
    storage->gone.damaged_step = gone->damaged_step;
    storage->up.gone = &storage->gone;
}

static void encode_collected(struct encoder *encoder, struct wire_agent_up *storage,
    const struct agent_task_collected *collected)
{
    cadre__v1__agent_task_collected__init(&storage->collected);
    encode_task_ref(&storage->task, collected->task);
    storage->collected.task = &storage->task;
    storage->collected.code = (int32_t)collected->code;
    storage->collected.text = encoder_text(encoder, collected->text);
    storage->up.collected = &storage->collected;
}

static void encode_relay_up(
    struct encoder *encoder, struct wire_agent_up *storage, const struct agent_relay_up *relay_up)
{
    cadre__v1__agent_relay_up__init(&storage->relay_up);
    encode_task_ref(&storage->task, relay_up->task);
    storage->relay_up.task = &storage->task;
    encode_task_up(encoder, &storage->relayed_up, &relay_up->up);
    storage->relay_up.up = &storage->relayed_up.up;
    storage->up.relay_up = &storage->relay_up;
}

static void encode_log(struct wire_agent_up *storage, const struct agent_log *log)
{
    cadre__v1__agent_log__init(&storage->log);
    encode_task_ref(&storage->task, log->task);
    storage->log.task = &storage->task;
    storage->log.offset = log->offset;
    storage->log.data =
        (ProtobufCBinaryData){.len = log->size_bytes, .data = (uint8_t *)log->bytes};
    storage->up.log = &storage->log;
}

static void encode_agent_up(
    struct encoder *encoder, struct wire_agent_up *storage, const struct agent_up *up)
{
    cadre__v1__agent_up__init(&storage->up);
    storage->up.message_case = (Cadre__V1__AgentUp__MessageCase)up->type;
    storage->up.certificate_ends_us = up->certificate_ends_us;
    switch (up->type) {
    case AGENT_UP_HELLO:
        encode_hello(encoder, storage, &up->hello);
        return;
    case AGENT_UP_HEARTBEAT:
        cadre__v1__agent_heartbeat__init(&storage->heartbeat);
        storage->up.heartbeat = &storage->heartbeat;
        return;
    case AGENT_UP_DRAINING:
        cadre__v1__agent_draining__init(&storage->draining);
        storage->up.draining = &storage->draining;
        return;
    case AGENT_UP_ARRIVED:
        encode_arrived(storage, &up->arrived);
        return;
    case AGENT_UP_TASK_STARTED:
        encode_started(storage, &up->started);
        return;
    case AGENT_UP_TASK_GONE:
        encode_gone(encoder, storage, &up->gone);
        return;
    case AGENT_UP_TASK_COLLECTED:
        encode_collected(encoder, storage, &up->collected);
        return;
    case AGENT_UP_RELAY:
        encode_relay_up(encoder, storage, &up->relay_up);
        return;
    case AGENT_UP_LOG:
        encode_log(storage, &up->log);
        return;
    }
    CADRE_ASSERT(false);
}

static void decode_kept(
    struct decoder *decoder, const Cadre__V1__AgentHello *wire, struct agent_hello *ret_hello)
{
    if (!decode_count(
            decoder, "AgentHello.kept", wire->n_kept, AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER))) {
        return;
    }
    struct job_id *kept = decode_array(decoder, wire->n_kept, sizeof *kept);
    decoder->list = "AgentHello.kept";
    for (size_t i = 0; i < wire->n_kept && kept != NULL; i++) {
        decoder->entry = i;
        kept[i] = decode_job_id(decoder, "AgentHello.kept", wire->kept[i]);
    }
    decoder->list = NULL;
    ret_hello->kept = kept;
    ret_hello->kept_count = kept != NULL ? wire->n_kept : 0;
}

static void decode_hello(
    struct decoder *decoder, const Cadre__V1__AgentHello *wire, struct agent_hello *ret_hello)
{
    *ret_hello = (struct agent_hello){
        .protocol_version = wire->protocol_version,
        .library_version =
            decode_name_or_empty(decoder, "AgentHello.library_version", wire->library_version),
        .name = decode_name(decoder, "AgentHello.name", wire->name),
        .host = decode_name_or_empty(decoder, "AgentHello.host", wire->host),
        .boot_nonce = wire->boot_nonce,
        .slots = decode_u32(decoder, "AgentHello.slots", wire->slots, 1, LIMIT_SLOTS_PER_WORKER),
        .cpus = wire->cpus,
        .memory_bytes = wire->memory_bytes,
        .draining = wire->draining,
        .orphan_us = wire->orphan_us,
        .gpus = decode_gpus(decoder, wire->gpus, true),
        .seen = decode_term(decoder, wire->seen),
    };
    decode_kept(decoder, wire, ret_hello);
    if (!decode_count(decoder, "AgentHello.tasks", wire->n_tasks, LIMIT_SLOTS_PER_WORKER)) {
        return;
    }
    struct task_ref *tasks = decode_array(decoder, wire->n_tasks, sizeof *tasks);
    if (tasks == NULL) {
        return;
    }
    decoder->list = "AgentHello.tasks";
    for (size_t i = 0; i < wire->n_tasks; i++) {
        decoder->entry = i;
        tasks[i] = decode_task_ref(decoder, "AgentHello.tasks", wire->tasks[i]);
    }
    decoder->list = NULL;
    ret_hello->tasks = tasks;
    ret_hello->task_count = wire->n_tasks;
}

static void decode_arrived(
    struct decoder *decoder, const Cadre__V1__AgentArrived *wire, struct agent_arrived *ret_arrived)
{
    *ret_arrived = (struct agent_arrived){
        .job = decode_job_id(decoder, "AgentArrived.job", wire->job),
        .generation = decode_generation(decoder, "AgentArrived.generation", wire->generation),
        .tasks = decode_u32(decoder, "AgentArrived.tasks", wire->tasks, 1, LIMIT_SLOTS_PER_WORKER),
        .up_to = decode_position(decoder, "AgentArrived.up_to", wire->up_to),
        .applied = decode_number(decoder, "AgentArrived.applied", wire->applied, 0, wire->up_to),
        .wanted = decode_position(decoder, "AgentArrived.wanted", wire->wanted),
        .wanted_slot = decode_u32(decoder, "AgentArrived.wanted_slot", wire->wanted_slot, 0,
            wire->wanted == 0 ? 0 : LIMIT_TASKS_PER_JOB - 1),
        .cursor = decode_cursor(decoder, wire->cursor),
        .consumption = decode_consumption(decoder, wire->consumption),
        .verified = decode_verified(decoder, wire->verified),
    };
}

static void decode_gone(
    struct decoder *decoder, const Cadre__V1__AgentTaskGone *wire, struct agent_task_gone *ret_gone)
{
    *ret_gone = (struct agent_task_gone){
        .task = decode_task_ref(decoder, "AgentTaskGone.task", wire->task)};
    if (decode_present(decoder, "AgentTaskGone.exit", wire->exit)) {
        decode_task_exit(decoder, wire->exit, &ret_gone->exit);
        ret_gone->damaged_step = wire->damaged_step;
    }
}

static void decode_collected(struct decoder *decoder, const Cadre__V1__AgentTaskCollected *wire,
    struct agent_task_collected *ret_collected)
{
    *ret_collected = (struct agent_task_collected){
        .task = decode_task_ref(decoder, "AgentTaskCollected.task", wire->task),
        .code = (cadre_status)decode_i32(
            decoder, "AgentTaskCollected.code", wire->code, CADRE_OK, CADRE_UNAUTHENTICATED),
        .text = decode_text(decoder, "AgentTaskCollected.text", wire->text),
    };
}

static void decode_relay_up(struct decoder *decoder, const Cadre__V1__AgentRelayUp *wire,
    struct agent_relay_up *ret_relay_up)
{
    *ret_relay_up =
        (struct agent_relay_up){.task = decode_task_ref(decoder, "AgentRelayUp.task", wire->task)};
    if (!decode_present(decoder, "AgentRelayUp.up", wire->up)) {
        return;
    }
    if (wire->up->message_case == CADRE__V1__TASK_UP__MESSAGE_ARRIVE) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "AgentRelayUp.up",
            "is a TaskArrive; a daemon folds arrivals into AgentArrived");
        return;
    }
    decode_task_up(decoder, wire->up, &ret_relay_up->up);
}

static void decode_log(
    struct decoder *decoder, const Cadre__V1__AgentLog *wire, struct agent_log *ret_log)
{
    *ret_log = (struct agent_log){
        .task = decode_task_ref(decoder, "AgentLog.task", wire->task),
        .offset = decode_number(decoder, "AgentLog.offset", wire->offset, 0, INT64_MAX),
    };
    decode_data(decoder, "AgentLog.data", wire->data, LIMIT_LOG_CHUNK_BYTES, &ret_log->bytes,
        &ret_log->size_bytes);
    if (wire->data.len == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "AgentLog.data",
            "is empty; send a log piece when there is one");
    }
}

static void decode_agent_up(
    struct decoder *decoder, const Cadre__V1__AgentUp *wire, struct agent_up *ret_up)
{
    *ret_up = (struct agent_up){.type = (enum agent_up_type)wire->message_case,
        .certificate_ends_us = decode_number(
            decoder, "AgentUp.certificate_ends_us", wire->certificate_ends_us, 0, INT64_MAX)};
    switch (wire->message_case) {
    case CADRE__V1__AGENT_UP__MESSAGE_HELLO:
        decode_hello(decoder, wire->hello, &ret_up->hello);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_HEARTBEAT:
    case CADRE__V1__AGENT_UP__MESSAGE_DRAINING:
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_ARRIVED:
        decode_arrived(decoder, wire->arrived, &ret_up->arrived);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_STARTED:
        ret_up->started.task =
            decode_task_ref(decoder, "AgentTaskStarted.task", wire->started->task);
        ret_up->started.pid =
            decode_u32(decoder, "AgentTaskStarted.pid", wire->started->pid, 1, INT32_MAX);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_GONE:
        decode_gone(decoder, wire->gone, &ret_up->gone);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_COLLECTED:
        decode_collected(decoder, wire->collected, &ret_up->collected);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_RELAY_UP:
        decode_relay_up(decoder, wire->relay_up, &ret_up->relay_up);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_LOG:
        decode_log(decoder, wire->log, &ret_up->log);
        return;
    default:
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, "AgentUp", "has no message that this version knows");
    }
}

cadre_status wire_pack_agent_up(
    const struct agent_up *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    struct wire_agent_up storage;
    encode_agent_up(&encoder, &storage, message);
    return encoder_finish(&encoder, &storage.up.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_agent_up(const void *bytes, size_t size, struct wire_arena *arena,
    struct agent_up *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__AgentUp *wire =
        decoder_open(&decoder, &cadre__v1__agent_up__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_agent_up(&decoder, wire, ret_message);
    }
    return decoder.status;
}

/* ---- down ---- */

struct wire_agent_down {
    Cadre__V1__AgentDown down;
    Cadre__V1__Term term;
    Cadre__V1__TaskRef task;
    Cadre__V1__CheckpointRef checkpoint;
    union {
        struct wire_job_spec spec;
        struct wire_task_down relayed_down;
    };
    union {
        Cadre__V1__AgentWelcome welcome;
        Cadre__V1__Refused refused;
        Cadre__V1__AgentStart start;
        Cadre__V1__AgentStop stop;
        Cadre__V1__AgentRelayDown relay_down;
        Cadre__V1__AgentLogAck log_ack;
        Cadre__V1__AgentForget forget;
    };
};

static void encode_start(
    struct encoder *encoder, struct wire_agent_down *storage, const struct agent_start *start)
{
    cadre__v1__agent_start__init(&storage->start);
    encode_task_ref(&storage->task, start->task);
    storage->start.task = &storage->task;
    storage->start.task_count = start->task_count;
    encode_job_spec(encoder, &storage->spec, &start->spec);
    storage->start.spec = &storage->spec.spec;
    if (start->restores) {
        encode_checkpoint_ref(&storage->checkpoint, &start->checkpoint);
        storage->start.checkpoint = &storage->checkpoint;
    }
    storage->start.predecessor = start->predecessor;
    storage->down.start = &storage->start;
}

static void encode_stop(struct wire_agent_down *storage, const struct agent_stop *stop)
{
    cadre__v1__agent_stop__init(&storage->stop);
    storage->stop.job = stop->job.n;
    if (stop->one) {
        encode_task_ref(&storage->task, stop->task);
        storage->stop.task = &storage->task;
    }
    storage->stop.grace_us = stop->grace_us;
    storage->down.stop = &storage->stop;
}

static void encode_relay_down(struct encoder *encoder, struct wire_agent_down *storage,
    const struct agent_relay_down *relay_down)
{
    cadre__v1__agent_relay_down__init(&storage->relay_down);
    storage->relay_down.job = relay_down->job.n;
    if (relay_down->one) {
        encode_task_ref(&storage->task, relay_down->task);
        storage->relay_down.task = &storage->task;
    }
    encode_task_down(encoder, &storage->relayed_down, &relay_down->down);
    storage->relay_down.down = &storage->relayed_down.down;
    storage->down.relay_down = &storage->relay_down;
}

static void encode_agent_down(
    struct encoder *encoder, struct wire_agent_down *storage, const struct agent_down *down)
{
    cadre__v1__agent_down__init(&storage->down);
    storage->down.message_case = (Cadre__V1__AgentDown__MessageCase)down->type;
    switch (down->type) {
    case AGENT_DOWN_WELCOME:
        cadre__v1__agent_welcome__init(&storage->welcome);
        storage->welcome.worker = down->welcome.worker.n;
        storage->welcome.lease_us = down->welcome.lease_us;
        storage->welcome.term = encode_term(&storage->term, &down->welcome.term);
        storage->down.welcome = &storage->welcome;
        return;
    case AGENT_DOWN_REFUSED:
        encode_refused(encoder, &storage->refused, &down->refused);
        storage->down.refused = &storage->refused;
        return;
    case AGENT_DOWN_START:
        encode_start(encoder, storage, &down->start);
        return;
    case AGENT_DOWN_STOP:
        encode_stop(storage, &down->stop);
        return;
    case AGENT_DOWN_RELAY:
        encode_relay_down(encoder, storage, &down->relay_down);
        return;
    case AGENT_DOWN_LOG_ACK:
        cadre__v1__agent_log_ack__init(&storage->log_ack);
        encode_task_ref(&storage->task, down->log_ack.task);
        storage->log_ack.task = &storage->task;
        storage->log_ack.offset = down->log_ack.offset;
        storage->down.log_ack = &storage->log_ack;
        return;
    case AGENT_DOWN_FORGET:
        cadre__v1__agent_forget__init(&storage->forget);
        storage->forget.job = down->forget.n;
        storage->down.forget = &storage->forget;
        return;
    }
    CADRE_ASSERT(false);
}

static void decode_start(
    struct decoder *decoder, const Cadre__V1__AgentStart *wire, struct agent_start *ret_start)
{
    *ret_start =
        (struct agent_start){.task = decode_task_ref(decoder, "AgentStart.task", wire->task)};
    ret_start->task_count = decode_u32(decoder, "AgentStart.task_count", wire->task_count,
        ret_start->task.slot + 1, LIMIT_TASKS_PER_JOB);
    if (decode_present(decoder, "AgentStart.spec", wire->spec)) {
        decode_job_spec(decoder, wire->spec, &ret_start->spec);
    }
    ret_start->predecessor = decode_number(decoder, "AgentStart.predecessor", wire->predecessor, 0,
        ret_start->task.incarnation > 0 ? ret_start->task.incarnation - 1 : 0);
    ret_start->restores = wire->checkpoint != NULL;
    ret_start->checkpoint.path = "";
    if (ret_start->restores) {
        decode_checkpoint_ref(decoder, wire->checkpoint, &ret_start->checkpoint);
    }
}

/* The task of a stop or a tell, when it is for one only. */
static bool decode_one(struct decoder *decoder, const char *field, const Cadre__V1__TaskRef *wire,
    struct job_id job, struct task_ref *ret_task)
{
    if (wire == NULL) {
        return false;
    }
    *ret_task = decode_task_ref(decoder, field, wire);
    if (ret_task->job.n != job.n) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, field, "is of another job than the message");
    }
    return true;
}

static void decode_stop(
    struct decoder *decoder, const Cadre__V1__AgentStop *wire, struct agent_stop *ret_stop)
{
    *ret_stop = (struct agent_stop){
        .job = decode_job_id(decoder, "AgentStop.job", wire->job),
        .grace_us = decode_number(decoder, "AgentStop.grace_us", wire->grace_us, 0, INT64_MAX),
    };
    ret_stop->one =
        decode_one(decoder, "AgentStop.task", wire->task, ret_stop->job, &ret_stop->task);
}

static void decode_relay_down(struct decoder *decoder, const Cadre__V1__AgentRelayDown *wire,
    struct agent_relay_down *ret_relay_down)
{
    *ret_relay_down =
        (struct agent_relay_down){.job = decode_job_id(decoder, "AgentRelayDown.job", wire->job)};
    ret_relay_down->one = decode_one(
        decoder, "AgentRelayDown.task", wire->task, ret_relay_down->job, &ret_relay_down->task);
    if (decode_present(decoder, "AgentRelayDown.down", wire->down)) {
        decode_task_down(decoder, wire->down, &ret_relay_down->down);
    }
}

static void decode_agent_down(
    struct decoder *decoder, const Cadre__V1__AgentDown *wire, struct agent_down *ret_down)
{
    *ret_down = (struct agent_down){.type = (enum agent_down_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__AGENT_DOWN__MESSAGE_WELCOME:
        ret_down->welcome.worker.n =
            decode_number(decoder, "AgentWelcome.worker", wire->welcome->worker, 1, UINT64_MAX);
        ret_down->welcome.lease_us =
            decode_number(decoder, "AgentWelcome.lease_us", wire->welcome->lease_us, 1, INT64_MAX);
        ret_down->welcome.term = decode_term(decoder, wire->welcome->term);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_REFUSED:
        decode_refused(decoder, wire->refused, &ret_down->refused);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_START:
        decode_start(decoder, wire->start, &ret_down->start);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_STOP:
        decode_stop(decoder, wire->stop, &ret_down->stop);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_RELAY_DOWN:
        decode_relay_down(decoder, wire->relay_down, &ret_down->relay_down);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_LOG_ACK:
        ret_down->log_ack.task = decode_task_ref(decoder, "AgentLogAck.task", wire->log_ack->task);
        ret_down->log_ack.offset =
            decode_number(decoder, "AgentLogAck.offset", wire->log_ack->offset, 0, INT64_MAX);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_FORGET:
        ret_down->forget = decode_job_id(decoder, "AgentForget.job", wire->forget->job);
        return;
    default:
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, "AgentDown", "has no message that this version knows");
    }
}

cadre_status wire_pack_agent_down(
    const struct agent_down *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    struct wire_agent_down storage;
    encode_agent_down(&encoder, &storage, message);
    return encoder_finish(&encoder, &storage.down.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_agent_down(const void *bytes, size_t size, struct wire_arena *arena,
    struct agent_down *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__AgentDown *wire =
        decoder_open(&decoder, &cadre__v1__agent_down__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_agent_down(&decoder, wire, ret_message);
    }
    return decoder.status;
}
