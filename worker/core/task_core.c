/* SPDX-License-Identifier: Apache-2.0
 * The task core's step: events of the program (protocol, section 3, "Task"). Messages from the
 * coordinator are in task_down.c, those to it in task_send.c. The runtime (worker/library/runtime)
 * and the simulator call it. */
#include "worker/core/task_internal.h"

#include <string.h>

#include "common/pure/assert.h"

/* ---- events of the program ---- */

static void task_core_connect(struct task_core *core, struct task_actions *out)
{
    CADRE_ASSERT(core->phase != TASK_EXIT);
    core->connected = true;
    task_send_hello(core, out);
    if (core->phase == TASK_JOIN && core->joins) {
        task_send_join(core, out);
    }
    task_send_preempt(core, out);
    if (core->phase != TASK_RUN && core->phase != TASK_FROZEN) {
        return;
    }
    /* A task that reported only the position where its generation began reports it again. */
    if (core->claimed || core->arrived > core->resume || core->position > core->resume ||
        core->wanted > core->resume) {
        task_send_consumed(core, out);
        task_send_arrive(core, out);
    }
    task_send_part(core, out); /* rule 19: sent again on each connection; a duplicate is ignored */
    if (core->phase == TASK_FROZEN && !core->report_due) {
        task_send_report(core, out);
    }
}

/* A task that received another position than its own has the begun step from others: its program is
 * done with it. A joiner's program waits for its first step. */
static void become_synced(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase != TASK_SYNC) {
        return; /* aborted while the mesh was formed */
    }
    CADRE_ASSERT(!core->applying);
    CADRE_ASSERT(!core->clean || core->position == core->resume); /* it keeps its state */
    /* Of the new generation nothing is claimed before it runs. */
    CADRE_ASSERT(core->arrived == core->resume);
    CADRE_ASSERT(core->released == core->resume);
    CADRE_ASSERT(core->wanted == core->resume);
    if (!core->clean) {
        core->cursor = event->cursor;
        core->consumption = event->consumption;
    }
    if (core->joins) {
        CADRE_ASSERT(core->warm);
        core->begun = true;
        core->begun_stream = core->join_stream;
        core->begun_nested = false; /* no joiner enters at a nested step */
    } else if (core->position != core->resume) {
        core->begun = false;
    }
    core->warm = false;
    core->joins = false;
    core->phase = TASK_RUN;
    core->position = core->resume;
    core->clean = true;
    core->staged = false;
    task_append(out, TASK_ACTION_CHANGED);
    task_send_part(core, out); /* one of an older generation that was not published in it */
    task_settle(core, out);
}

static void peer_error(struct task_core *core, const char *text, struct task_actions *out)
{
    CADRE_ASSERT(!core->applying || !core->clean);
    core->applying = false; /* if it was applying, the state is torn: clean stays false (rule 9) */
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        task_freeze(core, REPORT_PEER_ERROR, text, out);
    } else if (core->report_due) {
        task_send_report(core, out);
    }
}

/* A checkpoint that waits for the verified position does not wait for the next arrival too. */
static void send_awaited(struct task_core *core, struct task_actions *out)
{
    const struct task_part *part = &core->part;
    bool waits = part->path != NULL && part->digest != 0 &&
                 (core->published == POSITION_NONE || core->published < part->position);
    if (core->phase == TASK_RUN && core->verified.digest != 0 && !core->verified_sent && waits &&
        part->position <= core->verified.position) {
        task_send_arrive(core, out);
    }
}

static void keep_part(
    struct task_core *core, const struct task_part *part, struct task_actions *out)
{
    if (core->phase == TASK_JOIN) {
        return;
    }
    CADRE_ASSERT(core->generation.number > 0);
    CADRE_ASSERT(part->path != NULL);
    core->part = *part;
    core->part.generation = core->generation;
    task_copy_text(core->part_path, sizeof(core->part_path), part->path);
    core->part.path = core->part_path;
    send_awaited(core, out);
    task_send_part(core, out);
    task_append(out, TASK_ACTION_CHANGED);
}

