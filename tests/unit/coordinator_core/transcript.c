/* SPDX-License-Identifier: Apache-2.0
 * The actions of the core, one line each. */
#include "common/pure/assert.h"
#include "tests/unit/coordinator_core/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void line(struct script *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof(s->transcript) - s->length;
    int length = vsnprintf(s->transcript + s->length, room, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length + 2 <= room);
    s->length += (size_t)length;
    s->transcript[s->length++] = '\n';
    s->transcript[s->length] = '\0';
}

/* " of 0 2": the slots of the generation's members by rank, when it is not the first. */
static const char *members(const struct script *s, const struct core_record *r)
{
    static char text[128];
    struct core_job_view view;
    text[0] = '\0';
    if (r->plan.generation.number == 1 || !core_job(s->core, r->job, &view)) {
        return text;
    }
    int length = snprintf(text, sizeof(text), " of");
    for (uint32_t rank = 0; rank < view.roster; rank++) {
        length += snprintf(text + length, sizeof(text) - (size_t)length, " %u",
            core_job_member(s->core, r->job, rank));
    }
    if (view.source != SOURCE_NONE) {
        (void)snprintf(
            text + length, sizeof(text) - (size_t)length, ", source rank %u", view.source);
    }
    return text;
}

/* A plan names the generation before it. Of a job that the core was restored with, only the number
 * of that is known. */
static void assert_follows(struct script *s, const struct core_record *r)
{
    assert_true(r->job.n < CADRE_COUNT_OF(s->planned));
    struct generation *last = &s->planned[r->job.n];
    assert_true(r->plan.generation.nonce != 0);
    assert_int_equal(r->plan.parent.number + 1, r->plan.generation.number);
    assert_true(generation_equal(r->plan.parent, *last) ||
                (last->number == 0 && r->plan.parent.nonce != 0));
    *last = r->plan.generation;
}

static void show_control(struct script *s, const char *head, const struct core_record *r)
{
    if (r->control.halt_kind == HALT_NONE) {
        line(s, "%s no halt", head);
    } else if (r->control.halt_stream == STREAM_ANY) {
        line(s, "%s halt at %" PRIu64, head, r->control.halt_at);
    } else {
        line(s, "%s halt at %" PRIu64 " of stream %u", head, r->control.halt_at,
            r->control.halt_stream);
    }
}

static void show_position(struct script *s, const char *head, const struct core_record *r)
{
    if (r->type == CORE_RECORD_VERIFIED) {
        line(s, "%s verified at %" PRIu64 " (%" PRIx64 ")", head, r->verified.position,
            r->verified.digest);
    } else if (r->type == CORE_RECORD_PUBLISHED) {
        line(s, "%s published %" PRIu64 " in g%" PRIu64, head, r->published.position,
            r->published.number);
    } else {
        line(s, "%s differs at %" PRIu64 " in g%" PRIu64, head, r->diverged.position,
            r->diverged.number);
    }
}

/* Of no job. */
static void show_worker(struct script *s, const struct core_record *r)
{
    if (r->type == CORE_RECORD_CULPRIT) {
        line(s, "record! worker %s is the culprit %u", r->culprit.worker, r->culprit.times);
    } else {
        line(s, "record! worker %s is %s", r->drained.worker,
            r->type == CORE_RECORD_DRAINED ? "drained" : "not drained any more");
    }
}

