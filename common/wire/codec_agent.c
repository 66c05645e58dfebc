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
    struct wire_feed feed;
    Cadre__V1__Verified verified;
    Cadre__V1__TaskExit exit;
    struct wire_task_up said_up;
    Cadre__V1__Gpus gpus;
    union {
        Cadre__V1__AgentHello hello;
        Cadre__V1__AgentHeartbeat heartbeat;
        Cadre__V1__AgentDraining draining;
        Cadre__V1__AgentArrived arrived;
        Cadre__V1__AgentTaskStarted started;
        Cadre__V1__AgentTaskGone gone;
        Cadre__V1__AgentTaskCollected collected;
        Cadre__V1__AgentSaid said;
        Cadre__V1__AgentLog log;
    };
};

static void fill_kept(
    struct packer *packer, Cadre__V1__AgentHello *wire, const struct agent_hello *hello)
{
    wire->kept = packer_array(packer, hello->kept_count, sizeof *wire->kept);
    wire->n_kept = wire->kept != NULL ? hello->kept_count : 0;
    for (size_t i = 0; i < wire->n_kept; i++) {
        wire->kept[i] = hello->kept[i].n;
    }
}

static void fill_hello(
    struct packer *packer, struct wire_agent_up *storage, const struct agent_hello *hello)
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
    wire->seen = fill_term(&storage->seen, &hello->seen);
    wire->orphan_us = hello->orphan_us;
    storage->up.hello = wire;
    wire->gpus = fill_gpus(packer, &storage->gpus, &hello->gpus);
    fill_kept(packer, wire, hello);
    Cadre__V1__TaskRef **list = packer_array(packer, hello->task_count, sizeof *list);
    Cadre__V1__TaskRef *tasks = packer_array(packer, hello->task_count, sizeof *tasks);
    if (list == NULL || tasks == NULL) {
        return;
    }
    for (size_t i = 0; i < hello->task_count; i++) {
        fill_task_ref(&tasks[i], hello->tasks[i]);
        list[i] = &tasks[i];
    }
    wire->tasks = list;
    wire->n_tasks = hello->task_count;
}

static void fill_arrived(struct wire_agent_up *storage, const struct agent_arrived *arrived)
{
    Cadre__V1__AgentArrived *wire = &storage->arrived;
    cadre__v1__agent_arrived__init(wire);
    wire->job = arrived->job.n;
    fill_generation(&storage->generation, arrived->generation);
    wire->generation = &storage->generation;
    wire->tasks = arrived->tasks;
    wire->up_to = arrived->up_to;
    wire->applied = arrived->applied;
    wire->wanted = arrived->wanted;
    wire->wanted_slot = arrived->wanted_slot;
    fill_cursor(&storage->cursor, &arrived->cursor);
    wire->cursor = &storage->cursor;
    fill_feed(&storage->feed, &arrived->feed);
    wire->feed = &storage->feed.feed;
    wire->verified = fill_verified(&storage->verified, &arrived->verified);
    storage->up.arrived = wire;
}

static void fill_started(struct wire_agent_up *storage, const struct agent_task_started *started)
{
    cadre__v1__agent_task_started__init(&storage->started);
    fill_task_ref(&storage->task, started->task);
    storage->started.task = &storage->task;
    storage->started.pid = started->pid;
    storage->up.started = &storage->started;
}

static void fill_gone(
    struct packer *packer, struct wire_agent_up *storage, const struct agent_task_gone *gone)
{
    cadre__v1__agent_task_gone__init(&storage->gone);
    fill_task_ref(&storage->task, gone->task);
    storage->gone.task = &storage->task;
    fill_task_exit(packer, &storage->exit, &gone->exit);
    storage->gone.exit = &storage->exit;
    storage->gone.damaged_step = gone->damaged_step;
    storage->up.gone = &storage->gone;
}

static void fill_collected(struct packer *packer, struct wire_agent_up *storage,
    const struct agent_task_collected *collected)
{
    cadre__v1__agent_task_collected__init(&storage->collected);
    fill_task_ref(&storage->task, collected->task);
    storage->collected.task = &storage->task;
    storage->collected.code = (int32_t)collected->code;
    storage->collected.text = packer_text(packer, collected->text);
    storage->up.collected = &storage->collected;
}