/* The program has failed, finally. */
static void task_core_fail(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    CADRE_ASSERT(event->code != CADRE_OK);
    if (core->code != CADRE_OK) {
        return;
    }
    CADRE_ASSERT(core->phase != TASK_FROZEN || core->reason != REPORT_FAILED);
    core->code = event->code;
    core->applying = false; /* if it was applying, the state is torn: clean stays false (rule 9) */
    core->report_due = false;
    if (core->phase == TASK_JOIN) {
        task_copy_text(core->text, sizeof(core->text), event->text);
    } else {
        task_freeze(core, REPORT_FAILED, event->text, out);
    }
}

static void task_core_join(
    struct task_core *core, const struct cursor *reported, struct task_actions *out)
{
    if (core->phase != TASK_JOIN) {
        return;
    }
    CADRE_ASSERT(core->warm);
    CADRE_ASSERT(core->generation.number == 0);
    core->joins = true;
    core->join_stream = reported->stream;
    core->join_epoch = reported->epoch;
    task_send_join(core, out);
}

static void sync_failed(struct task_core *core, const char *text, struct task_actions *out)
{
    if (core->phase == TASK_SYNC) {
        CADRE_ASSERT(!core->applying);
        task_freeze(core, REPORT_PEER_ERROR, text, out);
    }
}

static void task_core_edge(struct task_core *core, uint64_t digest, struct task_actions *out)
{
    bool stops = task_core_stops_next(core);
    if (stops || task_core_halts_next(core)) {
        core->digest = digest;
        task_freeze(core, REPORT_HALT, "", out);
        CADRE_ASSERT(!stops || task_core_stops(core));
    }
}

static void task_core_preempt(
    struct task_core *core, const struct task_preempt *reported, struct task_actions *out)
{
    CADRE_ASSERT(reported != NULL);
    core->preempted = true;
    core->preempt = *reported;
    task_send_preempt(core, out);
}

/* Of this generation: the shell sends it under the lock under which it read the generation. */
static void task_core_verify(
    struct task_core *core, const struct verified *verified, struct task_actions *out)
{
    CADRE_ASSERT(verified->digest != 0);
    if (core->phase == TASK_RUN) {
        CADRE_ASSERT(verified->position <= core->position);
        CADRE_ASSERT(core->verified.digest == 0 || verified->position >= core->verified.position);
        core->verified = *verified;
        core->verified_sent = false;
        send_awaited(core, out);
    }
}

static void task_core_diverge(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    CADRE_ASSERT(event->divergence->verified <= event->divergence->position);
    CADRE_ASSERT(!core->applying);
    bool frozen = core->phase == TASK_FROZEN && !task_is_orderly(core->reason) &&
                  core->reason != REPORT_FAILED;
    if (core->phase != TASK_RUN && !frozen) {
        return;
    }
    core->divergence = *event->divergence;
    if (frozen) {
        core->reason = REPORT_DIVERGED;
        task_copy_text(core->text, sizeof(core->text), event->text);
        task_send_report(core, out);
    } else {
        task_freeze(core, REPORT_DIVERGED, event->text, out);
    }
}

static void task_core_finish(struct task_core *core, uint64_t digest, struct task_actions *out)
{
    core->finished = true;
    core->digest = digest;
    core->begun = false;
    task_settle(core, out);
}

/* A task that is done waits for the others. */
static void task_core_stall(
    const struct task_core *core, const struct task_stall *reported, struct task_actions *out)
{
    CADRE_ASSERT(reported != NULL);
    bool done = core->phase == TASK_FROZEN && core->reason == REPORT_FINISHED;
    if (core->phase == TASK_RUN || core->phase == TASK_SYNC || done) {
        task_send_stall(core, reported, out);
    }
}

