/* SPDX-License-Identifier: Apache-2.0 */
#include "transcript.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/pure/assert.h"

__attribute__((format(printf, 2, 3))) static void line(
    struct transcript *transcript, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t left = sizeof(transcript->text) - transcript->used;
    int wrote = vsnprintf(transcript->text + transcript->used, left, format, arguments);
    va_end(arguments);
    CADRE_ASSERT(wrote >= 0 && (size_t)wrote < left);
    transcript->used += (size_t)wrote;
}

static const char *reason_name(enum report_reason reason)
{
    static const char *const names[] = {
        "none", "halt", "abort", "peer error", "finished", "failed", "diverged"};
    return names[reason];
}

static void task_up(struct transcript *transcript, const struct task_up *up)
{
    switch (up->type) {
    case TASK_UP_HELLO:
        line(transcript,
            "hello g%" PRIu64 " at %" PRIu64 "%s released %" PRIu64 " arrived %" PRIu64,
            up->hello.generation.number, up->hello.position, up->hello.clean ? " clean" : " dirty",
            up->hello.released, up->hello.arrived);
        if (up->hello.frozen) {
            line(transcript, " frozen: %s", reason_name(up->hello.reason));
        }
        break;
    case TASK_UP_ARRIVE:
        line(transcript, "arrive g%" PRIu64 " up to %" PRIu64 " applied %" PRIu64 " stream %u",
            up->arrive.generation.number, up->arrive.up_to, up->arrive.applied,
            up->arrive.cursor.stream);
        if (up->arrive.consumption.samples > 0) {
            line(transcript, " consumed %" PRIu64, up->arrive.consumption.samples);
        }
        if (up->arrive.verified.digest != 0) {
            line(transcript, " verified %" PRIu64, up->arrive.verified.position);
        }
        if (up->arrive.wanted > up->arrive.applied) { /* else it is done with that */
            line(transcript, " wants %" PRIu64, up->arrive.wanted);
        }
        break;
    case TASK_UP_REPORT:
        line(transcript, "report g%" PRIu64 " at %" PRIu64 "%s: %s", up->report.generation.number,
            up->report.position, up->report.clean ? " clean" : " dirty",
            reason_name(up->report.reason));
        if (up->report.code != CADRE_OK) {
            line(transcript, " code %d", up->report.code);
        }
        if (up->report.begun) {
            line(transcript, ", in stream %u", up->report.stream);
        }
        if (up->report.digest != 0) {
            line(transcript, " as %" PRIu64, up->report.digest);
        }
        if (up->report.reason == REPORT_DIVERGED) {
            line(transcript, " at %" PRIu64 ", verified %" PRIu64, up->report.divergence.position,
                up->report.divergence.verified);
        }
        for (uint32_t i = 0; i < up->report.divergence.culprit_count; i++) {
            line(transcript, ", by slot %u", up->report.divergence.culprits[i]);
        }
        if (up->report.text[0] != '\0') {
            line(transcript, " (%s)", up->report.text);
        }
        break;
    case TASK_UP_PART:
        line(transcript, "part g%" PRIu64 " at %" PRIu64 " %s", up->part.generation.number,
            up->part.position, up->part.path);
        break;
    case TASK_UP_PROGRESS:
        line(transcript, "progress");
        break;
    case TASK_UP_SHARDS:
        line(transcript, "shards");
        break;
    case TASK_UP_VALUES:
        line(transcript, "values up to %" PRIu64, up->values.end);
        break;
    case TASK_UP_SPANS:
        line(transcript, "spans");
        break;
    case TASK_UP_BACKED:
        line(transcript, "backed by %" PRIu64, up->backed.by);
        break;
    case TASK_UP_JOIN:
        line(transcript, "join stream %u", up->join.stream);
        break;
    case TASK_UP_STREAM:
        line(transcript, "stream %u %s", up->stream.stream, up->stream.name);
        break;
    case TASK_UP_STALL:
        line(transcript, "stall g%" PRIu64 " at %" PRIu64 " for slot %u",
            up->stall.generation.number, up->stall.position, up->stall.slot);
        break;
    case TASK_UP_PREEMPT:
        line(transcript, "preempt %s", up->preempt.stops ? "stops" : "saves");
        break;
    }
}