static void fill_said(
    struct packer *packer, struct wire_agent_up *storage, const struct agent_said *said)
{
    cadre__v1__agent_said__init(&storage->said);
    fill_task_ref(&storage->task, said->task);
    storage->said.task = &storage->task;
    fill_task_up(packer, &storage->said_up, &said->up);
    storage->said.up = &storage->said_up.up;
    storage->up.said = &storage->said;
}

static void fill_log(struct wire_agent_up *storage, const struct agent_log *log)
{
    cadre__v1__agent_log__init(&storage->log);
    fill_task_ref(&storage->task, log->task);
    storage->log.task = &storage->task;
    storage->log.offset = log->offset;
    storage->log.data =
        (ProtobufCBinaryData){.len = log->size_bytes, .data = (uint8_t *)log->bytes};
    storage->up.log = &storage->log;
}

static void fill_agent_up(
    struct packer *packer, struct wire_agent_up *storage, const struct agent_up *up)
{
    cadre__v1__agent_up__init(&storage->up);
    storage->up.message_case = (Cadre__V1__AgentUp__MessageCase)up->type;
    storage->up.certificate_ends_us = up->certificate_ends_us;
    switch (up->type) {
    case AGENT_UP_HELLO:
        fill_hello(packer, storage, &up->hello);
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
        fill_arrived(storage, &up->arrived);
        return;
    case AGENT_UP_TASK_STARTED:
        fill_started(storage, &up->started);
        return;
    case AGENT_UP_TASK_GONE:
        fill_gone(packer, storage, &up->gone);
        return;
    case AGENT_UP_TASK_COLLECTED:
        fill_collected(packer, storage, &up->collected);
        return;
    case AGENT_UP_SAID:
        fill_said(packer, storage, &up->said);
        return;
    case AGENT_UP_LOG:
        fill_log(storage, &up->log);
        return;
    }
    CADRE_ASSERT(false);
}

static void take_kept(
    struct taker *taker, const Cadre__V1__AgentHello *wire, struct agent_hello *ret_hello)
{
    if (!take_count(taker, "AgentHello.kept", wire->n_kept, AGENT_PLACES(LIMIT_SLOTS_PER_WORKER))) {
        return;
    }
    struct job_id *kept = take_array(taker, wire->n_kept, sizeof *kept);
    taker->list = "AgentHello.kept";
    for (size_t i = 0; i < wire->n_kept && kept != NULL; i++) {
        taker->entry = i;
        kept[i] = take_job_id(taker, "AgentHello.kept", wire->kept[i]);
    }
    taker->list = NULL;
    ret_hello->kept = kept;
    ret_hello->kept_count = kept != NULL ? wire->n_kept : 0;
}

static void take_hello(
    struct taker *taker, const Cadre__V1__AgentHello *wire, struct agent_hello *ret_hello)
{
    *ret_hello = (struct agent_hello){
        .protocol_version = wire->protocol_version,
        .library_version =
            take_name_or_empty(taker, "AgentHello.library_version", wire->library_version),
        .name = take_name(taker, "AgentHello.name", wire->name),
        .host = take_name_or_empty(taker, "AgentHello.host", wire->host),
        .boot_nonce = wire->boot_nonce,
        .slots = take_u32(taker, "AgentHello.slots", wire->slots, 1, LIMIT_SLOTS_PER_WORKER),
        .cpus = wire->cpus,
        .memory_bytes = wire->memory_bytes,
        .draining = wire->draining,
        .orphan_us = wire->orphan_us,
        .gpus = take_gpus(taker, wire->gpus, true),
        .seen = take_term(taker, wire->seen),
    };
    take_kept(taker, wire, ret_hello);
    if (!take_count(taker, "AgentHello.tasks", wire->n_tasks, LIMIT_SLOTS_PER_WORKER)) {
        return;
    }
    struct task_ref *tasks = take_array(taker, wire->n_tasks, sizeof *tasks);
    if (tasks == NULL) {
        return;
    }
    taker->list = "AgentHello.tasks";
    for (size_t i = 0; i < wire->n_tasks; i++) {
        taker->entry = i;
        tasks[i] = take_task_ref(taker, "AgentHello.tasks", wire->tasks[i]);
    }
    taker->list = NULL;
    ret_hello->tasks = tasks;
    ret_hello->task_count = wire->n_tasks;
}

