/* SPDX-License-Identifier: Apache-2.0
 * AgentUp and AgentDown: between a worker daemon and the coordinator. */
#include "common/wire/rows.h"

/* ---- up ---- */

/* Only a listing omits some GPUs. An index is one of a term. */
static void hello_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_hello *hello = model;
    if (hello->protocol_newest != 0) {
        decode_number(decoder, "protocol_newest", hello->protocol_newest, hello->protocol_version,
            UINT32_MAX);
    }
    decode_number(
        decoder, "seen_index", hello->seen_index, 0, hello->seen.cluster != 0 ? UINT64_MAX : 0);
    decoder->path.message = "Gpus";
    decode_number(decoder, "omitted", hello->gpus.omitted, 0, 0);
}

WIRE_MODEL(AgentHello, struct agent_hello);

ROWS(AgentHello) = {
    COPY(AgentHello, protocol_version),
    COPY(AgentHello, protocol_newest),
    TEXT(AgentHello, library_version, decode_name_or_empty),
    TEXT(AgentHello, name, decode_name),
    TEXT(AgentHello, host, decode_name_or_empty),
    COPY(AgentHello, boot_nonce),
    NUMBER(AgentHello, slots, 1, LIMIT_SLOTS_PER_WORKER),
    COPY(AgentHello, cpus),
    COPY(AgentHello, memory_bytes),
    BOOL(AgentHello, draining),
    COPY(AgentHello, orphan_us),
    MESSAGE_OR_NONE(AgentHello, gpus, Gpus),
    MESSAGE_OR_NONE(AgentHello, seen, Term),
    COPY(AgentHello, seen_index), /* not 0 only with `seen` */
    JOBS(AgentHello, kept, kept_count, AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER)),
    MESSAGES(AgentHello, tasks, TaskRef, tasks, task_count, LIMIT_SLOTS_PER_WORKER),
};
static TABLE_WITH(AgentHello, agent_hello, .after_take = hello_after_take);

static void arrived_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_arrived *arrived = model;
    decode_number(decoder, "wanted_slot", arrived->wanted_slot, 0,
        arrived->wanted == 0 ? 0 : LIMIT_TASKS_PER_JOB - 1);
}

WIRE_MODEL(AgentArrived, struct agent_arrived);

ROWS(AgentArrived) = {
    JOB(AgentArrived, job, job.n),
    MESSAGE(AgentArrived, generation, Generation),
    NUMBER(AgentArrived, tasks, 0, LIMIT_SLOTS_PER_WORKER),
    POSITION(AgentArrived, up_to),
    NUMBER_UP_TO(AgentArrived, applied, up_to),
    POSITION(AgentArrived, wanted),
    COPY(AgentArrived, wanted_slot), /* not 0 only with `wanted` */
    MESSAGE_OR_NONE(AgentArrived, cursor, Cursor),
    MESSAGE_OR_NONE(AgentArrived, consumption, Consumption),
    MESSAGE_OR_NONE(AgentArrived, verified, Verified),
};
static TABLE_WITH(AgentArrived, agent_arrived, .after_take = arrived_after_take);

WIRE_MODEL(AgentTaskStarted, struct agent_task_started);

ROWS(AgentTaskStarted) = {
    MESSAGE(AgentTaskStarted, task, TaskRef),
    NUMBER(AgentTaskStarted, pid, 1, INT32_MAX),
};
static TABLE(AgentTaskStarted, agent_task_started);

WIRE_MODEL(AgentTaskGone, struct agent_task_gone);

ROWS(AgentTaskGone) = {
    MESSAGE(AgentTaskGone, task, TaskRef),
    MESSAGE(AgentTaskGone, exit, TaskExit),
    COPY(AgentTaskGone, damaged_step),
    SIGNED(AgentTaskGone, cause, CADRE_OK, CADRE_UNAUTHENTICATED),
};
static TABLE(AgentTaskGone, agent_task_gone);

WIRE_MODEL(AgentTaskCollected, struct agent_task_collected);

ROWS(AgentTaskCollected) = {
    MESSAGE(AgentTaskCollected, task, TaskRef),
    SIGNED(AgentTaskCollected, code, CADRE_OK, CADRE_UNAUTHENTICATED),
    TEXT_FOR_PEOPLE(AgentTaskCollected, text, decode_text),
};
static TABLE(AgentTaskCollected, agent_task_collected);

static void relay_up_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_relay_up *relay_up = model;
    if (relay_up->up.type == TASK_UP_ARRIVE) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "up",
            "is a TaskArrive; a daemon folds arrivals into AgentArrived");
    }
}

