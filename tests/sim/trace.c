/* SPDX-License-Identifier: Apache-2.0
 * The transcript of a run: kept only when a seed is run again because it failed, or with --verbose.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/model/roster_tree.h"
#include "sim.h"

void broken(struct sim *sim, const char *invariant, const char *format, ...)
{
    if (sim->broken != NULL || lie_excuses(sim, invariant)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim->why, sizeof(sim->why), format, arguments);
    va_end(arguments);
    sim->broken = invariant;
}

void trace(struct sim *sim, const char *format, ...)
{
    if (!sim->tracing) {
        return;
    }
    char *line = sim->trace[sim->trace_count++ % SIM_TRACE_LINES];
    int used = snprintf(line, SIM_TRACE_BYTES, "[%10" PRIu64 "] ", sim->now_us);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, SIM_TRACE_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
}

static void trace_wanted(char text[SIM_TRACE_BYTES], uint64_t wanted)
{
    if (wanted > 0) {
        size_t used = strlen(text);
        snprintf(text + used, SIM_TRACE_BYTES - used, " wants %" PRIu64, wanted);
    }
}

const char *trace_task_up(const struct task_up *up, char text[SIM_TRACE_BYTES])
{
    switch (up->type) {
    case TASK_UP_HELLO:
        snprintf(text, SIM_TRACE_BYTES, "hello g%" PRIu64 " at %" PRIu64,
            up->hello.generation.number, up->hello.position);
        break;
    case TASK_UP_ARRIVE:
        snprintf(text, SIM_TRACE_BYTES,
            "arrive g%" PRIu64 " up to %" PRIu64 " applied %" PRIu64 " of stream %u from %" PRIu64,
            up->arrive.generation.number, up->arrive.up_to, up->arrive.applied,
            up->arrive.cursor.stream, up->arrive.cursor.first);
        trace_wanted(text, up->arrive.wanted);
        break;
    case TASK_UP_REPORT:
        snprintf(text, SIM_TRACE_BYTES, "report g%" PRIu64 " at %" PRIu64 "%s%s reason %d: %.60s",
            up->report.generation.number, up->report.position, up->report.clean ? "" : " torn",
            up->report.begun ? " begun" : "", up->report.reason, up->report.text);
        break;
    case TASK_UP_PART:
        snprintf(text, SIM_TRACE_BYTES, "part at %" PRIu64, up->part.position);
        break;
    case TASK_UP_PROGRESS:
        snprintf(text, SIM_TRACE_BYTES, "progress");
        break;
    case TASK_UP_SHARDS:
        snprintf(text, SIM_TRACE_BYTES, "shards");
        break;
    case TASK_UP_VALUES:
        snprintf(text, SIM_TRACE_BYTES, "values up to %" PRIu64, up->values.end);
        break;
    case TASK_UP_SPANS:
        snprintf(text, SIM_TRACE_BYTES, "spans");
        break;
    case TASK_UP_BACKED:
        snprintf(text, SIM_TRACE_BYTES, "is backed by %" PRIu64, up->backed.by);
        break;
    case TASK_UP_JOIN:
        snprintf(text, SIM_TRACE_BYTES, "joins at stream %u", up->join.stream);
        break;
    case TASK_UP_STREAM:
        snprintf(text, SIM_TRACE_BYTES, "has stream %u", up->stream.stream);
        break;
    case TASK_UP_PREEMPT:
        snprintf(text, SIM_TRACE_BYTES, "has to %s", up->preempt.stops ? "leave" : "save");
        break;
    case TASK_UP_STALL:
        snprintf(text, SIM_TRACE_BYTES, "at %" PRIu64 " waits for task %u", up->stall.position,
            up->stall.slot);
        break;
    }
    return text;
}

const char *trace_up(const struct agent_up *up, char text[SIM_TRACE_BYTES])
{
    char relay_up[SIM_TRACE_BYTES];
    switch (up->type) {
    case AGENT_UP_HELLO:
        snprintf(text, SIM_TRACE_BYTES, "hello with %zu tasks", up->hello.task_count);
        break;
    case AGENT_UP_HEARTBEAT:
        snprintf(text, SIM_TRACE_BYTES, "heartbeat");
        break;
    case AGENT_UP_DRAINING:
        snprintf(text, SIM_TRACE_BYTES, "draining");
        break;
    case AGENT_UP_ARRIVED:
        snprintf(text, SIM_TRACE_BYTES,
            "job %" PRIu64 ": %u arrived up to %" PRIu64 " applied %" PRIu64
            " of stream %u from %" PRIu64,
            up->arrived.job.n, up->arrived.tasks, up->arrived.up_to, up->arrived.applied,
            up->arrived.cursor.stream, up->arrived.cursor.first);
        trace_wanted(text, up->arrived.wanted);
        break;
    case AGENT_UP_TASK_STARTED:
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 " task %u started", up->started.task.job.n,
            up->started.task.slot);
        break;
    case AGENT_UP_TASK_GONE:
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 " task %u gone: status %d signal %d",
            up->gone.task.job.n, up->gone.task.slot, up->gone.exit.code, up->gone.exit.signal);
        break;
    case AGENT_UP_TASK_COLLECTED:
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 " task %u collected",
            up->collected.task.job.n, up->collected.task.slot);
        break;
    case AGENT_UP_RELAY:
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 " task %u says %.120s",
            up->relay_up.task.job.n, up->relay_up.task.slot,
            trace_task_up(&up->relay_up.up, relay_up));
        break;
    case AGENT_UP_LOG:
        snprintf(text, SIM_TRACE_BYTES, "log");
        break;
    }
    return text;
}

static void trace_task_down(const struct task_down *down, uint64_t job, char text[SIM_TRACE_BYTES])
{
    static const char *const names[] = {"?", "plan", "release", "abort", "reset", "bye",
        "superseded", "refused", "warm", "members"};
    if (down->type == TASK_DOWN_PLAN) {
        snprintf(text, SIM_TRACE_BYTES,
            "job %" PRIu64 ": plan g%" PRIu64 " of %zu at %" PRIu64 " source %d", job,
            down->plan.generation.number, (size_t)plan_member_count(&down->plan), down->plan.resume,
            (int)down->plan.source);
    } else if (down->type == TASK_DOWN_RELEASE) {
        const struct task_release *release = &down->release;
        snprintf(text, SIM_TRACE_BYTES,
            "job %" PRIu64 ": release g%" PRIu64 " up to %" PRIu64 " halt %d at %" PRId64
            " published %" PRId64,
            job, release->generation.number, release->up_to, release->halt_kind,
            (int64_t)release->halt_at, (int64_t)release->published);
    } else if (down->type == TASK_DOWN_MEMBERS) {
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 ": members g%" PRIu64 ", %s %" PRIu64, job,
            down->members.generation.number, down->members.changes ? "changes to list" : "list",
            down->members.number);
    } else {
        snprintf(text, SIM_TRACE_BYTES, "job %" PRIu64 ": %s %.120s", job, names[down->type],
            down->type == TASK_DOWN_ABORT ? down->reason : "");
    }
}

const char *trace_down(const struct agent_down *down, char text[SIM_TRACE_BYTES])
{
    switch (down->type) {
    case AGENT_DOWN_WELCOME:
        snprintf(text, SIM_TRACE_BYTES, "welcome, worker %" PRIu64, down->welcome.worker.n);
        break;
    case AGENT_DOWN_REFUSED:
        snprintf(text, SIM_TRACE_BYTES, "refused: %.140s", down->refused.text);
        break;
    case AGENT_DOWN_START:
        snprintf(text, SIM_TRACE_BYTES, "start job %" PRIu64 " task %u incarnation %" PRIu64,
            down->start.task.job.n, down->start.task.slot, down->start.task.incarnation);
        break;
    case AGENT_DOWN_STOP:
        snprintf(text, SIM_TRACE_BYTES, "stop job %" PRIu64 "%s task %u", down->stop.job.n,
            down->stop.one ? "" : " every", down->stop.one ? down->stop.task.slot : 0);
        break;
    case AGENT_DOWN_RELAY:
        trace_task_down(&down->relay_down.down, down->relay_down.job.n, text);
        break;
    case AGENT_DOWN_LOG_ACK:
        snprintf(text, SIM_TRACE_BYTES, "log ack");
        break;
    case AGENT_DOWN_FORGET:
        snprintf(text, SIM_TRACE_BYTES, "forget job %llu", (unsigned long long)down->forget.n);
        break;
    case AGENT_DOWN_KEEPALIVE:
        snprintf(text, SIM_TRACE_BYTES, "keepalive");
        break;
    }
    return text;
}

void trace_record(struct sim *sim, const struct core_record *record)
{
    static const char *const names[] = {"?", "job", "started", "task", "plan", "control",
        "watermark", "feed", "stream", "end of data", "checkpoint", "done", "task exit", "ending",
        "ended", "queued", "backed", "drained", "undrained", "checkpoint lost", "origin",
        "published", "diverged", "culprit", "verified"};
    char text[SIM_TRACE_BYTES] = "";
    switch (record->type) {
    case CORE_RECORD_TASK:
        snprintf(text, sizeof(text), "task %u.%" PRIu64 " on %s", record->task.slot,
            record->task.incarnation, record->task.worker);
        break;
    case CORE_RECORD_PLAN:
        snprintf(text, sizeof(text), "g%" PRIu64 " at %" PRIu64 "%s, restarts %u",
            record->plan.generation.number, record->plan.resume,
            record->plan.restarted ? " restarted" : "", record->plan.restarts);
        break;
    case CORE_RECORD_CONTROL:
        snprintf(text, sizeof(text), "halt %d at %" PRIu64 " of stream %d",
            record->control.halt_kind, record->control.halt_at, (int)record->control.halt_stream);
        break;
    case CORE_RECORD_WATERMARK:
        snprintf(text, sizeof(text), "%" PRIu64, record->watermark.up_to);
        break;
    case CORE_RECORD_CONSUMED:
        snprintf(text, sizeof(text),
            "stream %u epoch %" PRIu64 ": %" PRIu64 " steps, of a run from %" PRIu64,
            record->consumption.cursor.stream, record->consumption.cursor.epoch,
            record->consumption.consumption.steps, record->consumption.cursor.begin);
        break;
    case CORE_RECORD_CHECKPOINT:
    case CORE_RECORD_ORIGIN:
        snprintf(text, sizeof(text), "of %" PRIu64, record->checkpoint.position);
        break;
    case CORE_RECORD_VERIFIED:
        snprintf(text, sizeof(text), "%" PRIu64, record->verified.position);
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        snprintf(text, sizeof(text), "of %" PRIu64, record->lost.position);
        break;
    case CORE_RECORD_TASK_EXIT:
        snprintf(text, sizeof(text), "task %u.%" PRIu64 ": %.100s", record->task_exit.slot,
            record->task_exit.incarnation, record->task_exit.exit.text);
        break;
    case CORE_RECORD_ENDING:
    case CORE_RECORD_ENDED:
        snprintf(text, sizeof(text), "%.150s", record->ended.text);
        break;
    default:
        break;
    }
    trace(sim, "record%s job %" PRIu64 ": %s %.170s", record->sync ? " (sync)" : "", record->job.n,
        names[record->type], text);
}