static void take_arrived(
    struct taker *taker, const Cadre__V1__AgentArrived *wire, struct agent_arrived *ret_arrived)
{
    *ret_arrived = (struct agent_arrived){
        .job = take_job_id(taker, "AgentArrived.job", wire->job),
        .generation = take_generation(taker, "AgentArrived.generation", wire->generation),
        .tasks = take_u32(taker, "AgentArrived.tasks", wire->tasks, 1, LIMIT_SLOTS_PER_WORKER),
        .up_to = take_position(taker, "AgentArrived.up_to", wire->up_to),
        .applied = take_number(taker, "AgentArrived.applied", wire->applied, 0, wire->up_to),
        .wanted = take_position(taker, "AgentArrived.wanted", wire->wanted),
        .wanted_slot = take_u32(taker, "AgentArrived.wanted_slot", wire->wanted_slot, 0,
            wire->wanted == 0 ? 0 : LIMIT_TASKS_PER_JOB - 1),
        .cursor = take_cursor(taker, wire->cursor),
        .feed = take_feed(taker, wire->feed),
        .verified = take_verified(taker, wire->verified),
    };
}

static void take_gone(
    struct taker *taker, const Cadre__V1__AgentTaskGone *wire, struct agent_task_gone *ret_gone)
{
    *ret_gone =
        (struct agent_task_gone){.task = take_task_ref(taker, "AgentTaskGone.task", wire->task)};
    if (take_present(taker, "AgentTaskGone.exit", wire->exit)) {
        take_task_exit(taker, wire->exit, &ret_gone->exit);
        ret_gone->damaged_step = wire->damaged_step;
    }
}

static void take_collected(struct taker *taker, const Cadre__V1__AgentTaskCollected *wire,
    struct agent_task_collected *ret_collected)
{
    *ret_collected = (struct agent_task_collected){
        .task = take_task_ref(taker, "AgentTaskCollected.task", wire->task),
        .code = (cadre_status)take_i32(
            taker, "AgentTaskCollected.code", wire->code, CADRE_OK, CADRE_UNAUTHENTICATED),
        .text = take_text(taker, "AgentTaskCollected.text", wire->text),
    };
}

static void take_said(
    struct taker *taker, const Cadre__V1__AgentSaid *wire, struct agent_said *ret_said)
{
    *ret_said = (struct agent_said){.task = take_task_ref(taker, "AgentSaid.task", wire->task)};
    if (!take_present(taker, "AgentSaid.up", wire->up)) {
        return;
    }
    if (wire->up->message_case == CADRE__V1__TASK_UP__MESSAGE_ARRIVE) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "AgentSaid.up",
            "is a TaskArrive; a daemon folds arrivals into AgentArrived");
        return;
    }
    take_task_up(taker, wire->up, &ret_said->up);
}

static void take_log(
    struct taker *taker, const Cadre__V1__AgentLog *wire, struct agent_log *ret_log)
{
    *ret_log = (struct agent_log){
        .task = take_task_ref(taker, "AgentLog.task", wire->task),
        .offset = take_number(taker, "AgentLog.offset", wire->offset, 0, INT64_MAX),
    };
    take_data(taker, "AgentLog.data", wire->data, LIMIT_LOG_CHUNK_BYTES, &ret_log->bytes,
        &ret_log->size_bytes);
    if (wire->data.len == 0) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "AgentLog.data",
            "is empty; send a log piece when there is one");
    }
}

static void take_agent_up(
    struct taker *taker, const Cadre__V1__AgentUp *wire, struct agent_up *ret_up)
{
    *ret_up = (struct agent_up){.type = (enum agent_up_type)wire->message_case,
        .certificate_ends_us = take_number(
            taker, "AgentUp.certificate_ends_us", wire->certificate_ends_us, 0, INT64_MAX)};
    switch (wire->message_case) {
    case CADRE__V1__AGENT_UP__MESSAGE_HELLO:
        take_hello(taker, wire->hello, &ret_up->hello);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_HEARTBEAT:
    case CADRE__V1__AGENT_UP__MESSAGE_DRAINING:
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_ARRIVED:
        take_arrived(taker, wire->arrived, &ret_up->arrived);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_STARTED:
        ret_up->started.task = take_task_ref(taker, "AgentTaskStarted.task", wire->started->task);
        ret_up->started.pid =
            take_u32(taker, "AgentTaskStarted.pid", wire->started->pid, 1, INT32_MAX);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_GONE:
        take_gone(taker, wire->gone, &ret_up->gone);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_COLLECTED:
        take_collected(taker, wire->collected, &ret_up->collected);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_SAID:
        take_said(taker, wire->said, &ret_up->said);
        return;
    case CADRE__V1__AGENT_UP__MESSAGE_LOG:
        take_log(taker, wire->log, &ret_up->log);
        return;
    default:
        taker_fail(
            taker, CADRE_INVALID_ARGUMENT, "AgentUp", "has no message that this version knows");
    }
}