WIRE_MODEL(AgentRelayUp, struct agent_relay_up);

ROWS(AgentRelayUp) = {
    MESSAGE(AgentRelayUp, task, TaskRef),
    MESSAGE(AgentRelayUp, up, TaskUp),
};
static TABLE_WITH(AgentRelayUp, agent_relay_up, .after_take = relay_up_after_take);

static void log_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_log *log = model;
    if (log->size_bytes == 0) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "data",
            "is empty; send a log piece when there is one");
    }
    decode_log_marks(decoder, log->marks, log->mark_count, log->offset, log->size_bytes);
}

WIRE_MODEL(AgentLog, struct agent_log);

ROWS(AgentLog) = {
    MESSAGE(AgentLog, task, TaskRef),
    SPAN(AgentLog, offset),
    DATA(AgentLog, data, bytes, size_bytes, LIMIT_LOG_CHUNK_BYTES),
    MESSAGES(AgentLog, marks, LogMark, marks, mark_count, LIMIT_LOG_MARKS),
};
static TABLE_WITH(AgentLog, agent_log, .after_take = log_after_take);

WIRE_MODEL(AgentFetch, struct agent_fetch);

ROWS(AgentFetch) = {
    MESSAGE(AgentFetch, task, TaskRef),
    MESSAGE(AgentFetch, fetch, TaskFetch),
};
static TABLE(AgentFetch, agent_fetch);

WIRE_MODEL(AgentUsage, struct agent_usage);

ROWS(AgentUsage) = {
    MESSAGE(AgentUsage, task, TaskRef),
    MESSAGE_OR_NONE(AgentUsage, usage, ResourceUsage),
};
static TABLE(AgentUsage, agent_usage);

WIRE_MODEL(AgentHeartbeat, struct agent_heartbeat);

ROWS(AgentHeartbeat) = {
    MESSAGES(AgentHeartbeat, fetches, AgentFetch, fetches, fetch_count, LIMIT_SLOTS_PER_WORKER),
    MESSAGES(AgentHeartbeat, usages, AgentUsage, usages, usage_count, LIMIT_SLOTS_PER_WORKER),
    MESSAGE_OR_NONE(AgentHeartbeat, host, ResourceUsage),
};
static TABLE(AgentHeartbeat, agent_heartbeat);

WIRE_MODEL(AgentDraining, struct agent_up);
static TABLE_WITHOUT_ROWS(AgentDraining, agent_draining);

ROWS(AgentUp) = {
    SPAN(AgentUp, certificate_ends_us),
};

ROWS(AgentUpMembers) = {
    MEMBER(AgentUp, hello, AgentHello, hello, AGENT_UP__MESSAGE_HELLO, AGENT_UP_HELLO),
    MEMBER(AgentUp, heartbeat, AgentHeartbeat, heartbeat, AGENT_UP__MESSAGE_HEARTBEAT,
        AGENT_UP_HEARTBEAT),
    MEMBER_INLINE(AgentUp, draining, AgentDraining, AGENT_UP__MESSAGE_DRAINING, AGENT_UP_DRAINING),
    MEMBER(AgentUp, arrived, AgentArrived, arrived, AGENT_UP__MESSAGE_ARRIVED, AGENT_UP_ARRIVED),
    MEMBER(AgentUp, started, AgentTaskStarted, started, AGENT_UP__MESSAGE_STARTED,
        AGENT_UP_TASK_STARTED),
    MEMBER(AgentUp, gone, AgentTaskGone, gone, AGENT_UP__MESSAGE_GONE, AGENT_UP_TASK_GONE),
    MEMBER(AgentUp, collected, AgentTaskCollected, collected, AGENT_UP__MESSAGE_COLLECTED,
        AGENT_UP_TASK_COLLECTED),
    MEMBER(AgentUp, relay_up, AgentRelayUp, relay_up, AGENT_UP__MESSAGE_RELAY_UP, AGENT_UP_RELAY),
    MEMBER(AgentUp, log, AgentLog, log, AGENT_UP__MESSAGE_LOG, AGENT_UP_LOG),
};
TABLE_WITH(AgentUp, agent_up, ONEOF(AgentUp, AgentUpMembers), .limit_bytes = LIMIT_FRAME_BYTES);

/* ---- down ---- */

WIRE_MODEL(AgentWelcome, struct agent_welcome);

ROWS(AgentWelcome) = {
    NUMBER_AS(AgentWelcome, worker, worker.n, 1, UINT64_MAX),
    NUMBER(AgentWelcome, lease_us, 1, INT64_MAX),
    MESSAGE_OR_NONE(AgentWelcome, term, Term),
    COPY(AgentWelcome, protocol_version),
    SPAN(AgentWelcome, silence_us),
    COPY(AgentWelcome, log_index),
};
static TABLE(AgentWelcome, agent_welcome);