void transcript_task(struct transcript *transcript, const struct task_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct task_action *action = &actions->items[i];
        switch (action->type) {
        case TASK_ACTION_SEND:
            line(transcript, "send ");
            task_up(transcript, &action->up);
            break;
        case TASK_ACTION_FORM:
            line(transcript, "form");
            break;
        case TASK_ACTION_ABORT_MESH:
            line(transcript, "abort mesh: %s", action->text);
            break;
        case TASK_ACTION_CHANGED:
            line(transcript, "changed");
            break;
        case TASK_ACTION_WARM:
            line(transcript, "warm");
            break;
        case TASK_ACTION_EXIT_OK:
            line(transcript, "exit ok");
            break;
        case TASK_ACTION_EXIT_VOID:
            line(transcript, "exit void: %s", action->text);
            break;
        }
        line(transcript, "\n");
    }
}

static void agent_up(struct transcript *transcript, const struct agent_up *up)
{
    switch (up->type) {
    case AGENT_UP_HELLO:
        line(transcript, up->hello.draining ? "hello, draining" : "hello");
        break;
    case AGENT_UP_HEARTBEAT:
        line(transcript, "heartbeat");
        break;
    case AGENT_UP_DRAINING:
        line(transcript, "draining");
        break;
    case AGENT_UP_ARRIVED:
        if (up->arrived.tasks == 0) {
            line(transcript,
                "epoch %" PRIu64 " of stream %u job %" PRIu64 " g%" PRIu64 " from %" PRIu64
                " applied %" PRIu64 " consumed %" PRIu64,
                up->arrived.cursor.epoch, up->arrived.cursor.stream, up->arrived.job.n,
                up->arrived.generation.number, up->arrived.cursor.begin, up->arrived.applied,
                up->arrived.consumption.samples);
            break;
        }
        line(transcript,
            "arrived job %" PRIu64 " g%" PRIu64 " tasks %u up to %" PRIu64 " applied %" PRIu64
            " consumed %" PRIu64 " stream %u",
            up->arrived.job.n, up->arrived.generation.number, up->arrived.tasks, up->arrived.up_to,
            up->arrived.applied, up->arrived.consumption.samples, up->arrived.cursor.stream);
        if (up->arrived.verified.digest != 0) {
            line(transcript, " verified %" PRIu64, up->arrived.verified.position);
        }
        if (up->arrived.wanted != 0) {
            line(
                transcript, " slot %u wants %" PRIu64, up->arrived.wanted_slot, up->arrived.wanted);
        }
        break;
    case AGENT_UP_TASK_STARTED:
        line(transcript, "started pid %u", up->started.pid);
        break;
    case AGENT_UP_TASK_GONE:
        line(transcript, "gone code %d signal %d", up->gone.exit.code, up->gone.exit.signal);
        if (up->gone.cause != CADRE_OK) {
            line(transcript, " cause %d", (int)up->gone.cause);
        }
        if (up->gone.exit.text[0] != '\0') {
            line(transcript, " (%s)", up->gone.exit.text);
        }
        break;
    case AGENT_UP_TASK_COLLECTED:
        line(transcript, "collected %d", up->collected.code);
        break;
    case AGENT_UP_RELAY:
        line(transcript, "said ");
        task_up(transcript, &up->relay_up.up);
        break;
    case AGENT_UP_LOG:
        line(transcript, "log");
        break;
    }
}

void transcript_agent(struct transcript *transcript, const struct agent_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct agent_action *action = &actions->items[i];
        if (action->task.slot != 0 || action->task.incarnation != 0) {
            line(transcript, "j%" PRIu64 ".%u.%" PRIu64 " ", action->task.job.n, action->task.slot,
                action->task.incarnation);
        }
        switch (action->type) {
        case AGENT_ACTION_SEND:
            line(transcript, "send ");
            agent_up(transcript, &action->up);
            break;
        case AGENT_ACTION_PREPARE:
            line(transcript, "prepare");
            break;
        case AGENT_ACTION_SPAWN:
            line(transcript, "spawn");
            break;
        case AGENT_ACTION_SIGNAL:
            line(transcript, "signal %d", action->signal);
            break;
        case AGENT_ACTION_COLLECT:
            line(transcript, "collect");
            break;
        case AGENT_ACTION_PUBLISH:
            line(transcript, "publish %s", action->part->path);
            break;
        case AGENT_ACTION_DELIVER:
            line(transcript, "tell");
            break;
        case AGENT_ACTION_REFUSE:
            line(transcript, "refuse: %s", action->text);
            break;
        case AGENT_ACTION_FORGET_JOB:
            line(transcript, "forget job %llu", (unsigned long long)action->task.job.n);
            break;
        case AGENT_ACTION_FORGET:
            line(transcript, "forget");
            break;
        case AGENT_ACTION_EXIT:
            line(transcript, "leave");
            break;
        }
        line(transcript, "\n");
    }
}