static void show_record(struct script *s, const struct core_record *r)
{
    char head[64];
    const struct cursor *c = &r->consumption.cursor;
    (void)snprintf(head, sizeof(head), "record%s job %" PRIu64 ":", r->sync ? "!" : "", r->job.n);
    switch (r->type) {
    case CORE_RECORD_JOB:
        line(s, "%s submitted %u tasks", head, r->submitted.spec.tasks);
        break;
    case CORE_RECORD_STARTED:
        line(s, "%s started, incarnations to %" PRIu64, head, r->incarnation_max);
        break;
    case CORE_RECORD_QUEUED:
        line(s, "%s queued again", head);
        break;
    case CORE_RECORD_TASK:
        line(s, "%s task %u#%" PRIu64 " on %s", head, r->task.slot, r->task.incarnation,
            r->task.worker);
        break;
    case CORE_RECORD_BACKED:
        line(s, "%s task %u#%" PRIu64 " backed by #%" PRIu64, head, r->backed.slot,
            r->backed.incarnation, r->backed.backed.by);
        break;
    case CORE_RECORD_PLAN:
        line(s, "%s plan g%" PRIu64 " from %" PRIu64 "%s%s", head, r->plan.generation.number,
            r->plan.resume, r->plan.restarted ? ", restarted" : "", members(s, r));
        assert_follows(s, r);
        break;
    case CORE_RECORD_CONTROL:
        show_control(s, head, r);
        break;
    case CORE_RECORD_CONSUMED:
        line(s, "%s stream %u epoch %" PRIu64 " consumed %" PRIu64 " in %" PRIu64 " steps", head,
            c->stream, c->epoch, r->consumption.consumption.samples,
            r->consumption.consumption.steps);
        break;
    case CORE_RECORD_STREAM:
        line(s, "%s stream %u is %s of %" PRIu64, head, r->stream.stream, r->stream.name,
            r->stream.samples);
        break;
    case CORE_RECORD_WATERMARK:
        c = &r->watermark.cursor;
        line(s, "%s released to %" PRIu64 ", stream %u epoch %" PRIu64 " from %" PRIu64, head,
            r->watermark.up_to, c->stream, c->epoch, c->first);
        break;
    case CORE_RECORD_END_OF_DATA:
        c = &r->end_of_data;
        line(s, "%s stream %u epoch %" PRIu64 " has %" PRIu64 " steps", head, c->stream, c->epoch,
            c->steps);
        break;
    case CORE_RECORD_CHECKPOINT:
        line(s, "%s checkpoint at %" PRIu64 " in %s", head, r->checkpoint.position,
            r->checkpoint.path);
        break;
    case CORE_RECORD_ORIGIN:
        line(s, "%s goes on from checkpoint at %" PRIu64, head, r->checkpoint.position);
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        line(s, "%s checkpoint at %" PRIu64 " is lost", head, r->lost.position);
        break;
    case CORE_RECORD_VERIFIED:
    case CORE_RECORD_PUBLISHED:
    case CORE_RECORD_DIVERGED:
        show_position(s, head, r);
        break;
    case CORE_RECORD_DONE:
        line(s, "%s done at %" PRIu64, head, r->done.position);
        break;
    case CORE_RECORD_TASK_EXIT:
        line(s, "%s task %u %s %d/%d", head, r->task_exit.slot, task_state_name(r->task_exit.state),
            r->task_exit.exit.code, r->task_exit.exit.signal);
        break;
    case CORE_RECORD_ENDING:
        if (s->shows_endings) {
            line(s, "%s ending as %s", head, job_state_name(r->ended.state));
        }
        break;
    default: /* of no job */
        show_worker(s, r);
        break;
    case CORE_RECORD_ENDED:
        line(s, "%s %s %s exit %d: %s", head, job_state_name(r->ended.state),
            cadre_status_name(r->ended.code), r->ended.exit_code, r->ended.text);
        break;
    }
}