static void start_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_start *start = model;
    decode_number(
        decoder, "task_count", start->task_count, start->task.slot + 1, LIMIT_TASKS_PER_JOB);
    decode_number(decoder, "predecessor", start->predecessor, 0, start->task.incarnation - 1);
}

WIRE_MODEL(AgentStart, struct agent_start);

ROWS(AgentStart) = {
    MESSAGE(AgentStart, task, TaskRef),
    COPY(AgentStart, task_count), /* more than the task's slot */
    MESSAGE(AgentStart, spec, JobSpec),
    COPY(AgentStart, predecessor), /* an incarnation before the task's */
    MESSAGE_IF(AgentStart, checkpoint, CheckpointRef, restores),
};
static TABLE_WITH(AgentStart, agent_start, .after_take = start_after_take);

/* The task of a stop or a relay that is for one only. */
static void check_one(struct decoder *decoder, bool one, struct task_ref task, struct job_id job)
{
    if (one && task.job.n != job.n) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "task", "is of another job than the message");
    }
}

static void stop_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_stop *stop = model;
    check_one(decoder, stop->one, stop->task, stop->job);
}

WIRE_MODEL(AgentStop, struct agent_stop);

ROWS(AgentStop) = {
    JOB(AgentStop, job, job.n),
    SPAN(AgentStop, grace_us),
    MESSAGE_IF(AgentStop, task, TaskRef, one),
};
static TABLE_WITH(AgentStop, agent_stop, .after_take = stop_after_take);

static void relay_down_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct agent_relay_down *relay_down = model;
    check_one(decoder, relay_down->one, relay_down->task, relay_down->job);
}

WIRE_MODEL(AgentRelayDown, struct agent_relay_down);

ROWS(AgentRelayDown) = {
    JOB(AgentRelayDown, job, job.n),
    MESSAGE_IF(AgentRelayDown, task, TaskRef, one),
    MESSAGE(AgentRelayDown, down, TaskDown),
};
static TABLE_WITH(AgentRelayDown, agent_relay_down, .after_take = relay_down_after_take);

WIRE_MODEL(AgentLogAck, struct agent_log_ack);

ROWS(AgentLogAck) = {
    MESSAGE(AgentLogAck, task, TaskRef),
    SPAN(AgentLogAck, offset),
};
static TABLE(AgentLogAck, agent_log_ack);

WIRE_MODEL(AgentForget, struct job_id);

ROWS(AgentForget) = {
    JOB(AgentForget, job, n),
};
static TABLE(AgentForget, agent_forget);

WIRE_MODEL(AgentKeepalive, struct agent_keepalive);

ROWS(AgentKeepalive) = {
    COPY(AgentKeepalive, log_index),
};
static TABLE(AgentKeepalive, agent_keepalive);

ROWS(AgentDownMembers) = {
    MEMBER(
        AgentDown, welcome, AgentWelcome, welcome, AGENT_DOWN__MESSAGE_WELCOME, AGENT_DOWN_WELCOME),
    MEMBER(AgentDown, refused, Refused, refused, AGENT_DOWN__MESSAGE_REFUSED, AGENT_DOWN_REFUSED),
    MEMBER(AgentDown, start, AgentStart, start, AGENT_DOWN__MESSAGE_START, AGENT_DOWN_START),
    MEMBER(AgentDown, stop, AgentStop, stop, AGENT_DOWN__MESSAGE_STOP, AGENT_DOWN_STOP),
    MEMBER(AgentDown, relay_down, AgentRelayDown, relay_down, AGENT_DOWN__MESSAGE_RELAY_DOWN,
        AGENT_DOWN_RELAY),
    MEMBER(
        AgentDown, log_ack, AgentLogAck, log_ack, AGENT_DOWN__MESSAGE_LOG_ACK, AGENT_DOWN_LOG_ACK),
    MEMBER(AgentDown, forget, AgentForget, forget, AGENT_DOWN__MESSAGE_FORGET, AGENT_DOWN_FORGET),
    MEMBER(AgentDown, keepalive, AgentKeepalive, keepalive, AGENT_DOWN__MESSAGE_KEEPALIVE,
        AGENT_DOWN_KEEPALIVE),
};
TABLE_OF(
    AgentDown, agent_down, ONEOF(AgentDown, AgentDownMembers), .limit_bytes = LIMIT_FRAME_BYTES);