cadre_status wire_pack_agent_up(
    const struct agent_up *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    struct wire_agent_up storage;
    fill_agent_up(&packer, &storage, message);
    return packer_finish(&packer, &storage.up.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_agent_up(const void *bytes, size_t size, struct wire_arena *arena,
    struct agent_up *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__AgentUp *wire =
        taker_open(&taker, &cadre__v1__agent_up__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        take_agent_up(&taker, wire, ret_message);
    }
    return taker.status;
}

/* ---- down ---- */

struct wire_agent_down {
    Cadre__V1__AgentDown down;
    Cadre__V1__Term term;
    Cadre__V1__TaskRef task;
    Cadre__V1__CheckpointRef checkpoint;
    union {
        struct wire_job_spec spec;
        struct wire_task_down tell_down;
    };
    union {
        Cadre__V1__AgentWelcome welcome;
        Cadre__V1__Refused refused;
        Cadre__V1__AgentStart start;
        Cadre__V1__AgentStop stop;
        Cadre__V1__AgentTell tell;
        Cadre__V1__AgentLogAck log_ack;
        Cadre__V1__AgentForget forget;
    };
};

static void fill_start(
    struct packer *packer, struct wire_agent_down *storage, const struct agent_start *start)
{
    cadre__v1__agent_start__init(&storage->start);
    fill_task_ref(&storage->task, start->task);
    storage->start.task = &storage->task;
    storage->start.task_count = start->task_count;
    fill_job_spec(packer, &storage->spec, &start->spec);
    storage->start.spec = &storage->spec.spec;
    if (start->restores) {
        fill_checkpoint_ref(&storage->checkpoint, &start->checkpoint);
        storage->start.checkpoint = &storage->checkpoint;
    }
    storage->start.predecessor = start->predecessor;
    storage->down.start = &storage->start;
}

static void fill_stop(struct wire_agent_down *storage, const struct agent_stop *stop)
{
    cadre__v1__agent_stop__init(&storage->stop);
    storage->stop.job = stop->job.n;
    if (stop->one) {
        fill_task_ref(&storage->task, stop->task);
        storage->stop.task = &storage->task;
    }
    storage->stop.grace_us = stop->grace_us;
    storage->down.stop = &storage->stop;
}

static void fill_tell(
    struct packer *packer, struct wire_agent_down *storage, const struct agent_tell *tell)
{
    cadre__v1__agent_tell__init(&storage->tell);
    storage->tell.job = tell->job.n;
    if (tell->one) {
        fill_task_ref(&storage->task, tell->task);
        storage->tell.task = &storage->task;
    }
    fill_task_down(packer, &storage->tell_down, &tell->down);
    storage->tell.down = &storage->tell_down.down;
    storage->down.tell = &storage->tell;
}

static void fill_agent_down(
    struct packer *packer, struct wire_agent_down *storage, const struct agent_down *down)
{
    cadre__v1__agent_down__init(&storage->down);
    storage->down.message_case = (Cadre__V1__AgentDown__MessageCase)down->type;
    switch (down->type) {
    case AGENT_DOWN_WELCOME:
        cadre__v1__agent_welcome__init(&storage->welcome);
        storage->welcome.worker = down->welcome.worker.n;
        storage->welcome.lease_us = down->welcome.lease_us;
        storage->welcome.term = fill_term(&storage->term, &down->welcome.term);
        storage->down.welcome = &storage->welcome;
        return;
    case AGENT_DOWN_REFUSED:
        fill_refused(packer, &storage->refused, &down->refused);
        storage->down.refused = &storage->refused;
        return;
    case AGENT_DOWN_START:
        fill_start(packer, storage, &down->start);
        return;
    case AGENT_DOWN_STOP:
        fill_stop(storage, &down->stop);
        return;
    case AGENT_DOWN_TELL:
        fill_tell(packer, storage, &down->tell);
        return;
    case AGENT_DOWN_LOG_ACK:
        cadre__v1__agent_log_ack__init(&storage->log_ack);
        fill_task_ref(&storage->task, down->log_ack.task);
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

static void take_start(
    struct taker *taker, const Cadre__V1__AgentStart *wire, struct agent_start *ret_start)
{
    *ret_start = (struct agent_start){.task = take_task_ref(taker, "AgentStart.task", wire->task)};
    ret_start->task_count = take_u32(taker, "AgentStart.task_count", wire->task_count,
        ret_start->task.slot + 1, LIMIT_TASKS_PER_JOB);
    if (take_present(taker, "AgentStart.spec", wire->spec)) {
        take_job_spec(taker, wire->spec, &ret_start->spec);
    }
    ret_start->predecessor = take_number(taker, "AgentStart.predecessor", wire->predecessor, 0,
        ret_start->task.incarnation > 0 ? ret_start->task.incarnation - 1 : 0);
    ret_start->restores = wire->checkpoint != NULL;
    ret_start->checkpoint.path = "";
    if (ret_start->restores) {
        take_checkpoint_ref(taker, wire->checkpoint, &ret_start->checkpoint);
    }
}

/* The task of a stop or a tell, when it is for one only. */
static bool take_one(struct taker *taker, const char *field, const Cadre__V1__TaskRef *wire,
    struct job_id job, struct task_ref *ret_task)
{
    if (wire == NULL) {
        return false;
    }
    *ret_task = take_task_ref(taker, field, wire);
    if (ret_task->job.n != job.n) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, field, "is of another job than the message");
    }
    return true;
}

static void take_stop(
    struct taker *taker, const Cadre__V1__AgentStop *wire, struct agent_stop *ret_stop)
{
    *ret_stop = (struct agent_stop){
        .job = take_job_id(taker, "AgentStop.job", wire->job),
        .grace_us = take_number(taker, "AgentStop.grace_us", wire->grace_us, 0, INT64_MAX),
    };
    ret_stop->one = take_one(taker, "AgentStop.task", wire->task, ret_stop->job, &ret_stop->task);
}

static void take_tell(
    struct taker *taker, const Cadre__V1__AgentTell *wire, struct agent_tell *ret_tell)
{
    *ret_tell = (struct agent_tell){.job = take_job_id(taker, "AgentTell.job", wire->job)};
    ret_tell->one = take_one(taker, "AgentTell.task", wire->task, ret_tell->job, &ret_tell->task);
    if (take_present(taker, "AgentTell.down", wire->down)) {
        take_task_down(taker, wire->down, &ret_tell->down);
    }
}

static void take_agent_down(
    struct taker *taker, const Cadre__V1__AgentDown *wire, struct agent_down *ret_down)
{
    *ret_down = (struct agent_down){.type = (enum agent_down_type)wire->message_case};
    switch (wire->message_case) {
    case CADRE__V1__AGENT_DOWN__MESSAGE_WELCOME:
        ret_down->welcome.worker.n =
            take_number(taker, "AgentWelcome.worker", wire->welcome->worker, 1, UINT64_MAX);
        ret_down->welcome.lease_us =
            take_number(taker, "AgentWelcome.lease_us", wire->welcome->lease_us, 1, INT64_MAX);
        ret_down->welcome.term = take_term(taker, wire->welcome->term);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_REFUSED:
        take_refused(taker, wire->refused, &ret_down->refused);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_START:
        take_start(taker, wire->start, &ret_down->start);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_STOP:
        take_stop(taker, wire->stop, &ret_down->stop);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_TELL:
        take_tell(taker, wire->tell, &ret_down->tell);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_LOG_ACK:
        ret_down->log_ack.task = take_task_ref(taker, "AgentLogAck.task", wire->log_ack->task);
        ret_down->log_ack.offset =
            take_number(taker, "AgentLogAck.offset", wire->log_ack->offset, 0, INT64_MAX);
        return;
    case CADRE__V1__AGENT_DOWN__MESSAGE_FORGET:
        ret_down->forget = take_job_id(taker, "AgentForget.job", wire->forget->job);
        return;
    default:
        taker_fail(
            taker, CADRE_INVALID_ARGUMENT, "AgentDown", "has no message that this version knows");
    }
}

cadre_status wire_pack_agent_down(
    const struct agent_down *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    struct wire_agent_down storage;
    fill_agent_down(&packer, &storage, message);
    return packer_finish(&packer, &storage.down.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_agent_down(const void *bytes, size_t size, struct wire_arena *arena,
    struct agent_down *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__AgentDown *wire =
        taker_open(&taker, &cadre__v1__agent_down__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        take_agent_down(&taker, wire, ret_message);
    }
    return taker.status;
}
