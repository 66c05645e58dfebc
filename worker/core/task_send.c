/* SPDX-License-Identifier: Apache-2.0
 * Messages from a task: hello, join, streams, arrivals, stalls, parts, reports; and when an arrival
 * is worth a message. The other files of the task core call it. */
#include "worker/core/task_internal.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

struct task_action *task_append(struct task_actions *out, enum task_action_type type)
{
    CADRE_ASSERT(out->count < TASK_ACTIONS_PER_STEP_MAX);
    CADRE_ASSERT(type >= TASK_ACTION_SEND && type <= TASK_ACTION_EXIT_VOID);
    struct task_action *action = &out->items[out->count++];
    action->type = type;
    memset(&action->up, 0, sizeof(action->up));
    action->text[0] = '\0';
    return action;
}

void task_copy_text(char *to, size_t size, const char *from)
{
    CADRE_ASSERT(size > 0);
    CADRE_ASSERT(from != to); /* it would be emptied before it is read */
    struct text text = text_begin(to, size);
    text_add(&text, from == NULL ? "" : from);
}

/* ---- messages ---- */

/* A task without a connection sends nothing: its next hello carries the values. */
static struct task_up *task_send_say(
    const struct task_core *core, struct task_actions *out, enum task_up_type type)
{
    if (!core->connected) {
        return NULL;
    }
    CADRE_ASSERT(core->phase != TASK_EXIT);
    struct task_up *up = &task_append(out, TASK_ACTION_SEND)->up;
    up->type = type;
    return up;
}

/* Whether others may go on from this task's state. That of a plain program is its program's, which
 * has left the position where it stood; only where it ends in order nothing is left to do. */
static bool task_is_whole(const struct task_core *core)
{
    bool orderly = core->phase != TASK_FROZEN || task_is_orderly(core->reason);
    return core->clean && (!core->plain || orderly);
}

void task_send_hello(const struct task_core *core, struct task_actions *out)
{
    struct task_up *up = task_send_say(core, out, TASK_UP_HELLO);
    CADRE_ASSERT(up != NULL); /* hello is the first message of a connection */
    up->hello = (struct task_hello){
        .frame_version = TASK_FRAME_VERSION,
        .library_version = CADRE_VERSION,
        .pid = core->pid,
        .replicas = core->replicas,
        .mesh_address = core->mesh_address,
        .generation = core->generation,
        .position = core->position,
        .clean = task_is_whole(core),
        .released = core->released,
        .arrived = core->arrived,
        .frozen = core->phase == TASK_FROZEN,
        .reason = core->phase == TASK_FROZEN ? core->reason : 0,
        .plain = core->plain,
    };
}

/* The newest `count` of the epochs that the program left. */
static void send_consumed(struct task_core *core, uint32_t count, struct task_actions *out)
{
    CADRE_ASSERT(core->consumed_count <= TASK_CONSUMED_MAX);
    CADRE_ASSERT(count <= core->consumed_count);
    core->consumed_unsent = 0; /* those before it was connected are sent when it is */
    for (uint32_t i = core->consumed_count - count; i < core->consumed_count; i++) {
        const struct task_consumed *consumed = &core->consumed[i];
        CADRE_ASSERT(consumed->applied <= core->position); /* in this generation */
        struct task_up *up = task_send_say(core, out, TASK_UP_ARRIVE);
        if (up != NULL) {
            up->arrive = (struct task_arrive){.generation = core->generation,
                .up_to = consumed->applied,
                .applied = consumed->applied,
                .cursor = consumed->cursor,
                .consumption = consumed->consumption};
        }
    }
}

void task_send_consumed(struct task_core *core, struct task_actions *out)
{
    send_consumed(core, core->consumed_count, out);
}

void task_send_arrive(struct task_core *core, struct task_actions *out)
{
    CADRE_ASSERT(core->generation.number > 0);
    send_consumed(core, core->consumed_unsent, out);
    CADRE_ASSERT(core->arrived >= core->released);
    CADRE_ASSERT(core->sent_applied <= core->position); /* watermarks never decrease */
    CADRE_ASSERT(core->wanted_sent <= core->wanted);
    core->claimed = true;
    core->sent_applied = core->position;
    core->verified_sent = true;
    core->wanted_sent = core->wanted;
    struct task_up *up = task_send_say(core, out, TASK_UP_ARRIVE);
    if (up != NULL) {
        up->arrive = (struct task_arrive){
            .generation = core->generation,
            .up_to = core->arrived,
            .applied = core->sent_applied,
            .wanted = core->wanted > core->resume ? core->wanted : 0,
            .cursor = core->cursor,
            .consumption = core->consumption,
            .verified = core->verified,
        };
    }
}

/* Unless there is none, or it is known to be published. */
void task_send_part(const struct task_core *core, struct task_actions *out)
{
    CADRE_ASSERT(
        core->part.path == NULL || generation_equal(core->part.generation, core->generation));
    bool known = core->published != POSITION_NONE && core->published >= core->part.position;
    struct task_up *up =
        core->part.path == NULL || known ? NULL : task_send_say(core, out, TASK_UP_PART);
    if (up != NULL) {
        up->part = core->part;
        up->part.path = core->part_path;
    }
}

void task_send_join(const struct task_core *core, struct task_actions *out)
{
    CADRE_ASSERT(core->phase == TASK_JOIN);
    CADRE_ASSERT(core->joins);
    struct task_up *up = task_send_say(core, out, TASK_UP_JOIN);
    if (up != NULL) {
        up->join = (struct task_join){.stream = core->join_stream, .epoch = core->join_epoch};
    }
}