static void show_notify_job(struct script *s, const struct core_action *action)
{
    static const char *const tells[] = {[CORE_MESSAGE_PLAN] = "plan",
        [CORE_MESSAGE_RELEASE] = "release",
        [CORE_MESSAGE_ABORT] = "abort",
        [CORE_MESSAGE_GOODBYE] = "bye",
        [CORE_MESSAGE_MEMBERS] = "members",
        [CORE_MESSAGE_GOODBYE_WORKERS] = "bye to workers",
        [CORE_MESSAGE_GOODBYE_SERVERS] = "bye to the servers"};
    char to[64] = "";
    char what[32] = "";
    struct core_job_view view;
    if (action->notify_job.one) {
        (void)snprintf(to, sizeof(to), " task %u on link %" PRIu64, action->notify_job.slot,
            action->notify_job.link.n);
    }
    if (action->notify_job.message == CORE_MESSAGE_RELEASE &&
        core_job(s->core, action->notify_job.job, &view)) {
        (void)snprintf(what, sizeof(what), " to %" PRIu64 "%s", view.released,
            view.halt_kind == HALT_NONE ? "" : ", halt");
    }
    line(s, "tell job %" PRIu64 "%s: %s g%" PRIu64 "%s%s%s", action->notify_job.job.n, to,
        tells[action->notify_job.message], action->notify_job.generation.number, what,
        action->notify_job.reason[0] == '\0' ? "" : ": ", action->notify_job.reason);
}

static void show_notify_task(struct script *s, const struct core_action *action)
{
    static const char *const types[] = {[TASK_DOWN_REFUSED] = "refused",
        [TASK_DOWN_SUPERSEDED] = "superseded",
        [TASK_DOWN_RESET] = "reset",
        [TASK_DOWN_WARM] = "warm"};
    const char *type = types[action->notify_task.type];
    if (action->notify_task.type == TASK_DOWN_WARM || action->notify_task.type == TASK_DOWN_RESET) {
        line(s, "tell task %" PRIu64 "/%u#%" PRIu64 " on link %" PRIu64 ": %s",
            action->notify_task.task.job.n, action->notify_task.task.slot,
            action->notify_task.task.incarnation, action->notify_task.link.n, type);
        return;
    }
    line(s, "tell task %" PRIu64 "/%u on link %" PRIu64 ": %s %s: %s",
        action->notify_task.task.job.n, action->notify_task.task.slot, action->notify_task.link.n,
        type, cadre_status_name(action->notify_task.code), action->notify_task.text);
}

void script_show(struct script *s, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_RECORD:
        show_record(s, &action->record);
        break;
    case CORE_ACTION_ANSWER:
        if (action->answer.code == CADRE_OK) {
            line(s, "answer %" PRIu64 ": job %" PRIu64 ", %u before", action->answer.call.n,
                action->answer.job.n, action->answer.queued_before);
        } else {
            line(s, "answer %" PRIu64 ": %s: %s", action->answer.call.n,
                cadre_status_name(action->answer.code), action->answer.text);
        }
        break;
    case CORE_ACTION_WELCOME:
        line(s, "welcome link %" PRIu64 ": worker %" PRIu64, action->welcome.link.n,
            action->welcome.worker.n);
        break;
    case CORE_ACTION_REFUSE:
        line(s, "refuse link %" PRIu64 ": %s: %s", action->refuse.link.n,
            cadre_status_name(action->refuse.code), action->refuse.text);
        break;
    case CORE_ACTION_START_JOB:
        line(s, "start job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_STOP_JOB:
        line(s, "stop job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_STOP_TASK:
        line(s, "stop task %" PRIu64 "/%u#%" PRIu64 " on link %" PRIu64,
            action->stop_task.task.job.n, action->stop_task.task.slot,
            action->stop_task.task.incarnation, action->stop_task.link.n);
        break;
    case CORE_ACTION_NOTIFY_JOB:
        show_notify_job(s, action);
        break;
    case CORE_ACTION_NOTIFY_TASK:
        show_notify_task(s, action);
        break;
    case CORE_ACTION_FORGET_JOB:
        line(s, "forget job %" PRIu64, action->forget_job.job.n);
        break;
    case CORE_ACTION_JOB_CHANGED:
        if (s->shows_changes) {
            line(s, "changed job %" PRIu64, action->job.n);
        }
        break;
    case CORE_ACTION_JOB_ENDED:
        line(s, "ended job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_START_TASKS:
        line(s, "start again job %" PRIu64 " on link %" PRIu64, action->start_tasks.job.n,
            action->start_tasks.link.n);
        break;
    }
}