void task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    const uint64_t generation = core->generation.number;
    out->count = 0;
    if (event->now_us > core->now_us) {
        core->now_us = event->now_us;
    }
    if (event->type == TASK_EVENT_DISCONNECTED) {
        core->connected = false;
        return;
    }
    if (core->phase == TASK_EXIT && event->type != TASK_EVENT_APPLIED) {
        return;
    }
    switch (event->type) {
    case TASK_EVENT_CONNECTED:
        task_core_connect(core, out);
        break;
    case TASK_EVENT_DISCONNECTED:
        break;
    case TASK_EVENT_DOWN:
        task_on_down(core, event->down, out);
        break;
    case TASK_EVENT_SYNCED:
        become_synced(core, event, out);
        break;
    case TASK_EVENT_SYNC_FAILED:
        sync_failed(core, event->text, out);
        break;
    case TASK_EVENT_READY:
        task_on_ready(core, event, out);
        break;
    case TASK_EVENT_APPLY:
        task_on_apply(core, event->position);
        break;
    case TASK_EVENT_APPLIED:
        task_on_applied(core, event, out);
        break;
    case TASK_EVENT_STALLED:
        task_on_stalled(core, event->position, out);
        break;
    case TASK_EVENT_PEER_ERROR:
        peer_error(core, event->text, out);
        break;
    case TASK_EVENT_FAILED:
        task_core_fail(core, event, out);
        break;
    case TASK_EVENT_JOIN:
        task_core_join(core, &event->cursor, out);
        break;
    case TASK_EVENT_STREAM:
        task_send_stream(core, event->stream, out);
        break;
    case TASK_EVENT_STALL:
        task_core_stall(core, event->stall, out);
        break;
    case TASK_EVENT_FLUSH:
        task_on_flush(core, out);
        break;
    case TASK_EVENT_TICK:
        task_on_tick(core, out);
        break;
    case TASK_EVENT_END:
        task_on_end(core, &event->cursor, out);
        break;
    case TASK_EVENT_PAUSE_POINT:
        task_core_edge(core, event->digest, out);
        break;
    case TASK_EVENT_PREEMPT:
        task_core_preempt(core, event->preempt, out);
        break;
    case TASK_EVENT_PART:
        keep_part(core, event->part, out);
        break;
    case TASK_EVENT_FINISH:
        task_core_finish(core, event->digest, out);
        break;
    case TASK_EVENT_VERIFIED:
        task_core_verify(core, &event->verified, out);
        break;
    case TASK_EVENT_DIVERGED:
        task_core_diverge(core, event, out);
        break;
    }
    CADRE_ASSERT(core->generation.number >= generation);
    CADRE_ASSERT(core->phase == TASK_EXIT || core->released <= core->arrived);
}

void task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation, uint32_t replicas,
    uint32_t pid, const char *mesh_address)
{
    CADRE_ASSERT(mesh_address != NULL);
    memset(core, 0, sizeof(*core));
    core->phase = TASK_JOIN;
    core->slot = slot;
    core->incarnation = incarnation;
    core->replicas = replicas;
    core->pid = pid;
    core->checkpoint_at = POSITION_NONE;
    core->halt_at = POSITION_NONE;
    core->published = POSITION_NONE;
    core->behind_steps = TASK_STEPS_BEHIND_RUN;
    core->window_steps = TASK_WINDOW_START_STEPS;
    core->window_least = TASK_WINDOW_START_STEPS;
    task_copy_text(core->mesh_address, sizeof(core->mesh_address), mesh_address);
}

/* Rule 1: entered only when released > position. Rule 20: not at a halt. */
bool task_core_may_enter(const struct task_core *core, uint64_t position)
{
    CADRE_ASSERT(core->phase != TASK_RUN || core->clean || core->applying);
    return core->phase == TASK_RUN && !core->applying && position == core->position &&
           core->released > position && position < core->halt_at;
}

/* Rule 17: a stop freezes the task at S; it then reports and waits for goodbye. */
bool task_core_stops_next(const struct task_core *core)
{
    return core->phase == TASK_RUN && !core->applying && core->halt_kind == HALT_STOP &&
           core->position == core->halt_at;
}

/* Rule 20: a regroup takes effect at step S of its stream, not inside a nested run. */
bool task_core_halts_next(const struct task_core *core)
{
    if (core->phase != TASK_RUN || core->applying || core->halt_kind != HALT_REGROUP ||
        core->position != core->halt_at) {
        return false;
    }
    bool meant = core->halt_stream == STREAM_ANY ||
                 (core->halt_stream == core->cursor.stream && !core->cursor.nested);
    CADRE_ASSERT(core->wanted <= core->position + 1);
    return meant && core->wanted == core->position + 1;
}

bool task_core_stops(const struct task_core *core)
{
    return core->phase == TASK_FROZEN && core->reason == REPORT_HALT &&
           core->halt_kind == HALT_STOP && core->position == core->halt_at;
}