void task_send_preempt(const struct task_core *core, struct task_actions *out)
{
    struct task_up *up = core->preempted ? task_send_say(core, out, TASK_UP_PREEMPT) : NULL;
    if (up != NULL) {
        up->preempt = core->preempt;
    }
}

void task_send_stream(
    const struct task_core *core, const struct task_stream *stream, struct task_actions *out)
{
    CADRE_ASSERT(stream != NULL);
    struct task_up *up = task_send_say(core, out, TASK_UP_STREAM);
    if (up != NULL) {
        up->stream = *stream;
    }
}

void task_send_stall(
    const struct task_core *core, const struct task_stall *stall, struct task_actions *out)
{
    CADRE_ASSERT(core->phase != TASK_JOIN);
    struct task_up *up = task_send_say(core, out, TASK_UP_STALL);
    if (up != NULL) {
        up->stall = *stall;
        up->stall.generation = core->generation;
    }
}

/* The applied steps that were not reported yet go first, so that what is committed is whole when
 * the report is read; a task that finishes or stops may report its generation by nothing else. */
void task_send_report(struct task_core *core, struct task_actions *out)
{
    CADRE_ASSERT(core->phase == TASK_FROZEN);
    CADRE_ASSERT(!core->applying); /* its position is not known before the apply has ended */
    CADRE_ASSERT((core->reason == REPORT_FAILED) == (core->code != CADRE_OK));
    core->report_due = false;
    bool unreported = task_is_orderly(core->reason) && task_is_silent(core);
    if (core->position > core->sent_applied || core->consumed_unsent > 0 || unreported) {
        task_send_arrive(core, out);
    }
    struct task_up *up = task_send_say(core, out, TASK_UP_REPORT);
    if (up != NULL) {
        up->report = (struct task_report){
            .generation = core->generation,
            .position = core->position,
            .clean = task_is_whole(core),
            .reason = core->reason,
            .code = core->reason == REPORT_FAILED ? core->code : CADRE_OK,
            .text = core->text,
            .begun = core->begun,
            .stream = core->begun ? core->begun_stream : 0,
            .nested = core->begun && core->begun_nested,
            .digest = task_is_orderly(core->reason) ? core->digest : 0,
            .trusts = !core->verifies_losses       ? 0
                      : core->verified.digest != 0 ? core->verified.position + 1
                                                   : 1,
        };
        if (core->reason == REPORT_DIVERGED) {
            up->report.divergence = core->divergence;
        }
    }
}

/* ---- arrivals ---- */

/* The end of the epoch that the program is in, as far as it is known. */
static uint64_t epoch_end(const struct task_core *core)
{
    if (core->cursor.steps == 0 || core->cursor.steps > POSITION_MAX - core->cursor.first) {
        return POSITION_MAX;
    }
    return core->cursor.first + core->cursor.steps;
}

/* How far steps can be claimed now. Behind a run whose last step is in hand some steps of whatever
 * follows are claimed, so that the first step of the next run needs no release of its own: that one
 * claims the others. Never less than was claimed: a watermark never decreases. */
static uint64_t task_send_reachable(const struct task_core *core)
{
    CADRE_ASSERT(core->position <= core->released);
    CADRE_ASSERT(core->released <= core->arrived);
    CADRE_ASSERT(core->position <= UINT64_MAX - LIMIT_WINDOW_STEPS);
    uint64_t up_to = core->position + core->window_steps;
    uint64_t end = epoch_end(core);
    if (core->ready < end) {
        end = core->ready;
    } else if (!core->plain && end < POSITION_MAX && core->wanted > core->resume) {
        end += core->behind_steps;
    }
    if (up_to > end) {
        up_to = end;
    }
    return up_to > core->arrived ? up_to : core->arrived;
}

/* Half a window is over: its duration decides the next window. */
static void adapt_window(struct task_core *core)
{
    CADRE_ASSERT(core->half_over_us <= core->now_us);
    bool timed = core->half_over_us > 0;
    uint64_t took_us = core->now_us - core->half_over_us;
    core->half_over_us = core->now_us;
    if (!timed) {
        return;
    }
    if (took_us < TASK_WINDOW_HALF_SHORT_US && core->window_steps < LIMIT_WINDOW_STEPS) {
        core->window_steps *= 2;
    } else if (took_us > TASK_WINDOW_HALF_LONG_US && core->window_steps > core->window_least) {
        core->window_steps /= 2;
    }
    CADRE_ASSERT(core->window_steps >= core->window_least);
    CADRE_ASSERT(core->window_steps <= LIMIT_WINDOW_STEPS);
}

/* Sends an arrival when it is worth a message: each half window, when little is left in hand and
 * more can be claimed, and when nothing is left; at once when `asked`. So the control plane costs
 * two messages a window at most. A run that ends with steps in hand is reported with a later one,
 * or by a tick. */
bool task_arrive(struct task_core *core, bool asked, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        return false; /* rule 2: only a task in RUN claims steps */
    }
    uint64_t half = core->window_steps > 2 ? core->window_steps / 2 : 1;
    uint64_t few = half < core->behind_steps / 4 ? half : core->behind_steps / 4;
    bool unsent = core->position > core->sent_applied;
    bool over = unsent && core->position - core->sent_applied >= half;
    if (over) {
        adapt_window(core);
    }
    uint64_t up_to = task_send_reachable(core);
    bool more = up_to > core->arrived;
    bool ends = core->position == epoch_end(core) || core->position == core->ready;
    bool due = over || (unsent && ends && core->arrived == core->position);
    bool low = core->arrived - core->position <= few;
    if (!due && (!more || (!asked && !low))) {
        return false;
    }
    CADRE_ASSERT(up_to >= core->arrived);
    core->arrived = up_to;
    task_send_arrive(core, out);
    return true;
}
